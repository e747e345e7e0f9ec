package fanout

import (
	"context"
	"time"
)

// loopPause is the least time between two rounds of a loop that were asked for.
const loopPause = 250 * time.Millisecond

// wake is a request for a round of a loop. Requests that come before the round begins are one.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

// soon never blocks.
func (w wake) soon() {
	select {
	case w <- struct{}{}:
	default: // asked for already
	}
}

// every calls do in each period, and soon after it is asked to, until ctx ends. A nil wake never asks.
func every(ctx context.Context, period time.Duration, asked wake, do func(context.Context)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-asked:
			select {
			case <-ctx.Done():
				return
			case <-time.After(loopPause):
			}
		}
		do(ctx)
	}
}
