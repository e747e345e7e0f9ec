package preview

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
)

// TestGuardDoesNotFireOnNoise: whatever the traffic, a set that refuses at most the bound of all users more is not undone
// because a sample of them says so at one of the checks.
func TestGuardDoesNotFireOnNoise(t *testing.T) {
	set := rules(t, 1, nil)
	g := NewGuard(GuardConfig{Now: time.Now})
	g.few = 3
	judged := 0
	rapid.Check(t, func(rt *rapid.T) {
		next := rules(t, 2, func(s *limit.Spec) {
			r := rule(t, s, "danmaku-user")
			r.Rate, r.Burst = rapid.Int64Range(6, 30).Draw(rt, "rate"), rapid.Int64Range(3, 30).Draw(rt, "burst")
		})
		c := newCrowd(t, set, rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(20, 120).Draw(rt, "viewers"))
		c.run(10*time.Second, rapid.IntRange(20, 60).Draw(rt, "rate"), "demo")
		whole, part := newComparison(set, next, epoch.UnixNano(), epoch.UnixNano()), newComparison(set, next, epoch.UnixNano(), epoch.UnixNano())
		whole.feed(c.rec.snapshot())
		var truth Watch
		beyond := g.judge(whole, &truth) // of all users, or of those of one action
		within := !beyond && float64(truth.Refused-truth.WouldRefuse) <= moreUsers*float64(truth.Users)
		level := uint32(rapid.IntRange(0, 3).Draw(rt, "level"))
		for at := epoch; at.Sub(epoch) <= 14*time.Second; at = at.Add(2 * time.Second) {
			part.feed(c.rec.Between(time.Unix(0, part.fedTo), at).thinned(level))
			var now Watch
			if fired := g.judge(part, &now); fired && within && at.Sub(epoch) >= 10*time.Second {
				rt.Fatalf("fired at %v: %+v; in truth %+v", at.Sub(epoch), now, truth)
			}
		}
		if level == 0 {
			var end Watch
			if g.judge(part, &end); end.Users != truth.Users || end.Refused != truth.Refused || end.WouldRefuse != truth.WouldRefuse {
				rt.Fatalf("fed in pieces %+v, at once %+v", end, truth)
			}
		}
		if within {
			judged++
		}
	})
	t.Logf("%d sets were within the bound", judged)
}
