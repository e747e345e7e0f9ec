package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
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

// class is the kind of message an attempt sends.
type class uint8

// The classes, in the order of every table.
const (
	danmaku class = iota
	gift
	like
	classes
)

// String is the class's name in reports, as in the server's metrics.
func (c class) String() string { return [...]string{"danmaku", "gift", "like"}[c] }

// letter begins the client id of an attempt of this class.
func (c class) letter() byte { return "dgl"[c] }

// mix is the share of each class among the attempts, in any unit.
type mix [classes]float64

// parseMix reads danmaku=80,like=18,gift=2; what is not named is 0.
func parseMix(s string) (mix, error) {
	var m mix
	for _, part := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		c, known := classNamed(name)
		share, err := strconv.ParseFloat(value, 64)
		if !ok || !known || err != nil || !(share >= 0 && share < 1e9) {
			return mix{}, fmt.Errorf("mix: want danmaku=80,gift=2,like=18, have %q", part)
		}
		m[c] = share
	}
	if m.sum() == 0 {
		return mix{}, errors.New("mix: want at least one share above 0")
	}
	return m, nil
}

func classNamed(name string) (class, bool) {
	for c := range classes {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

func (m mix) sum() float64 { return m[danmaku] + m[gift] + m[like] }

// draw picks the class of each of n attempts, the same for the same seed.
func (m mix) draw(n int, rng *rand.Rand) []class {
	out := make([]class, n)
	for i := range out {
		x := rng.Float64() * m.sum()
		for c := range classes {
			if x < m[c] {
				out[i] = c
				break
			}
			x -= m[c]
		}
	}
	return out
}

// corpusText holds lines as viewers type them, Chinese and English, written for this project: text that repeats like
// real chat does, so that sizes on the wire are those of a real room. A line holds nothing that JSON would escape.
//
//go:embed corpus.txt
var corpusText string

// corpus returns the lines.
func corpus() []string {
	return strings.Split(strings.TrimSpace(corpusText), "\n")
}

// waitFor waits for d or for ctx's end.
func waitFor(ctx context.Context, d time.Duration) error {
	return waitUntil(ctx, time.Now().Add(d))
}

// waitUntil waits for an instant or for ctx's end. Short waits are exact to some tens of microseconds on Linux; in a
// long one the end of ctx is noticed at once.
func waitUntil(ctx context.Context, at time.Time) error {
	const exact = 20 * time.Millisecond
	if d := time.Until(at) - exact; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for time.Now().Before(at) {
		if err := ctx.Err(); err != nil {
			return err
		}
		sleepUntil(at)
	}
	return ctx.Err()
}

// newRand is a generator that yields the same numbers for the same seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6c697665726f6f6d)) }
