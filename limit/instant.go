package limit

import (
	"math"
	"time"
)

// Instant is a reading of a monotonic clock in nanoseconds. Only differences
// between instants of the same clock mean anything; the whole range of int64
// may be used, so two instants can be 584 years apart.
type Instant int64

// Clock returns the present Instant. It must not run backwards for one caller;
// callers on different goroutines may see readings out of order, which every
// algorithm of this package tolerates without granting anything twice.
type Clock func() Instant

// Never is the RetryAfter of a refusal that no wait can cure: a cost above the
// burst, or a spent bucket of rate 0.
const Never = time.Duration(math.MaxInt64)

// NewClock returns a Clock that counts from its own start. It reads the
// runtime's monotonic clock, so steps of the wall clock do not show.
func NewClock() Clock {
	start := time.Now()
	return func() Instant { return Instant(time.Since(start)) }
}

// Add returns the instant d after i, saturating at the ends of the range.
func (i Instant) Add(d time.Duration) Instant {
	sum := i + Instant(d)
	switch {
	case d > 0 && sum < i:
		return math.MaxInt64
	case d < 0 && sum > i:
		return math.MinInt64
	}
	return sum
}

// Sub returns i-j, saturating at the ends of time.Duration's range.
func (i Instant) Sub(j Instant) time.Duration {
	diff := i - j
	switch {
	case i > j && diff < 0:
		return math.MaxInt64
	case i < j && diff > 0:
		return math.MinInt64
	}
	return time.Duration(diff)
}

// ticks returns the nanoseconds from epoch to now when now is at most span
// later. A reading more than span before the epoch counts as that far. It
// reports false when now is later than that.
func ticks(epoch, now Instant, span int64) (int64, bool) {
	if t := int64(now - epoch); now >= epoch {
		return t, uint64(t) <= uint64(span)
	}
	if back := uint64(epoch) - uint64(now); back < uint64(span) {
		return -int64(back), true
	}
	return -span, true
}
