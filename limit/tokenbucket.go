package limit

import (
	"math/bits"
	"time"
)

// The token bucket: take at once what the bucket holds, wait for what it does
// not. Choose it unless you need what another algorithm promises: it is exact,
// forgives a pause with a burst, and costs one cell.

func compileBucket(r *rule, path string, times []int64, faults *Faults) meter {
	if len(r.spec.Tiers) > 0 {
		return r.compileTiers(path, times, faults)
	}
	m := compileLimit(&r.spec.Limit, path, times, faults)
	m.begin(r.spec.Initial)
	return &m
}

// begin sets what a new bucket lacks.
func (r *rate) begin(initial *int64) {
	if initial != nil && r.whole > 0 && *initial < r.size/r.whole {
		r.absent = r.size - *initial*r.whole
	}
}

// rate is a token bucket's numbers as exact integers. Levels are counted in
// units such that a nanosecond brings num of them and a token has whole:
// rate/per in lowest terms, times a common factor that makes every role's
// share of a token whole.
//
// The state of a bucket is one int64, the instant at which it will be full, in
// units since an epoch (the theoretical arrival time of GCRA, ITU-T I.371).
// It only ever grows by what is spent, hence for any window [a, b] of the
// callers' own readings, in whatever order they arrive: after the first
// admission the state is at least num*a plus its cost, after the last one at
// most num*b + size, so that everything admitted between costs at most
// size + num*(b-a). There is no "last reading" that an older one could rewind.
type rate struct {
	unitShares       // of units so fine that num is whole, too
	num        int64 // units per nanosecond; 0 when nothing comes after the burst
	span       int64 // nanoseconds around the epoch within which num*t stays in range
	absent     int64 // units that a new bucket lacks
}

const (
	// maxUnits bounds a burst in units, so that time (at most maxSpanUnits), size
	// and state add up without overflow.
	maxUnits     = 1 << 60
	maxSpanUnits = 1 << 61
	// longFull is a state full at every instant in range.
	longFull = -1 << 62
)

// newRate compiles n tokens per d with the given burst, multiplied by class of
// role. It reports false when the burst does not fit; the caller has checked
// that n >= 0, d > 0, burst >= 1 and that no multiplier is below 1.
func newRate(n int64, d time.Duration, burst int64, multiply []int64) (rate, bool) {
	share, ok := commonMultiple(multiply)
	if !ok {
		return rate{}, false
	}
	num, whole := int64(0), int64(1)
	if n > 0 {
		g := gcd(n, int64(d))
		num, whole = n/g, int64(d)/g
	}
	f := share / gcd(whole, share)
	if num > maxUnits/f || whole > maxUnits/f || burst > maxUnits/(whole*f) {
		return rate{}, false
	}
	r := rate{unitShares: newShares(burst, whole*f, multiply), num: num * f, span: maxSpanUnits}
	if num > 0 {
		r.span = maxSpanUnits / r.num
	}
	return r, true
}

// levelOf returns the units at t nanoseconds after the epoch in a bucket that
// will be full at the state full.
func (r *rate) levelOf(full, t int64) int64 {
	at := r.num * t
	return r.size - (max(full, at) - at)
}

// waitFor returns the nanoseconds until missing more units are there.
func (r *rate) waitFor(missing int64) time.Duration {
	if r.num == 0 {
		return Never
	}
	return time.Duration((missing-1)/r.num + 1)
}

// shifted returns the state full relative to an epoch ahead nanoseconds later.
func (r *rate) shifted(full int64, ahead uint64) int64 {
	hi, lo := bits.Mul64(uint64(r.num), ahead)
	if hi != 0 || lo > -longFull || full-int64(lo) < longFull {
		return longFull
	}
	return full - int64(lo)
}

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

func (r *rate) set(c []int64, at, level int64) {
	r.hold(c, min(level, r.size))
	r.back(c, at)
}

// back moves the cell from an epoch at nanoseconds later to the present one.
func (r *rate) back(c []int64, at int64) {
	if c[0] != longFull {
		c[0] += r.num * at
	}
}

// scale returns a*b/c, rounded up when up is 1, at most maxUnits.
func scale(a, b, c, up int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return maxUnits
	}
	q, rest := bits.Div64(hi, lo, uint64(c))
	if rest != 0 {
		q += uint64(up)
	}
	return int64(min(q, maxUnits))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
