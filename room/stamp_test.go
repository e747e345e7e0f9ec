package room

import (
	"testing"
	"time"

	"liveroom/limit"
)

func TestStampsAreOfTheInstantOfAdmission(t *testing.T) {
	var mono limit.Instant = 5_000_000_000
	wall, pause := int64(1_790_000_000_000), time.Duration(0)
	s := newStamper(
		func() limit.Instant { return mono },
		func() time.Time {
			at := time.UnixMilli(wall)
			mono = mono.Add(pause) // stopped between the two readings
			wall += pause.Milliseconds()
			return at
		},
	)
	pass := func(d time.Duration) { mono, wall = mono.Add(d), wall+d.Milliseconds() }

	if got := s.at(mono); got != wall {
		t.Errorf("stamped %d, want %d", got, wall)
	}
	admitted, then := mono, wall
	pass(10 * time.Second)
	if got := s.at(admitted); got != then {
		t.Errorf("stamped %d ten seconds later, want %d", got, then)
	}
	pass(2 * time.Second)
	pause = 3 * time.Second
	admitted, then = mono, wall
	if got := s.at(admitted); got != then {
		t.Errorf("stamped %d over a pause, want %d", got, then)
	}
	pause = 0
	wall += 7 // the wall clock is set
	pass(2 * time.Second)
	if got := s.at(mono); got != wall {
		t.Errorf("stamped %d after the wall clock was set, want %d", got, wall)
	}
}
