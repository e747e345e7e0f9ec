package audience

import (
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// Viewer is a member as its audience sees it. No method blocks or calls back into this package, but for Spot, which is the
// audience's own.
type Viewer interface {
	comparable
	// Spot is where the viewer stands; the same pointer each time.
	Spot() *Spot
	// Deliver hands over a tick.
	Deliver(*protocol.Broadcast)
	// Release sends what the viewer holds back and no tick has taken along.
	Release()
}

// Env is what the audiences of one node share. Fixed.
type Env struct {
	Config
	// Clock is that of ticks and ages; it must run with the runtime's timers.
	Clock limit.Clock
	// Wall turns an instant of Clock into Unix ms.
	Wall func(limit.Instant) int64
	// Stretch returns what a tick of that length is while the node is behind.
	Stretch func(time.Duration) time.Duration
	// Run has a goroutine that somebody waits for call f; false when none may any more.
	Run     func(f func()) bool
	Done    <-chan struct{} // closed when goroutines shall end
	Metrics *Metrics
}

// Audience is a room's members and what they have been shown.
type Audience[V Viewer] struct {
	// fixed
	env    *Env
	room   string
	wake   chan struct{} // one element: makes the runner look again
	runner func()        // run, made once

	online atomic.Int64 // sessions here and elsewhere

	// mu guards the rest.
	mu      lock.Mutex[lock.Audience]
	shards  shards[V]
	tick    tick[V]
	history history
	authors authors
	gifts   giftOrder
	likes   likes
	crowd   crowd
}

// New returns the audience of a room in which nobody is yet.
func New[V Viewer](room string, env *Env) *Audience[V] {
	a := &Audience[V]{env: env, room: room, wake: make(chan struct{}, 1), history: history{most: env.HistoryCount}, shards: shards[V]{most: shardMax}}
	now := env.Clock()
	a.runner, a.tick.release = a.run, never
	a.tick.flushed = now.Add(-env.Tick)
	a.likes.shownAt = now.Add(-env.LikeEvery)
	a.crowd.shownAt = now.Add(-env.OnlineEvery)
	return a
}

// View is the room at the instant of a join: what is not in it reaches the member live.
type View struct {
	Online int // sessions
	People int // who have them
	Likes  int64
	Gift   uint64   // sequence of the last gift that is not to come live
	Recent [][]byte // danmaku that are not to come live
	Chat   int64    // ts of the newest of all danmaku so far that are not to come live, 0 for none
	Last   string   // its mid, "" for none
	Whole  bool     // Recent has all danmaku since the last one that the member saw
}

// Join puts v among those who get the next flush, and returns what went before it, in one critical section: so v misses
// nothing and sees nothing twice. People are in the room now, v's among them.
func (a *Audience[V]) Join(v V, people int, resume *protocol.Cursor) View {
	now := a.env.Clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	out := View{Likes: a.likes.total, Gift: a.gifts.shown, Whole: true}
	a.history.expire(now.Add(-a.env.HistoryAge))
	from := awake
	if resume != nil {
		from, out.Whole = a.history.left(resume, now, a.env.Wall)
	}
	if from != awake { // two nodes get two writers' danmaku in an order of their own
		from = from.Add(-a.env.ResumeOverlap)
	}
	var newest *spoken
	out.Recent, newest = a.history.since(from, a.tick.unshown)
	out.Chat, out.Last = newest.ts, newest.id()
	a.shards.add(v)
	a.crowd.people = people
	if a.shards.size == 1 {
		a.crowd.shown = headcount{a.shards.size + a.crowd.elsewhere, people} // told in the welcome
	}
	a.countLocked()
	out.Online, out.People = a.crowd.online(), people
	return out
}

// Leave takes v out. People are in the room without it.
func (a *Audience[V]) Leave(v V, people int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shards.remove(v)
	a.crowd.people = people
	a.countLocked()
}

// Where returns the members that match, which must not block and is called under the audience's lock.
func (a *Audience[V]) Where(match func(V) bool) []V {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []V
	for _, s := range a.shards.all {
		for _, v := range s.members {
			if match(v) {
				found = append(found, v)
			}
		}
	}
	return found
}

// Restore puts what was there before the room opened in front of what came in since. Recent danmaku count as come when the
// room opened; nothing is known of what was said before floor. Of those that deleted reports nothing is shown.
func (a *Audience[V]) Restore(recent [][]byte, opened, floor limit.Instant, deleted func(event []byte) bool, likes int64, lastGift uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recallLocked(recent, opened, floor, deleted)
	a.likes.total = max(a.likes.total, likes)
	a.likes.shown = a.likes.total
	a.gifts.last = max(a.gifts.last, lastGift)
	a.gifts.shown = a.gifts.last
}

// Message appends an admitted event to the tick, and a danmaku to the history. Its bytes must not change any more.
func (a *Audience[V]) Message(c protocol.Class, event []byte) {
	ts, now := protocol.EventTS(event), a.env.Clock()
	stamp, released := ts, c == protocol.ClassDanmaku && protocol.EventReleased(event)
	if released {
		stamp = 0 // it says nothing of how long a message is on its way
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tick.batch.Size() >= maxTickBytes {
		if c.Kind().Behind == protocol.Missed {
			a.tick.missed++
		}
		a.env.Metrics.missed.Inc()
		return
	}
	if c == protocol.ClassDanmaku {
		if released && a.history.find(protocol.EventMID(event)) != nil {
			return // shown once more, by another node than the one that ended while it showed it
		}
		a.history.expire(now.Add(-a.env.HistoryAge))
		a.history.add(spoken{event: event, ts: ts, at: now})
		a.authors.note(event)
	}
	if a.shards.size == 0 {
		return
	}
	if c == protocol.ClassDanmaku {
		a.tick.unshown++
	}
	a.addLocked(c, event, stamp)
}

// giftOrder is how far the room is in the ledger. Guarded by Audience.mu.
type giftOrder struct {
	last  uint64 // sequence of the newest gift taken from the feed
	shown uint64 // of the newest one that has been flushed
}

// Gift appends a gift to the tick. One that was there before is dropped; a hole is the bus' to fill, and counted here.
func (a *Audience[V]) Gift(g protocol.StoredGift) {
	event := protocol.AppendStoredGift(make([]byte, 0, len(g.Event)+64), g)
	ts := protocol.EventTS(g.Event)
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.Seq <= a.gifts.last {
		a.env.Metrics.giftRepeats.Inc()
		return
	}
	if g.Prev > a.gifts.last && a.gifts.last != 0 {
		a.env.Metrics.giftHoles.Inc()
	}
	a.gifts.last = g.Seq
	if a.shards.size == 0 {
		a.gifts.shown = g.Seq
		return
	}
	a.addLocked(protocol.ClassGift, event, ts)
}

// Control appends events to the tick, whole.
func (a *Audience[V]) Control(events ...[]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shards.size == 0 {
		return
	}
	for _, e := range events {
		a.addLocked(protocol.ClassControl, e, 0)
	}
}

// Idle reports whether nothing is to be shown, and no goroutine of the audience's exists.
func (a *Audience[V]) Idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.tick.running
}
