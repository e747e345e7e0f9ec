package main

import (
	"context"
	"math/rand/v2"
	"time"
)

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
