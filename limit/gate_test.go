package limit

import (
	"testing"
	"time"
)

func mustCompile(t testing.TB, text string) *Rules {
	t.Helper()
	spec, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func defaultRulesSet(t testing.TB) *Rules {
	t.Helper()
	rules, err := Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func atZero() Instant { return 0 }

func TestDefaultUserInRoom(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	seat, room := &Subject{Scope: ScopeUserRoom}, &Subject{Scope: ScopeRoom}
	q := &Request{Action: Danmaku, Role: "viewer", Room: "demo", Audience: 10}
	for i := range 3 {
		if d := g.Decide(0, q, conn, user, seat, room); d.Verdict != Allow || d.Remaining != int64(2-i) {
			t.Fatalf("danmaku %d: %+v", i, d)
		}
	}
	d := g.Decide(0, q, conn, user, seat, room)
	want := Decision{Verdict: Reject, Scope: ScopeUserRoom, Rule: "danmaku-user-room", RetryAfter: time.Second}
	if d != want {
		t.Fatalf("fourth danmaku: have %+v, want %+v", d, want)
	}
	if d := g.Decide(Instant(time.Second)-1, q, conn, user, seat, room); d.Verdict != Reject || d.RetryAfter != 1 {
		t.Fatalf("a tick early: %+v", d)
	}
	if d := g.Decide(Instant(time.Second), q, conn, user, seat, room); d.Verdict != Allow {
		t.Fatalf("in time: %+v", d)
	}
}

func TestDefaultRoomDegradesThenRejects(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	room := &Subject{Scope: ScopeRoom}
	q := &Request{Action: Danmaku, Role: "viewer", Room: "demo", Audience: 999}
	var have [verdictCount]int
	for range 1300 {
		have[g.Decide(0, q, room).Verdict]++
	}
	if want := [verdictCount]int{200, 1000, 100, 0}; have != want {
		t.Fatalf("have %v, want %v", have, want)
	}
	if d := g.Decide(0, &Request{Action: Danmaku, Role: "host"}, room); d.Verdict != Allow || d.Rule != "" {
		t.Fatalf("host: %+v", d)
	}
}

func TestLikesFold(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user, room := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}, &Subject{Scope: ScopeRoom}
	q := &Request{Action: Like, Cost: 20, Role: "viewer"}
	for range 2 {
		if d := g.Decide(0, q, conn, user, room); d.Verdict != Allow || d.Counted != 20 {
			t.Fatalf("%+v", d)
		}
	}
	if d := g.Decide(0, q, conn, user, room); d.Verdict != Reject || d.Scope != ScopeConn || d.Counted != 0 {
		t.Fatalf("third frame: %+v", d)
	}
	other := &Subject{Scope: ScopeConn}
	if d := g.Decide(Instant(250*time.Millisecond), q, other, user, room); d.Verdict != Degrade || d.Counted != 5 || d.Rule != "like-user" {
		t.Fatalf("folded: %+v", d)
	}
	if d := g.Decide(Instant(250*time.Millisecond), q, other, user, room); d.Verdict != Degrade || d.Counted != 0 {
		t.Fatalf("folded to nothing: %+v", d)
	}
}

func TestDecideDoesNotAllocate(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	seat, room := &Subject{Scope: ScopeUserRoom}, &Subject{Scope: ScopeRoom}
	now := Instant(0)
	for _, role := range []string{"viewer", "host"} {
		for _, step := range []time.Duration{2 * time.Second, time.Millisecond} {
			if n := testing.AllocsPerRun(100, func() {
				now = now.Add(step)
				g.Decide(now, &Request{Action: Danmaku, Role: role, Room: "demo"}, conn, user, seat, room)
				g.Decide(now, &Request{Action: Like, Cost: 7, Role: role, Room: "demo"}, conn, user, room)
			}); n != 0 {
				t.Errorf("%s: %v allocations", role, n)
			}
		}
	}
}

// The scarcest of several folding rules decides how much counts and is named.
func TestTheScarcestFoldIsNamed(t *testing.T) {
	g := NewGate(mustCompile(t, `
rules:
  - {name: user, action: like, scope: user, rate: 1, burst: 8, cost: count, fold: true}
  - {name: room, action: like, scope: room, rate: 1, burst: 5, cost: count, fold: true}
`), atZero)
	user, room := &Subject{Scope: ScopeUser}, &Subject{Scope: ScopeRoom}
	d := g.Decide(0, &Request{Action: Like, Cost: 20}, user, room)
	if d.Verdict != Degrade || d.Counted != 5 || d.Rule != "room" {
		t.Fatalf("%+v", d)
	}
	if left := g.Explain(0, &Request{Action: Like}, user)[0].Level; left != 3 {
		t.Fatalf("the user has %d left, want 8 less the 5 that counted", left)
	}
}
