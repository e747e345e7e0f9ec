package room

import (
	"runtime"
	"sync"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// turnstile is where danmaku and likes wait for their turn to be handled when many come at once. Without it each of them would
// be a goroutine that may run, and everything else, a gift on its way through the ledger above all, would stand in line
// behind all of them each time it lets go of the processor. So in one slice only so many are handled, and then whatever
// else may run has its turn first. Gifts and control never wait here.
type turnstile struct {
	spare sync.Pool // of turns

	mu lock.Mutex[lock.Turnstile]
	// guarded by mu
	waiting []*turn // in order; those before head are gone
	head    int
	left    int           // turns left in this slice
	began   limit.Instant // of this slice
	driving bool          // a driver exists
}

// turn is one request that waits.
type turn struct {
	since limit.Instant
	come  chan bool // one element; false: waited too long
}

const (
	// sliceTurns is how many requests one processor handles in a slice: some 20 µs each.
	sliceTurns = 16
	// sliceLasts is the shortest time between two slices while nobody waits.
	sliceLasts = 500 * time.Microsecond
	// turnMost is how long a request waits before it is refused, since its sender would send it again.
	turnMost = 250 * time.Millisecond
)

// awaitTurn returns when it is a request's turn; false when that took too long.
func (h *Hub) awaitTurn(now limit.Instant) bool {
	q := &h.turnstile
	q.mu.Lock()
	if q.passLocked(now, sliceTurns*h.cfg.Workers) {
		q.mu.Unlock()
		return true
	}
	t, _ := q.spare.Get().(*turn)
	if t == nil {
		t = &turn{come: make(chan bool, 1)}
	}
	t.since = now
	q.waiting = append(q.waiting, t)
	if !q.driving {
		q.driving = h.spawn(h.drive)
		if !q.driving { // the hub has ended
			q.callLocked(now, len(q.waiting))
		}
	}
	q.mu.Unlock()
	ok := <-t.come
	q.spare.Put(t)
	return ok
}

// passLocked reports whether a request may go on at once.
func (q *turnstile) passLocked(now limit.Instant, most int) bool {
	if q.driving {
		return false
	}
	if now.Sub(q.began) >= sliceLasts {
		q.began, q.left = now, most
	}
	if q.left == 0 {
		return false
	}
	q.left--
	return true
}

// callLocked lets the first n who wait go on.
func (q *turnstile) callLocked(now limit.Instant, n int) {
	for ; n > 0 && q.head < len(q.waiting); q.head++ {
		t := q.waiting[q.head]
		q.waiting[q.head] = nil
		late := now.Sub(t.since) > turnMost
		t.come <- !late
		if !late { // a refusal costs little
			n--
		}
	}
	if 2*q.head >= len(q.waiting) { // so that a line that never ends does not grow for ever
		n := copy(q.waiting, q.waiting[q.head:])
		clear(q.waiting[n:])
		q.waiting, q.head = q.waiting[:n], 0
	}
}

// drive calls those who wait, slice by slice, until nobody does.
func (h *Hub) drive() {
	q := &h.turnstile
	for more := true; more; {
		runtime.Gosched() // what else may run goes first
		now := h.gate.Now()
		q.mu.Lock()
		q.began, q.left = now, 0
		q.callLocked(now, sliceTurns*h.cfg.Workers)
		more = q.head < len(q.waiting)
		q.driving = more
		q.mu.Unlock()
	}
}

// age is how long the first in line has waited.
func (q *turnstile) age(now limit.Instant) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		return 0
	}
	return now.Sub(q.waiting[q.head].since)
}
