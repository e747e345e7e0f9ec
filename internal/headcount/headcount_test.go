package headcount

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"liveroom/limit"
)

func seen(now limit.Instant, user string, v limit.Verdict) limit.Observed {
	return limit.Observed{Now: now, Request: limit.Request{Action: limit.Danmaku, User: user}, Decision: limit.Decision{Verdict: v}}
}

// TestEstimateIsClose: within five standard errors for crowds of every size, however often each of them asks.
func TestEstimateIsClose(t *testing.T) {
	for _, n := range []int{0, 1, 10, 100, 1_000, 10_000, 100_000} {
		c := New()
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range n {
					v := limit.Allow
					if i%10 == 0 {
						v = limit.Reject
					}
					c.Observe(seen(limit.Instant(g)*limit.Instant(time.Second), fmt.Sprint("u", i), v))
				}
			})
		}
		wg.Wait()
		now := limit.Instant(5 * time.Second)
		for o, want := range map[Outcome]float64{Asked: float64(n), Rejected: math.Ceil(float64(n) / 10), Degraded: 0} {
			if got := c.Estimate(o, now); math.Abs(got-want) > 0.5+want*5*0.0163 {
				t.Errorf("%d users, %v: estimated %.1f, want %.0f", n, o, got, want)
			}
		}
	}
}

func TestOldUsersAreForgotten(t *testing.T) {
	c := New()
	for minute := range 5 {
		now := limit.Instant(time.Duration(minute) * 2 * Window)
		for i := range 100 {
			c.Observe(seen(now, fmt.Sprint(minute, "-", i), limit.Degrade))
		}
		if got := c.Estimate(Degraded, now); math.Abs(got-100) > 5 {
			t.Fatalf("minute %d: %.1f", minute, got)
		}
		if got := c.Estimate(Degraded, now.Add(Window+slotTime)); got != 0 {
			t.Fatalf("a window later: %.1f", got)
		}
	}
	now := limit.Instant(50 * Window)
	c.Observe(seen(now, "late", limit.Allow))
	c.Observe(seen(0, "an old reading", limit.Allow))
	if got := c.Estimate(Asked, now); math.Abs(got-1) > 0.1 {
		t.Errorf("with an old reading: %.1f", got)
	}
}

func TestNobodyCountsForNobody(t *testing.T) {
	c := New()
	c.Observe(seen(0, "", limit.Reject))
	frame := seen(0, "ann", limit.Allow)
	frame.Request.Action = limit.Frame
	c.Observe(frame)
	if got := c.Estimate(Asked, 0); got != 0 {
		t.Errorf("%.1f", got)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	c, o := New(), seen(1, "ann", limit.Reject)
	if n := testing.AllocsPerRun(1000, func() { c.Observe(o) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	c, o := New(), seen(1, "ann", limit.Reject)
	b.ReportAllocs()
	for b.Loop() {
		c.Observe(o)
	}
}
