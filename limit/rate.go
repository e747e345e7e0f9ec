package limit

import (
	"math/bits"
	"time"
)

// rate is a token bucket's numbers as exact integers. Levels are counted in
// units such that a nanosecond brings num of them and a token costs den:
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
	num  int64 // units per nanosecond; 0 when nothing comes after the burst
	den  int64 // units per token
	size int64 // burst in units
	span int64 // nanoseconds around the epoch within which num*t stays in range

	// By role class: the units that a token costs, and the largest cost that
	// a full bucket grants. A role with five times the limit pays a fifth.
	unit []int64
	most []int64
}

const (
	// maxUnits bounds burst*den, so that time (at most maxSpanUnits), size
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
	share := int64(1)
	for _, m := range multiply {
		if f := m / gcd(m, share); share <= maxUnits/f {
			share *= f
		} else {
			return rate{}, false
		}
	}
	num, den := int64(0), int64(1)
	if n > 0 {
		g := gcd(n, int64(d))
		num, den = n/g, int64(d)/g
	}
	if f := share / gcd(den, share); f > 1 {
		if num > maxUnits/f || den > maxUnits/f {
			return rate{}, false
		}
		num, den = num*f, den*f
	}
	if burst > maxUnits/den {
		return rate{}, false
	}
	r := rate{num: num, den: den, size: burst * den, span: maxSpanUnits}
	if num > 0 {
		r.span = maxSpanUnits / num
	}
	for _, m := range multiply {
		r.unit = append(r.unit, den/m)
		r.most = append(r.most, r.size/(den/m))
	}
	return r, true
}

// wait returns the nanoseconds until missing more units are there.
func (r *rate) wait(missing int64) time.Duration {
	if r.num == 0 {
		return Never
	}
	return time.Duration((missing-1)/r.num + 1)
}

// level returns the units in the bucket of state full at t nanoseconds after
// the epoch.
func (r *rate) level(full, t int64) int64 {
	at := r.num * t
	return r.size - (max(full, at) - at)
}

// shift moves the state to an epoch that lies ahead nanoseconds later.
func (r *rate) shift(full int64, ahead uint64) int64 {
	hi, lo := bits.Mul64(uint64(r.num), ahead)
	if hi != 0 || lo > -longFull || full-int64(lo) < longFull {
		return longFull
	}
	return full - int64(lo)
}

// carry returns the state at the epoch of a bucket with these numbers that
// takes over from one of old numbers holding level units: the same number of
// tokens, rounded down to a whole unit, at most the burst.
func (r *rate) carry(old *rate, level int64) int64 {
	if level < 0 {
		return r.size + scale(-level, r.den, old.den, 1)
	}
	if kept := scale(level, r.den, old.den, 0); kept < r.size {
		return r.size - kept
	}
	return longFull
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
