package audience

import (
	"time"

	"liveroom/limit"
)

// likes is a room's total over all nodes, as stored, which never falls, and what of it was shown. Guarded by Audience.mu.
type likes struct {
	total, shown int64
	shownAt      limit.Instant
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

// Likes takes the room's total. One below what is known is older than it and ignored.
func (a *Audience[V]) Likes(total int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.likes.total = max(a.likes.total, total)
	if a.shards.size == 0 {
		a.likes.shown = a.likes.total
		return
	}
	if due := a.likes.dueLocked(a.env.LikeEvery); due != never {
		a.pokeLocked(due)
	}
}

// headcount is a room's sessions, and the persons who have them.
type headcount struct{ sessions, people int }

// crowd is how many are in a room, here and elsewhere. Guarded by Audience.mu.
type crowd struct {
	here, elsewhere int // sessions
	people          int // on all nodes
	shown           headcount
	shownAt         limit.Instant
}

func (c *crowd) online() int { return c.here + c.elsewhere }

func (c *crowd) count() headcount { return headcount{c.online(), c.people} }

// dueLocked returns when the count is to be shown.
func (c *crowd) dueLocked(every time.Duration) limit.Instant {
	if c.here == 0 || c.count() == c.shown {
		return never
	}
	return c.shownAt.Add(every)
}

// takeLocked returns what is to be shown now, if anything.
func (c *crowd) takeLocked(now limit.Instant, every time.Duration) (count headcount, show bool) {
	if now < c.dueLocked(every) {
		return count, false
	}
	c.shown, c.shownAt = c.count(), now
	return c.shown, true
}

// countLocked takes the number of members over.
func (a *Audience[V]) countLocked() {
	a.crowd.here = a.shards.size
	a.online.Store(int64(a.crowd.online()))
	if due := a.crowd.dueLocked(a.env.OnlineEvery); due != never {
		a.pokeLocked(due)
	}
}

// Elsewhere takes how many sessions are in the room on other nodes, and how many persons on all.
func (a *Audience[V]) Elsewhere(sessions, people int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.crowd.elsewhere, a.crowd.people = sessions, people
	a.countLocked()
}

// Online is the number of sessions in the room on all nodes, as far as this one knows.
func (a *Audience[V]) Online() int { return int(a.online.Load()) }

// Counts are the sessions on all nodes, those here, and the likes.
func (a *Audience[V]) Counts() (online, here int, likes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.crowd.online(), a.crowd.here, a.likes.total
}

// Here is the number of sessions in the room on this node.
func (a *Audience[V]) Here() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shards.size
}
