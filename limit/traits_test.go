package limit

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

const whereRules = `
rules:
  - {name: all, action: danmaku, scope: user, rate: 0, burst: 1}
  - {name: high, action: danmaku, scope: user, rate: 0, burst: 10, where: {level: ">=10"}}
  - {name: gold, action: danmaku, scope: user, rate: 0, burst: 20, where: {badge: gold, level: ">=10"}, priority: 1}
  - {name: host, action: danmaku, scope: user, rate: 0, burst: 30, role: host}
`

// A rule with where is for whom its conditions hold, all of them, and beats one for everybody.
func TestWhereRulesAreForWhomTheyHold(t *testing.T) {
	for _, c := range []struct{ attrs, role, want string }{
		{"", "", "all"},
		{`{"level":9}`, "", "all"},
		{`{"level":10}`, "", "high"},
		{`{"level":"10"}`, "", "all"},
		{`{"level":"ten"}`, "", "all"},
		{`{"badge":"gold"}`, "", "all"},
		{`{"badge":"gold","level":12}`, "", "gold"},
		{`{"badge":"silver","level":12}`, "", "high"},
		{`{"level":12}`, "host", "host"},
		{`not JSON`, "", "all"},
	} {
		g := NewGate(mustCompile(t, whereRules), atZero)
		q := &Request{Action: Danmaku, Cost: 1, Role: c.role, Traits: NewTraits(c.attrs)}
		if d := g.Decide(0, q, &Subject{Scope: ScopeUser}); d.Rule != c.want || d.Verdict != Allow {
			t.Errorf("%s %s: %+v, want rule %s", c.attrs, c.role, d, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		text, value string
		want        bool
	}{
		{">=10", "10", true}, {">=10", "9", false}, {">10", "10", false}, {"<10", "9", true}, {"<= 10", "11", false}, {">=-5", "-4", true},
		{"gold", `"gold"`, true}, {"=gold", `"gold"`, true}, {"gold", `"Gold"`, false}, {"true", "true", true}, {"12", "12", true}, {"12", `"12"`, true},
		{">=10", "true", false}, {">=10", `"x"`, false},
	} {
		tr, ok := parseTrait("a", c.text)
		if !ok || tr.holds([]byte(c.value)) != c.want {
			t.Errorf("%s of %s: %v, want %v", c.text, c.value, !c.want, c.want)
		}
	}
	for where, part := range map[string]string{`{Level: x}`: "rules[0].where.Level", `{level: ">=x"}`: "rules[0].where.level", `{level: ">"}`: "rules[0].where.level", `{level: ""}`: "rules[0].where.level"} {
		spec, err := Parse([]byte("rules:\n  - {name: a, action: danmaku, scope: user, rate: 1, burst: 1, where: " + where + "}\n"))
		if err == nil {
			_, err = spec.Compile()
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", where, err)
		}
	}
	var many strings.Builder
	many.WriteString("rules:\n")
	for i := range maxTraits + 1 {
		fmt.Fprintf(&many, "  - {name: r%d, action: danmaku, scope: user, rate: 1, burst: 1, where: {level: \">=%d\"}}\n", i, i)
	}
	if _, err := mustSpec(t, many.String()).Compile(); err == nil || !strings.Contains(err.Error(), "rules[64].where: want at most 64") {
		t.Errorf("65 conditions: %v", err)
	}
}

// New rules are asked of the same traits, and a decision about traits that are known allocates nothing.
func TestTraitsFollowTheRules(t *testing.T) {
	g := NewGate(mustCompile(t, whereRules), atZero)
	s := &Subject{Scope: ScopeUser}
	q := &Request{Action: Danmaku, Cost: 1, Traits: NewTraits(`{"level":12}`)}
	if d := g.Decide(0, q, s); d.Rule != "high" {
		t.Fatalf("%+v", d)
	}
	if n := testing.AllocsPerRun(100, func() { g.Decide(0, q, s) }); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
	g.Swap(mustCompile(t, strings.Replace(whereRules, ">=10", ">=20", 1)))
	if d := g.Decide(0, q, &Subject{Scope: ScopeUser}); d.Rule != "all" {
		t.Errorf("by the new rules %+v", d)
	}
	why := map[string]string{}
	for _, standing := range g.Explain(0, q, s) {
		why[standing.Rule] = standing.Why
	}
	if want := map[string]string{"host": "other_role", "gold": "other_attrs", "high": "other_attrs", "all": "applies"}; !maps.Equal(why, want) {
		t.Errorf("explained as %v, want %v", why, want)
	}
}

// A whole number is read once, and nothing else is one.
func TestWholeTraits(t *testing.T) {
	known := NewTraits(`{"since":1600000000,"level":12,"badge":"7","half":0.5,"vip":true,"none":null}`)
	want := map[string]int64{"since": 1_600_000_000, "level": 12, "badge": 0, "half": 0, "vip": 0, "none": 0, "nowhere": 0}
	for range 2 {
		for name, n := range want {
			if got := known.Whole(name); got != n {
				t.Errorf("%s is %d, want %d", name, got, n)
			}
		}
	}
	if n := testing.AllocsPerRun(100, func() { known.Whole("since") }); n != 0 {
		t.Errorf("%v allocations once it is known", n)
	}
	for _, none := range []*Traits{nil, NewTraits("[")} {
		if n := none.Whole("since"); n != 0 {
			t.Errorf("of nothing: %d", n)
		}
	}
}

func BenchmarkDecideWhere(b *testing.B) {
	rules := strings.ReplaceAll(whereRules, "rate: 0", "rate: 1000000000")
	g := NewGate(mustCompile(b, rules), atZero)
	for name, attrs := range map[string]string{"none": "", "attrs": `{"badge":"gold","level":12}`} {
		b.Run(name, func(b *testing.B) {
			s := &Subject{Scope: ScopeUser}
			q := &Request{Action: Danmaku, Cost: 1, Traits: NewTraits(attrs)}
			b.ReportAllocs()
			now := Instant(0)
			for b.Loop() {
				now += 1000
				g.Decide(now, q, s)
			}
		})
	}
}
