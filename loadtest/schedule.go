package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// maxAttempts bounds the memory of one schedule: 17 bytes each, and 4 more per reader.
const maxAttempts = 20_000_000

// phase is a stretch of time in which the rate of attempts moves in a straight line.
type phase struct {
	lasts time.Duration
	from  float64 // attempts per second at its start
	to    float64 // and at its end
}

// area is the number of attempts due within the phase's first t seconds.
func (p phase) area(t float64) float64 {
	return p.from*t + (p.to-p.from)*t*t/(2*p.lasts.Seconds())
}

// invert is the instant, in seconds, at which area reaches a.
func (p phase) invert(a float64) float64 {
	if a <= 0 {
		return 0
	}
	slope := (p.to - p.from) / p.lasts.Seconds()
	if math.Abs(slope) < 1e-9 {
		return a / p.from
	}
	// The smaller root of slope/2·t² + from·t − a, in the form that does not cancel.
	disc := max(0, p.from*p.from+2*slope*a)
	return 2 * a / (p.from + math.Sqrt(disc))
}

// steady is one phase at one rate.
func steady(lasts time.Duration, rate float64) phase {
	return phase{lasts: lasts, from: rate, to: rate}
}

// arrivals are the instants at which attempts are due, offsets from the start in nanoseconds, ascending.
type arrivals []int64

// schedule lays out the attempts of phases one after the other. Without rng they are evenly spaced; with one they are a
// Poisson process of the same rate, the same for the same seed.
func schedule(phases []phase, rng *rand.Rand) (arrivals, error) {
	total := 0.0
	for i, p := range phases {
		if p.lasts <= 0 || p.from < 0 || p.to < 0 {
			return nil, fmt.Errorf("phase %d: want a length above 0 and rates of 0 or more", i)
		}
		total += p.area(p.lasts.Seconds())
	}
	if total > maxAttempts {
		return nil, fmt.Errorf("%.0f attempts are more than one run can hold (%d): lower the rate or the duration", total, maxAttempts)
	}
	out := make(arrivals, 0, int(total)+1)
	start, before := 0.0, 0.0 // seconds and attempts before this phase
	due := next(-1, rng)
	for _, p := range phases {
		length := p.lasts.Seconds()
		for area := p.area(length); due-before < area; due = next(due, rng) {
			t := start + min(p.invert(due-before), length)
			out = append(out, int64(t*1e9))
		}
		start += length
		before += p.area(length)
	}
	return out, nil
}

// next is the position, in expected attempts, of the attempt after the one at last.
func next(last float64, rng *rand.Rand) float64 {
	switch {
	case rng == nil:
		return last + 1
	case last < 0:
		return rng.ExpFloat64()
	}
	return last + rng.ExpFloat64()
}

// length is the sum of the phases.
func length(phases []phase) time.Duration {
	var sum time.Duration
	for _, p := range phases {
		sum += p.lasts
	}
	return sum
}
