package room

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// overload is how much a node gives up while it is behind. It reads one figure, the lag: how late this node comes to
// what viewers send. While that is over Config.Behind it climbs a ladder of rungs one by one, each giving up more than
// the one below; while it is under half of that it comes down again.
//
// Queueing time as the signal, and a threshold of tens of milliseconds, are those of DAGOR (Zhou et al., "Overload
// Control for Scaling WeChat Microservices", SoCC 2018): it rises with any shortage, whatever its cause, and needs no
// setting of what the machine can do. The order is that of what people would miss least.
type overload struct {
	ladder // owned by the hub's watch

	at      atomic.Int32  // the rung, for everybody
	counted atomic.Uint32 // danmaku, of which a share passes
}

// Rungs of the ladder. On each, what the lower ones give up is given up too.
const (
	rungNormal    = 0
	rungStretched = 3 // from 1 to here: each doubles the ticks
	rungLikes     = 4 // likes are refused
	rungDanmaku   = 5 // half of the danmaku is refused; on each further rung half of what is left
	rungChat      = 8 // all danmaku is refused
	rungNewcomers = 9 // new connections are refused; the last one
)

// Rests of the ladder. A step up shows in the lag only after what waits already is worked off, so the next waits for that
// in part; all the way up takes a quarter of a second at best. All the way down takes three quarters.
const (
	watchEvery = 25 * time.Millisecond
	restUp     = 25 * time.Millisecond
	restDown   = 125 * time.Millisecond
)

// ladder is the rung and when it was reached.
type ladder struct {
	behind  time.Duration // the lag above which it goes up
	rung    int
	stepped limit.Instant // when the rung was reached
	fine    limit.Instant // since when the lag has been under half of behind; never: it is not
}

// observe takes a reading of the lag and returns the rung to be on.
func (l *ladder) observe(now limit.Instant, lag time.Duration) int {
	if lag >= l.behind/2 {
		l.fine = never
	} else if l.fine == never {
		l.fine = now
	}
	switch since := now.Sub(l.stepped); {
	case lag > l.behind && l.rung < rungNewcomers && since >= max(restUp, min(lag/2, restDown)):
		l.rung, l.stepped = l.rung+1, now
	case l.fine != never && l.rung > rungNormal && min(since, now.Sub(l.fine)) >= restDown:
		l.rung, l.stepped = l.lower(), now
	}
	return l.rung
}

// lower is the rung below. What is refused is taken up again in large steps, since the next reading tells whether that
// was too much; a stretched tick costs viewers little.
func (l *ladder) lower() int {
	if l.rung > rungStretched {
		return max(rungStretched, l.rung-3)
	}
	return l.rung - 1
}

// watch keeps the ladder until the hub ends.
func (h *Hub) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	h.overload.behind, h.overload.fine = h.cfg.Behind, never
	for {
		select {
		case <-ticker.C:
			now := h.gate.Now()
			lag := max(h.cfg.Lag(), h.turnstile.age(now), h.giftLine.age(now))
			rung := h.overload.observe(now, lag)
			h.overload.at.Store(int32(rung))
			h.cfg.Metrics.behind(lag, rung, h.stretched(h.cfg.Audience.Tick))
		case <-h.done:
			return
		}
	}
}

// stretched is what a tick of that length is while the node is on its present rung.
func (h *Hub) stretched(tick time.Duration) time.Duration {
	return tick << min(h.overload.at.Load(), rungStretched)
}

// shed returns why a request is refused while the node is behind, nil when it may pass. Gifts and moderation always may.
func (h *Hub) shed(c protocol.Class) *protocol.Error {
	switch rung, yields := h.overload.at.Load(), c.Kind().Yields; {
	case rung < rungLikes:
	case yields == protocol.First, yields == protocol.ByHalves && rung >= rungDanmaku && !h.lucky(rung):
		return h.tooMuch(c)
	}
	return nil
}

// lucky reports whether a danmaku is of the share that passes on a rung.
func (h *Hub) lucky(rung int32) bool {
	return rung < rungChat && h.overload.counted.Add(1)%(1<<(rung-rungDanmaku+1)) == 0
}

// tooMuch refuses a message, and counts it.
func (h *Hub) tooMuch(c protocol.Class) *protocol.Error {
	h.cfg.Shed(c)
	return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: shedRetry + rand.N(shedRetry)}
}

