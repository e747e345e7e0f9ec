package limit

import "time"

// leaky is the leaky bucket as a queue: it admits what a token bucket of the
// same numbers admits and tells each how long to wait before it goes ahead, so
// that they leave evenly paced. Choose it in front of something that must not
// see bursts. The wait is bounded by (burst-1)/rate.
type leaky struct{ rate }

var _ meter = (*leaky)(nil)

// delay returns how long what is taken now has to wait for what was before it.
func (m *leaky) delay(c []int64, at int64) time.Duration {
	ahead := c[0] - m.num*at
	if ahead <= 0 {
		return 0
	}
	return m.waitFor(ahead)
}

func (m *leaky) same(other meter) bool {
	o, ok := other.(*leaky)
	return ok && m.rate.same(&o.rate)
}
