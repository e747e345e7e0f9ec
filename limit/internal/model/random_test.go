package model

import (
	"fmt"
	"testing"
	"time"
)

// TestRandom plays scenarios that chance made. The bound holds in all of them;
// what is used is not looked at, since faults may take it all.
func TestRandom(t *testing.T) {
	runs, length := uint64(8), 5*time.Second
	if *large {
		runs, length = 400, 20*time.Second
	}
	for i := range runs {
		s := Random(*seed+i, length)
		t.Run(fmt.Sprintf("seed %d", s.Seed), func(t *testing.T) {
			if r := play(t, s); t.Failed() {
				t.Log(s.String(), "\n  outages ", r.Outages)
			}
		})
	}
}

// TestRepeats: the same seed plays the same run.
func TestRepeats(t *testing.T) {
	for _, name := range []string{"3 nodes, pulse 50x", "lossy wire", "20 users, each on 3 nodes"} {
		s := named(t, name, 4*time.Second)
		s.Want = Want{}
		first, second := play(t, s), play(t, s)
		if first.Trace != second.Trace {
			t.Errorf("%s: %d and %d admitted, different traces", name, first.Admitted, second.Admitted)
		}
		s.Seed++
		if other := play(t, s); other.Trace == first.Trace {
			t.Errorf("%s: another seed plays the same run", name)
		}
	}
}