// shedRetry is the wait told with what was shed; each is told another one between this and its double.
const shedRetry = 2 * time.Second

// Newcomers reports whether the node takes new sessions, and otherwise when one may come back at the earliest. Sessions
// are the last thing that a node that is behind gives up.
func (h *Hub) Newcomers() (retry time.Duration, ok bool) {
	if h.overload.at.Load() < rungNewcomers {
		return 0, true
	}
	return shedRetry, false
}

// turnstile is where danmaku and likes, and in one of their own gifts, wait for their turn to be handled when many come at once. Without
// it each of them would be a goroutine that may run, and everything else, a gift on its way through the ledger above all, would stand in
// line behind all of them each time it lets go of the processor. So in one slice only so many are handled, and then whatever
// else may run has its turn first. Control never waits here.
type turnstile struct {
	gifts bool      // waits by giftWaitMost; fixed
	spare sync.Pool // of waiters

	mu lock.Mutex[lock.Turnstile]
	// guarded by mu
	waiting []*waiter // in order; those before head are gone
	head    int
	left    int           // to be handled in this slice
	began   limit.Instant // of this slice
	driving bool          // a driver exists
	busy    limit.Instant // since when it does
}

// waiter is one request that waits.
type waiter struct {
	since limit.Instant
	come  chan bool // one element; false: waited too long
}

const (
	// sliceMost is how many requests one processor handles in a slice: some 20 µs each.
	sliceMost = 16
	// giftTakes is about twice what it takes to admit a gift: where the others' turn is long, gifts have half of the time and not
	// sixteen places, since the ledger stores a thousand as soon as sixteen.
	giftTakes = 100 * time.Microsecond
	// sliceLasts is the shortest time between two slices while nobody waits.
	sliceLasts = 500 * time.Microsecond
	// waitMost is how long a request waits before it is refused, since its sender would send it again.
	waitMost = 250 * time.Millisecond
	// giftWaitMost is the same of gifts, whose senders are told within three seconds whatever comes of them, two of which the ledger may take.
	// Once so long somebody has waited at any time, it is giftWaitBusy: what waits here keeps what its sender sends next in the socket, where
	// nobody refuses it. (A standing queue gets the short bound, a burst the long one: Nichols and Jacobson, "Controlling Queue Delay", 2012.)
	giftWaitMost = 500 * time.Millisecond
	giftWaitBusy = 50 * time.Millisecond
)

// waitInLine returns when it is a request's turn; false when that took too long.
func (h *Hub) waitInLine(q *turnstile, now limit.Instant) bool {
	q.mu.Lock()
	if q.passLocked(now, sliceMost*h.cfg.Audience.Workers) {
		q.mu.Unlock()
		return true
	}
	t, _ := q.spare.Get().(*waiter)
	if t == nil {
		t = &waiter{come: make(chan bool, 1)}
	}
	t.since = now
	q.waiting = append(q.waiting, t)
	if !q.driving {
		q.busy = now
		q.driving = h.spawn(func() { h.drive(q) })
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
		late := now.Sub(t.since) > q.patienceLocked(now)
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

// patienceLocked is how long a request may wait.
func (q *turnstile) patienceLocked(now limit.Instant) time.Duration {
	switch {
	case !q.gifts:
		return waitMost
	case now.Sub(q.busy) > giftWaitMost:
		return giftWaitBusy
	}
	return giftWaitMost
}

// drive calls those who wait, slice by slice, until nobody does.
func (h *Hub) drive(q *turnstile) {
	for more := true; more; {
		runtime.Gosched() // what else may run goes first
		now := h.gate.Now()
		q.mu.Lock()
		most := sliceMost * h.cfg.Audience.Workers
		if q.gifts {
			most = max(most, int(now.Sub(q.began)/giftTakes))
		}
		q.began, q.left = now, 0
		q.callLocked(now, most)
		more = q.head < len(q.waiting)
		q.driving = more
		q.mu.Unlock()
	}
}

// giftMayPass returns when it is a gift's turn; false, and the gift is counted, when that took too long, or when the ledger has so much
// before it that it would be refused there.
func (h *Hub) giftMayPass(now limit.Instant) bool {
	if !h.waitInLine(&h.giftLine, now) {
		h.cfg.Shed(protocol.ClassGift)
		return false
	}
	return !h.bus.Late()
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
