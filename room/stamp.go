package room

import (
	"sync/atomic"
	"time"

	"liveroom/limit"
)

// stamper turns instants of the gate's clock into times that people and other nodes understand. A message carries the
// instant at which it was admitted, not the one at which its goroutine came to look at a clock: between the two a
// process may be stopped for seconds, and the quota is kept by the first.
type stamper struct {
	clock limit.Clock
	wall  func() time.Time

	offset atomic.Int64 // Unix ns at the clock's zero
	read   atomic.Int64 // the clock, when offset was taken; 0: never
}

const (
	// offsetFor is how long an offset is used, so that corrections of the wall clock show.
	offsetFor = time.Second
	// readWithin bounds how far apart the two readings of an offset may be. One that took longer was interrupted, and is
	// taken again the next time.
	readWithin = 100 * time.Microsecond
)

func newStamper(clock limit.Clock, wall func() time.Time) *stamper {
	return &stamper{clock: clock, wall: wall}
}

// at returns an instant as Unix ms.
func (s *stamper) at(i limit.Instant) int64 {
	now := s.clock()
	last := limit.Instant(s.read.Load())
	if last == 0 || now.Sub(last) >= offsetFor {
		wall := s.wall().UnixNano()
		if after := s.clock(); last == 0 || after.Sub(now) <= readWithin {
			s.offset.Store(wall - int64(now))
			s.read.Store(max(int64(now), 1))
		}
	}
	return (s.offset.Load() + int64(i)) / int64(time.Millisecond)
}

// admittedAt is when a decision that was asked for at now let a message out, as Unix ms: what is paced, at its turn.
func (h *Hub) admittedAt(now limit.Instant, d limit.Decision) int64 {
	return h.stamps.at(max(d.At, now).Add(min(d.Delay, LongestDelay)))
}
