package limit

import "time"

// leaky is the leaky bucket as a queue: it admits what a token bucket of the
// same numbers admits and tells each how long to wait before it goes ahead, so
// that they leave evenly paced. Choose it in front of something that must not
// see bursts. The wait is bounded by (burst-1)/rate.
type leaky struct{ rate }

var _ meter = (*leaky)(nil)

func compileQueue(r *rule, path string, times []int64, faults *Faults) meter {
	if r.spec.Rate == 0 {
		faults.add(join(path, "rate"), "a leaky bucket needs a rate of 1 or more")
	}
	r.queue = &leaky{compileLimit(&r.spec.Limit, path, times, faults)}
	return r.queue
}

// delay returns how long what is taken now has to wait for what was before it.
func (m *leaky) delay(c []int64, at int64) time.Duration {
	ahead := c[0] - m.num*at
	if ahead <= 0 {
		return 0
	}
	return m.waitFor(ahead)
}

// paces tells whether what an answer grants has to queue: it takes from the
// queue itself, not from the degrade bucket, and is not exempt.
func (r *rule) paces(a *answer) bool {
	return r.queue != nil && !r.shadow && a.cost > 0 && (r.fold || a.outcome == outcomeAllow)
}

// LongestDelay returns the longest Decision.Delay that the rule can impose, 0
// unless it is a leaky bucket. The rule must be one that compiles.
func (r *Rule) LongestDelay() time.Duration {
	if r.Algorithm != leakyBucketName {
		return 0
	}
	per, times := int64(r.Per), int64(1)
	if per == 0 {
		per = int64(time.Second)
	}
	for _, n := range r.Multiply {
		times = max(times, n)
	}
	// All but one token of the role that has the most of them is ahead.
	return time.Duration(scale(times*r.Burst-1, per, times*r.Rate, 1))
}

func (m *leaky) same(other meter) bool {
	o, ok := other.(*leaky)
	return ok && m.rate.same(&o.rate)
}
