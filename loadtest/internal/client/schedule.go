package client

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

// Phase is a stretch of time in which the rate of attempts moves in a straight line.
type Phase struct {
	Lasts time.Duration
	From  float64 // attempts per second at its start
	To    float64 // and at its end
}

// area is the number of attempts due within the phase's first t seconds.
func (p Phase) area(t float64) float64 {
	return p.From*t + (p.To-p.From)*t*t/(2*p.Lasts.Seconds())
}

// invert is the instant, in seconds, at which area reaches a.
func (p Phase) invert(a float64) float64 {
	if a <= 0 {
		return 0
	}
	slope := (p.To - p.From) / p.Lasts.Seconds()
	if math.Abs(slope) < 1e-9 {
		return a / p.From
	}
	// The smaller root of slope/2·t² + from·t − a, in the form that does not cancel.
	disc := max(0, p.From*p.From+2*slope*a)
	return 2 * a / (p.From + math.Sqrt(disc))
}

// Steady is one phase at one rate.
func Steady(lasts time.Duration, rate float64) Phase {
	return Phase{Lasts: lasts, From: rate, To: rate}
}

// Arrivals are the instants at which attempts are due, offsets from the start in nanoseconds, ascending.
type Arrivals []int64

// Schedule lays out the attempts of phases one after the other. Without rng they are evenly spaced; with one they are a
// Poisson process of the same rate, the same for the same seed.
func Schedule(phases []Phase, rng *rand.Rand) (Arrivals, error) {
	total := 0.0
	for i, p := range phases {
		if p.Lasts <= 0 || p.From < 0 || p.To < 0 {
			return nil, fmt.Errorf("phase %d: want a length above 0 and rates of 0 or more", i)
		}
		total += p.area(p.Lasts.Seconds())
	}
	if total > maxAttempts {
		return nil, fmt.Errorf("%.0f attempts are more than one run can hold (%d): lower the rate or the duration", total, maxAttempts)
	}
	out := make(Arrivals, 0, int(total)+1)
	start, before := 0.0, 0.0 // seconds and attempts before this phase
	due := next(-1, rng)
	for _, p := range phases {
		length := p.Lasts.Seconds()
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

// Length is the sum of the phases.
func Length(phases []Phase) time.Duration {
	var sum time.Duration
	for _, p := range phases {
		sum += p.Lasts
	}
	return sum
}

// Class is the kind of message an attempt sends.
type Class uint8

// The classes, in the order of every table.
const (
	Danmaku Class = iota
	Gift
	Like
	Classes
)

// String is the class's name in reports, as in the server's metrics.
func (c Class) String() string { return [...]string{"danmaku", "gift", "like"}[c] }

// Mix is the share of each class among the attempts, in any unit.
type Mix [Classes]float64

// ParseMix reads danmaku=80,like=18,gift=2; what is not named is 0.
func ParseMix(s string) (Mix, error) {
	var m Mix
	for _, part := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		c, known := classNamed(name)
		share, err := strconv.ParseFloat(value, 64)
		if !ok || !known || err != nil || !(share >= 0 && share < 1e9) {
			return Mix{}, fmt.Errorf("mix: want danmaku=80,gift=2,like=18, have %q", part)
		}
		m[c] = share
	}
	if m.Sum() == 0 {
		return Mix{}, errors.New("mix: want at least one share above 0")
	}
	return m, nil
}

func classNamed(name string) (Class, bool) {
	for c := range Classes {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

func (m Mix) Sum() float64 { return m[Danmaku] + m[Gift] + m[Like] }

// Draw picks the class of each of n attempts, the same for the same seed.
func (m Mix) Draw(n int, rng *rand.Rand) []Class {
	out := make([]Class, n)
	for i := range out {
		x := rng.Float64() * m.Sum()
		for c := range Classes {
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

// WaitFor waits for d or for ctx's end.
func WaitFor(ctx context.Context, d time.Duration) error {
	return WaitUntil(ctx, time.Now().Add(d))
}

// WaitUntil waits for an instant or for ctx's end. Short waits are exact to some tens of microseconds on Linux; in a
// long one the end of ctx is noticed at once.
func WaitUntil(ctx context.Context, at time.Time) error {
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
		SleepUntil(at)
	}
	return ctx.Err()
}

// NewRand is a generator that yields the same numbers for the same seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6c697665726f6f6d)) }
