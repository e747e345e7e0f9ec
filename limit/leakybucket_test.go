package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestLongestDelay(t *testing.T) {
	for numbers, want := range map[string]time.Duration{
		"algorithm: leaky_bucket, rate: 3, burst: 4":                        time.Second,
		"algorithm: leaky_bucket, rate: 7, burst: 3":                        285714286,
		"algorithm: leaky_bucket, rate: 1, burst: 1":                        0,
		"algorithm: leaky_bucket, rate: 1, burst: 1, multiply: {viewer: 5}": 800 * time.Millisecond,
		"algorithm: leaky_bucket, rate: 2, burst: 3, per: 1h, cost: value":  time.Hour,
		"algorithm: leaky_bucket, rate: 1, burst: 100, per: 24h":            99 * 24 * time.Hour,
		"rate: 1, burst: 100": 0,
	} {
		g := NewGate(mustCompile(t, "rules: [{name: q, action: gift, scope: user, "+numbers+"}]"), atZero)
		rule, _ := g.Rules().Rule("q")
		if have := rule.LongestDelay(); have != want {
			t.Errorf("%s: %v, want %v", numbers, have, want)
		}
		user, longest := &Subject{Scope: ScopeUser}, time.Duration(0)
		for range 500 {
			longest = max(longest, g.Decide(0, &Request{Action: Gift, Cost: 1, Role: "viewer"}, user).Delay)
		}
		if longest != want {
			t.Errorf("%s: delayed by %v, want %v", numbers, longest, want)
		}
	}
}

// Nobody waits who takes nothing from the queue.
func TestOnlyWhatQueuesIsDelayed(t *testing.T) {
	const text = `rules: [{name: q, action: like, scope: room, algorithm: leaky_bucket, rate: 10, burst: 3, cost: count, %s}]`
	room := &Subject{Scope: ScopeRoom}
	g := NewGate(mustCompile(t, fmt.Sprintf(text, "exempt: {roles: host}, degrade: {rate: 1, burst: 5}")), atZero)
	for i, c := range []struct {
		role    string
		cost    int64
		verdict Verdict
		delay   time.Duration
	}{
		{"viewer", 2, Allow, 0},
		{"viewer", 1, Allow, 200 * time.Millisecond},
		{"host", 1, Allow, 0},
		{"viewer", 0, Allow, 0},
		{"viewer", 1, Degrade, 0}, // paid by the second bucket
	} {
		d := g.Decide(0, &Request{Action: Like, Cost: c.cost, Role: c.role}, room)
		if d.Verdict != c.verdict || d.Delay != c.delay {
			t.Errorf("%d: %+v", i, d)
		}
	}
	room = &Subject{Scope: ScopeRoom}
	g = NewGate(mustCompile(t, fmt.Sprintf(text, "fold: true")), atZero)
	g.Decide(0, &Request{Action: Like, Cost: 2}, room)
	if d := g.Decide(0, &Request{Action: Like, Cost: 9}, room); d.Verdict != Degrade || d.Counted != 1 || d.Delay != 200*time.Millisecond {
		t.Errorf("what is folded queues: %+v", d)
	}
	if d := g.Decide(0, &Request{Action: Like, Cost: 9}, room); d.Verdict != Degrade || d.Counted != 0 || d.Delay != 0 {
		t.Errorf("folded to nothing: %+v", d)
	}
}
