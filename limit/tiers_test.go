package limit

import (
	"testing"
	"time"
)

// audience drives a room and returns which tier's burst a quiet second brings.
type tierTest struct {
	*testing.T
	gate *Gate
	room *Subject
	now  Instant
}

func newTierTest(t *testing.T) *tierTest {
	return &tierTest{T: t, gate: NewGate(defaultRulesSet(t), atZero), room: &Subject{Scope: ScopeRoom}}
}

func (t *tierTest) ask(audience int) Decision {
	return t.gate.Decide(t.now, &Request{Action: Danmaku, Role: "viewer", Audience: audience}, t.room)
}

// wantBurst lets the bucket fill and counts what it then holds.
func (t *tierTest) wantBurst(audience int, want int64) {
	t.Helper()
	t.now = t.now.Add(5 * time.Second)
	if d := t.ask(audience); d.Verdict != Allow || d.Remaining+1 != want {
		t.Fatalf("audience %d at %v: %+v, want a burst of %d", audience, time.Duration(t.now), d, want)
	}
}

func TestTiersByAudience(t *testing.T) {
	for audience, want := range map[int]int64{0: 200, 999: 200, 1000: 100, 9_999: 100, 10_000: 80, 1_000_000: 80} {
		newTierTest(t).wantBurst(audience, want)
	}
}

func TestTiersHaveHysteresis(t *testing.T) {
	r := newTierTest(t)
	r.wantBurst(900, 200)
	for range 20 {
		r.wantBurst(1099, 200) // beyond the bound by less than a tenth: for ever
	}
	r.wantBurst(1100, 200) // by a tenth, the clock starts
	r.wantBurst(1100, 200) // 5 s
	r.wantBurst(1050, 200) // back within the margin: it starts anew
	r.wantBurst(1100, 200)
	r.wantBurst(1100, 200)
	r.wantBurst(1100, 100) // 10 s
	for range 20 {
		r.wantBurst(900, 100) // not below by a tenth
	}
	r.wantBurst(899, 100)
	r.wantBurst(899, 100)
	r.now = r.now.Add(time.Second)
	r.wantBurst(899, 200) // nothing was used, so it is full
	r.wantBurst(899, 200)
}

func TestTiersKeepTheLevel(t *testing.T) {
	r := newTierTest(t)
	for range 200 {
		r.ask(900)
	}
	r.ask(50_000)
	r.now = r.now.Add(tierHold)
	for range 300 {
		r.ask(900) // within tier one again, drains it
	}
	if d := r.ask(50_000); d.Verdict != Degrade {
		t.Fatalf("%+v: a crossing of no length changed the tier", d)
	}
	r.now = r.now.Add(tierHold - 1)
	for range 200 {
		r.ask(50_000)
	}
	r.now++
	if d := r.ask(50_000); d.Verdict != Degrade {
		t.Fatalf("changing tier refilled the bucket: %+v", d)
	}
	r.now = r.now.Add(25 * time.Millisecond)
	if d := r.ask(50_000); d.Verdict != Allow {
		t.Fatalf("one token at 40/s: %+v", d)
	}
}
