package main

import (
	"fmt"
	"strconv"
	"strings"
)

// bound is a room's danmaku quota as one states it: any window of w seconds admits at most burst + rate·w.
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

// excess is by how many messages the worst window exceeds the bound; 0 when none does. Stamps are instants of admission
// in ascending Unix milliseconds; since they are cut to whole ones, each window may be a millisecond longer than it looks.
// It is a bucket that is drained by every message and says how far below empty it got.
func (b bound) excess(stamps []int64) int64 {
	if len(stamps) == 0 {
		return 0
	}
	const unit = 1000             // thousandths of a message, so that rate per millisecond is whole
	full := b.burst*unit + b.rate // the extra millisecond
	level, worst, last := full, int64(0), stamps[0]
	for _, at := range stamps {
		level = min(full, level+(at-last)*b.rate)
		last = at
		level -= unit
		worst = min(worst, level)
	}
	return (-worst + unit - 1) / unit
}
