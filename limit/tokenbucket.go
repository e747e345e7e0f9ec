package limit

import "time"

// The token bucket: take at once what the bucket holds, wait for what it does
// not. Choose it unless you need what another algorithm promises: it is exact,
// forgives a pause with a burst, and costs one cell. Its meter is rate.

var _ meter = (*rate)(nil)

func (r *rate) width() int                      { return 1 }
func (r *rate) reach() int64                    { return r.span }
func (r *rate) shares([]int64) *unitShares      { return &r.unitShares }
func (r *rate) level(c []int64, at int64) int64 { return r.levelOf(c[0], at) }
func (r *rate) full(c []int64, at int64) bool   { return c[0] <= r.num*at }

func (r *rate) start(c []int64, _ Instant) { r.hold(c, r.size-r.absent) }

func (r *rate) wait(c []int64, at, need int64) time.Duration {
	return r.waitFor(need - r.levelOf(c[0], at))
}

func (r *rate) take(c []int64, at, units int64) { c[0] = max(c[0], r.num*at) + units }

func (r *rate) hold(c []int64, level int64) {
	if c[0] = r.size - level; c[0] <= 0 {
		c[0] = longFull
	}
}

func (r *rate) shift(c []int64, ahead uint64) { c[0] = r.shifted(c[0], ahead) }

func (r *rate) same(other meter) bool {
	o, ok := other.(*rate)
	return ok && r.num == o.num && r.whole == o.whole && r.size == o.size
}

// one grants one token or none: what grant does for a plain rule.
func (r *rate) one(full, at int64, class uint8, a *answer) {
	unit := r.unit[class]
	a.outcome, a.cost, a.unit, a.wait = outcomeAllow, 1, unit, 0
	if a.left = r.levelOf(full, at) - unit; a.left < 0 {
		a.outcome, a.cost, a.wait = outcomeReject, 0, r.waitFor(-a.left)
	}
}

func (r *rate) terms(of *rule, path string, faults *Faults) []Terms {
	return []Terms{of.quota.bucket(&of.spec.Limit, r, path, faults)}
}
