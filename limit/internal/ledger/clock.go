package ledger

import (
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// clockAt returns the key's time for a call that is executed when the server's
// clock reads raw. It never goes back. A reading that is further ahead of what
// the caller saw last than it says can have passed is a step of the server's
// clock, or a call that came very late: the key's clock then goes on from the
// least that has passed, and stays behind for good. Nothing pushes it forward
// again: time that was held back may already have been used up by others.
func clockAt(s *state, c *cluster.Call, raw int64) int64 {
	last, offset := int64(0), int64(0)
	switch {
	case s != nil:
		last, offset = s.t, s.offset
	case c.Seen > 0:
		last = c.Seen + micros(c.LeastSince) // of a key that holds nothing yet
	}
	t := max(raw+offset, last)
	if c.Seen > 0 && t > c.Seen+microsUp(c.MostSince)+tolerance {
		t = max(last, c.Seen+micros(c.LeastSince))
	}
	return t
}

// micros are whole microseconds, rounded down.
func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

func microsUp(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// duration is the opposite of micros; never, and what no Duration can hold, is
// limit.Never.
func duration(micros int64) time.Duration {
	if micros == never || micros > int64(limit.Never/time.Microsecond) {
		return limit.Never
	}
	return time.Duration(micros) * time.Microsecond
}
