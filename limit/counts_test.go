package limit

import (
	"fmt"
	"testing"
	"time"
)

// countOf sums the counters of a rule and an outcome.
func countOf(g *Gate, rule, outcome string) int64 {
	n := int64(0)
	for _, c := range g.Counts() {
		if c.Rule == rule && c.Outcome == outcome {
			n += c.N
		}
	}
	return n
}

func TestCountsExistFromZero(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	have := map[string]int{}
	for _, c := range g.Counts() {
		if c.N != 0 {
			t.Errorf("%+v at start", c)
		}
		have[c.Rule]++
	}
	for _, r := range g.Rules().All() {
		if have[r.Name] != len(r.Action)*int(outcomeCount) {
			t.Errorf("rule %s has %d counters", r.Name, have[r.Name])
		}
	}
}

func TestCountsOfADecision(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	seat, room := &Subject{Scope: ScopeUserRoom}, &Subject{Scope: ScopeRoom}
	for range 5 {
		g.Decide(0, &Request{Action: Danmaku, Role: "viewer"}, conn, user, seat, room)
	}
	g.Decide(0, &Request{Action: Danmaku, Role: "host"}, room)
	for _, c := range []struct {
		rule, outcome string
		want          int64
	}{
		{"danmaku-connection", "allow", 3},
		{"danmaku-user", "allow", 3},
		{"danmaku-user-room", "allow", 3},
		{"danmaku-user-room", "reject", 2},
		{"danmaku-connection", "reject", 0},
		{"danmaku-room", "allow", 3},
		{"danmaku-room", "exempt", 1},
	} {
		if have := countOf(g, c.rule, c.outcome); have != c.want {
			t.Errorf("%s %s: have %d, want %d", c.rule, c.outcome, have, c.want)
		}
	}
}

func TestCountsSurviveSwaps(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn := &Subject{Scope: ScopeConn}
	decide := func() { g.Decide(0, &Request{Action: Gift, Role: "viewer"}, conn) }
	decide()
	for version := range int64(3) {
		spec := Default()
		spec.Version = 2 + version
		if version == 1 {
			spec.Rules = spec.Rules[:1]
		}
		rules, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		g.Swap(rules)
		decide()
	}
	if have := countOf(g, "gift-connection", "allow"); have != 3 {
		t.Errorf("counted %d, want 3", have)
	}
	if have := countOf(g, "default-conn", "allow"); have != 1 {
		t.Errorf("the default rule counted %d, want 1", have)
	}
}

// Property 7, and the fault "a threshold mistake nobody sees": a rule is tried in
// shadow first.
func TestProperty7ShadowCountsEqualEnforcing(t *testing.T) {
	const text = `
rules:
  - {name: wide, action: danmaku, scope: conn, rate: 50, burst: 100}
  - {name: tried, action: danmaku, scope: room, rate: 3, burst: 5, degrade: {rate: 2, burst: 4}, shadow: %s}
`
	run := func(shadow string) *Gate {
		g := NewGate(mustCompile(t, fmt.Sprintf(text, shadow)), atZero)
		conn, room := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeRoom}
		now := Instant(0)
		for i := range 2000 {
			now = now.Add(time.Duration(i%7) * 13 * time.Millisecond)
			d := g.Decide(now, &Request{Action: Danmaku}, conn, room)
			if shadow == "true" && d.Verdict != Allow {
				t.Fatalf("a rule in shadow acted: %+v", d)
			}
		}
		return g
	}
	shadow, enforced := run("true"), run("false")
	for _, c := range [][2]string{{"allow", "allow"}, {"shadow_degrade", "degrade"}, {"shadow_reject", "reject"}} {
		have, want := countOf(shadow, "tried", c[0]), countOf(enforced, "tried", c[1])
		if have != want || want == 0 {
			t.Errorf("%s %d, %s %d", c[0], have, c[1], want)
		}
	}
}
