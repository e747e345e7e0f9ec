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
	outages, over := 0, 0
	for i := range runs {
		s := Random(*seed+i, length)
		t.Run(fmt.Sprintf("seed %d", s.Seed), func(t *testing.T) {
			r := play(t, s)
			if len(r.Outages) > 0 || r.Debts > 0 {
				outages++
			}
			if r.Worst.Tokens > r.Scenario.Bound.Burst {
				over++
			}
			if t.Failed() {
				t.Log(s.String(), "\n  outages ", r.Outages)
			}
		})
	}
	t.Logf("%d runs, %d with an outage, %d over the plain bound, all within what is documented for outages, clocks and fail-overs", runs, outages, over)
}

// TestRepeats: the same seed plays the same run, as far as it is the seed's to say: of goroutines that are ready at the
// same instant the scheduler chooses, which may swap who of two nodes was first.
func TestRepeats(t *testing.T) {
	for _, name := range []string{"3 nodes, pulse 50x", "lossy wire", "20 users, each on 3 nodes"} {
		s := named(t, name, 4*time.Second)
		s.Want = Want{}
		first, second := play(t, s), play(t, s)
		if more := first.Admitted - second.Admitted; max(more, -more)*100 > first.Admitted {
			t.Errorf("%s: %d admitted, then %d", name, first.Admitted, second.Admitted)
		}
		s.Seed++
		if other := play(t, s); other.Trace == first.Trace {
			t.Errorf("%s: another seed plays the same run", name)
		}
	}
}
