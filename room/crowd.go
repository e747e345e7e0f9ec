package room

import (
	"time"

	"liveroom/limit"
)

// crowd is how many sessions are in a room, here and elsewhere. Guarded by Room.mu.
type crowd struct {
	here, elsewhere int
	shown           int
	shownAt         limit.Instant
}

func (c *crowd) online() int { return c.here + c.elsewhere }

// dueLocked returns when the count is to be shown.
func (c *crowd) dueLocked(every time.Duration) limit.Instant {
	if c.here == 0 || c.online() == c.shown {
		return never
	}
	return c.shownAt.Add(every)
}

// takeLocked returns what is to be shown now, if anything.
func (c *crowd) takeLocked(now limit.Instant, every time.Duration) (online int, show bool) {
	if now < c.dueLocked(every) {
		return 0, false
	}
	c.shown, c.shownAt = c.online(), now
	return c.shown, true
}

// countLocked takes the audience's size over.
func (r *Room) countLocked() {
	r.crowd.here = r.audience.size
	r.online.Store(int64(r.crowd.online()))
	if due := r.crowd.dueLocked(r.hub.cfg.OnlineEvery); due != never {
		r.pokeLocked(due)
	}
}
