package room

import (
	"time"

	"liveroom/limit"
)

// likes is a room's folded taps: counted here, handed to the bus once a second, shown once they came back as a total,
// which never falls. Guarded by Room.mu.
type likes struct {
	pending int64 // counted here and not taken by the bus yet
	folding bool  // a folder goroutine exists

	total   int64 // over all nodes, as stored
	shown   int64
	shownAt limit.Instant
}

// dueLocked returns when the total is to be shown.
func (l *likes) dueLocked(every time.Duration) limit.Instant {
	if l.total <= l.shown {
		return never
	}
	return l.shownAt.Add(every)
}

// takeLocked returns what is to be shown now, if anything.
func (l *likes) takeLocked(now limit.Instant, every time.Duration) (delta, total int64, show bool) {
	if now < l.dueLocked(every) {
		return 0, 0, false
	}
	delta = l.total - l.shown
	l.shown, l.shownAt = l.total, now
	return delta, l.total, true
}

// like counts taps.
func (r *Room) like(n int64) {
	if n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.likes.pending += n
	if !r.likes.folding {
		r.likes.folding = r.hub.spawn(r.fold)
	}
}

// fold hands what was counted to the bus, once per LikeEvery, until nothing is left.
func (r *Room) fold() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for r.handOver() {
		timer.Reset(r.hub.cfg.LikeEvery)
		select {
		case <-timer.C:
		case <-r.hub.done:
			return
		}
	}
}

// handOver gives the bus what is pending; false when nothing is, in which case the caller is no folder any more.
func (r *Room) handOver() bool {
	r.mu.Lock()
	n := r.likes.pending
	r.likes.pending = 0
	if n == 0 {
		r.likes.folding = false
	}
	r.mu.Unlock()
	if n == 0 {
		return false
	}
	if err := r.hub.bus.AddLikes(r.id, n); err != nil {
		r.hub.troubled("likes wait for the bus", r.id, err)
		r.mu.Lock()
		r.likes.pending += n
		r.mu.Unlock()
	}
	return true
}
