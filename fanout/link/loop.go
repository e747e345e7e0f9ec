package link

import (
	"context"
	"time"
)

// Pause is the least time between two rounds of a loop that were asked for.
const Pause = 250 * time.Millisecond

// Wake is a request for a round of a loop. Requests that come before the round begins are one.
type Wake chan struct{}

// NewWake makes one.
func NewWake() Wake { return make(Wake, 1) }

// Soon never blocks.
func (w Wake) Soon() {
	select {
	case w <- struct{}{}:
	default: // asked for already
	}
}

// Every calls do in each period, and soon after it is asked to, until ctx ends. A nil Wake never asks.
func Every(ctx context.Context, period time.Duration, asked Wake, do func(context.Context)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-asked:
			if !Rest(ctx, Pause) {
				return
			}
		}
		do(ctx)
	}
}

// Rest waits, and returns false when ctx ended before.
func Rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
