package limit

import (
	"testing"
	"time"
)

func TestAbuseMutesThenCloses(t *testing.T) {
	var a Abuse
	now := Instant(0)
	step := func(n int, by time.Duration) (last Penalty) {
		for range n {
			now = now.Add(by)
			if last = a.Rejected(now, AbusePolicy{}); last != NoPenalty {
				return last
			}
		}
		return last
	}
	if p := step(100, 300*time.Millisecond); p != NoPenalty {
		t.Fatalf("17 in 5 s: %v", p)
	}
	now = now.Add(time.Minute)
	if p := step(19, 200*time.Millisecond); p != NoPenalty {
		t.Fatalf("19 rejects: %v", p)
	}
	if p := step(1, 200*time.Millisecond); p != Mute {
		t.Fatalf("20 in 5 s: %v", p)
	}
	if have := a.Muted(now); have != 30*time.Second {
		t.Fatalf("muted for %v", have)
	}
	if have := a.Muted(now.Add(30 * time.Second)); have != 0 {
		t.Fatalf("after the mute: %v", have)
	}
	if p := step(20, 10*time.Millisecond); p != Close {
		t.Fatalf("going on while muted: %v", p)
	}
}

func TestAbuseForgets(t *testing.T) {
	var a Abuse
	for range 20 {
		a.Rejected(0, AbusePolicy{})
	}
	later := Instant(6 * time.Minute)
	var last Penalty
	for range 20 {
		last = a.Rejected(later, AbusePolicy{})
	}
	if last != Mute {
		t.Fatalf("a strike after six minutes: %v, want a mute again", last)
	}
}
