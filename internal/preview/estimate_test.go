package preview

import (
	"math"
	"testing"
	"time"

	"liveroom/limit"
)

// TestIntervalsCoverTheTruth plays the same traffic with all users and with a quarter of them: the 95 % interval of the
// quarter holds the share of all in about 95 % of the seeds.
func TestIntervalsCoverTheTruth(t *testing.T) {
	set := rules(t, 1, nil)
	tight := rules(t, 2, func(s *limit.Spec) { rule(t, s, "danmaku-user").Rate, rule(t, s, "danmaku-user").Burst = 8, 5 })
	const seeds = 60
	var users, messages int
	var errors, spread float64
	for seed := range uint64(seeds) {
		c := newCrowd(t, set, seed, 120)
		for i, v := range c.viewers { // each at its own pace
			for c.now = 1; c.now < limit.Instant(20*time.Second); {
				c.now = c.now.Add(time.Duration(c.rand.ExpFloat64() * float64(1+i%7) * float64(time.Second)))
				c.ask(v, nil, limit.Danmaku, 1, v.name) // a room each: no bucket is shared
			}
		}
		rec := c.rec.snapshot()
		truth := Replay(rec, set, tight).Proposed.Refused
		part := Replay(rec.thinned(2), set, tight)
		have := part.Proposed.Refused
		if truth.Users.StdErr != 0 || part.SampledShare != 0.25 || have.Users.Of >= truth.Users.Of {
			t.Fatalf("truth %+v, sampled %+v", truth.Users, have.Users)
		}
		if have.Users.Low <= truth.Users.Share && truth.Users.Share <= have.Users.High {
			users++
		}
		if have.Messages.Low <= truth.Messages.Share && truth.Messages.Share <= have.Messages.High {
			messages++
		}
		errors += math.Abs(have.Messages.Share - truth.Messages.Share)
		spread += have.Messages.StdErr
	}
	t.Logf("covered: users %d, messages %d of %d; mean error %.4f, mean standard error %.4f", users, messages, seeds, errors/seeds, spread/seeds)
	if least := seeds * 88 / 100; users < least || messages < least {
		t.Errorf("covered: users %d, messages %d of %d, want %d at least", users, messages, seeds, least)
	}
	// A normal error's mean is 0.8 of its standard deviation; intervals that cover by being far too wide are no use.
	if errors < spread*0.5 {
		t.Errorf("the mean error %.4f is far below the standard error %.4f", errors/seeds, spread/seeds)
	}
}

// TestRoomOfManyIsApproximated: a room's bucket that a sixteenth of the users shares with all others refuses these as it
// refuses everybody.
func TestRoomOfManyIsApproximated(t *testing.T) {
	set := rules(t, 1, crowded(t))
	for seed := range uint64(2) {
		c := newCrowd(t, set, seed, 1000)
		c.run(40*time.Second, 100, "demo")
		rec := c.rec.snapshot()
		all, part := Replay(rec, set, set), Replay(rec.thinned(4), set, set)
		truth, have := all.Today.Refused.Messages, part.Today.Refused.Messages
		t.Logf("refused of all %.3f, of the sampled %.3f ± %.3f; %d of %d messages sampled", truth.Share, have.Share, have.StdErr, part.SampledMessages, part.Messages)
		if truth.Share < 0.2 || math.Abs(truth.Share-have.Share) > 0.08 {
			t.Errorf("seed %d: truth %.3f, estimate %.3f", seed, truth.Share, have.Share)
		}
		if part.Messages != all.Messages-all.rejectedFrames() && math.Abs(float64(part.Messages-all.Messages)) > 0.01*float64(all.Messages) {
			t.Errorf("messages: %d of all, %d of the sampled", all.Messages, part.Messages)
		}
	}
}

// rejectedFrames is how many messages are known only as frames.
func (r *Report) rejectedFrames() int64 {
	for i := range r.Actions {
		if r.Actions[i].Name == limit.Frame.String() {
			return r.Actions[i].Today.Refused.Messages.Of
		}
	}
	return 0
}
