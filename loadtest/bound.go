package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"liveroom/loadtest/internal/report"
)

// bound is a quota as one states it: any window of w seconds admits at most burst + rate·w.
type bound struct {
	rate  int64 // per second
	burst int64
}

// parseBound reads "100,200": 100 a second and a burst of 200. "" is no bound.
func parseBound(s string) (bound, error) {
	if s == "" {
		return bound{}, nil
	}
	rate, burst, ok := strings.Cut(s, ",")
	r, err := strconv.ParseInt(rate, 10, 32)
	b, err2 := strconv.ParseInt(burst, 10, 32)
	if !ok || err != nil || err2 != nil || r < 0 || b < 1 {
		return bound{}, fmt.Errorf("bound: want RATE,BURST like 100,100, have %q", s)
	}
	return bound{rate: r, burst: b}, nil
}

// stated reports whether there is a bound at all.
func (b bound) stated() bool { return b.burst > 0 }

// milli is the unit in which a bucket's level is counted: thousandths of a message, so that what comes back in a
// millisecond is the rate itself, a whole number.
const milli = 1000

// bucket is the exact bucket that a bound describes. It is drained by what was admitted, in the order of the stamps, and
// never refuses: how far below empty it gets is by how much the bound was broken.
//
// Why that is every window at once: a window that holds n stamps from a to b is within the bound when n ≤ burst +
// rate·w. The level after a stamp is the least, over all windows that end there, of burst + rate·w − n; so it is below
// zero exactly when one of them is not. One pass over the stamps instead of all pairs of them.
//
// Why w is one millisecond longer than b − a: a stamp is an instant cut to whole milliseconds, so the true instants lie
// in [a, a+1) and [b, b+1), and the true window is shorter than b − a + 1, never as long. Hence burst + rate·(b−a+1) may
// not be reached, let alone passed: at a positive rate one thousandth of a message is taken off. What this check calls
// broken is broken whatever was cut off; what hides from it is less than rate/1000 of a message.
type bucket struct {
	bound
	level int64 // milli
	last  int64 // Unix milliseconds
}

// newBucket is full at an instant.
func newBucket(b bound, at int64) *bucket { return &bucket{bound: b, level: b.full(), last: at} }

// full is the most a window may hold beyond rate·(b−a), in milli.
func (b bound) full() int64 { return b.burst*milli + max(b.rate-1, 0) }

// advance brings the level up to an instant, not before the last.
func (k *bucket) advance(at int64) {
	// A gap that fills the bucket anyway is cut, so that no product overflows.
	if gap := at - k.last; k.rate > 0 && gap > (k.full()-k.level)/k.rate {
		k.level = k.full()
	} else {
		k.level += gap * k.rate
	}
	k.last = at
}

// take drains one message at an instant and returns the level after it.
func (k *bucket) take(at int64) int64 {
	k.advance(at)
	k.level -= milli
	return k.level
}

// messages is a level in whole messages, rounded away from the bound's side.
func messages(level int64) int64 {
	if level < 0 {
		return -((-level + milli - 1) / milli)
	}
	return level / milli
}

// within is the most whole messages that a window of two stamps so many milliseconds apart may hold.
func (b bound) within(apart int64) int64 { return (b.full() + b.rate*apart) / milli }

// excess is by how many messages the worst window exceeds the bound; 0 when none does. Stamps are instants of admission
// in ascending Unix milliseconds.
func (b bound) excess(stamps []int64) int64 {
	if len(stamps) == 0 {
		return 0
	}
	k, worst := newBucket(b, stamps[0]), int64(0)
	for _, at := range stamps {
		worst = min(worst, k.take(at))
	}
	return -messages(worst)
}

// worst is the window that comes closest to the bound, or exceeds it most: it ends at the stamp after which the level was
// least, and begins with the first stamp after the bucket was last full. Empty for no stamps.
func (b bound) worst(stamps []int64) (from, to int64) {
	if len(stamps) == 0 {
		return 0, -1
	}
	k, least, began := newBucket(b, stamps[0]), int64(math.MaxInt64), stamps[0]
	for _, at := range stamps {
		if k.advance(at); k.level == b.full() {
			began = at
		}
		if level := k.take(at); level < least {
			least, from, to = level, began, at
		}
	}
	return from, to
}

// check holds instants of admission, ascending, to the bound; nil where there is nothing to check.
func (b bound) check(stamps []int64) *report.Bound {
	if !b.stated() || len(stamps) == 0 {
		return nil
	}
	x := &report.Bound{Rate: b.rate, Burst: b.burst, Admitted: int64(len(stamps)), Excess: b.excess(stamps)}
	x.Allowed = b.burst + b.rate*(stamps[len(stamps)-1]-stamps[0])/1000
	x.Used = float64(x.Admitted) / float64(max(x.Allowed, 1))
	return x
}
