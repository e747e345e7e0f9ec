package audience

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// tick is what a room is about to show. Guarded by Audience.mu but for the parts of the runner.
type tick[V Viewer] struct {
	batch   protocol.Batch
	stamps  []int64       // instants of admission of what is in batch, Unix ms
	unshown int           // danmaku in batch, which are the newest of the history
	missed  int           // danmaku that found the batch full
	owed    []V           // who holds answers
	release limit.Instant // until when these may wait for something to go along with; never: there are none
	flushed limit.Instant // when the last flush began
	took    time.Duration // by the last flush
	rate    rate          // of what is said

	running bool          // a runner exists
	sleeps  limit.Instant // until when it will not look by itself

	// owned by the runner
	spare    []int64
	paid     []V
	snapshot [][]V
	plain    bool // too few of them take deflated frames
}

// maxTickBytes bounds a tick's frame. A room that is behind by that much drops further danmaku, and says so in the frame;
// gifts and control are never dropped, and bounded by their quotas.
const maxTickBytes = 1 << 20

// awake says that the runner will look before it sleeps.
const awake = limit.Instant(math.MinInt64)

// addLocked appends an event to the current batch. ts is its instant of admission, 0 for events that have none.
func (a *Audience[V]) addLocked(c protocol.Class, event []byte, ts int64) {
	a.tick.batch.Add(c, event)
	if ts != 0 {
		a.tick.stamps = append(a.tick.stamps, ts)
	}
	a.pokeLocked(a.tick.flushed.Add(a.tickLengthLocked()))
}

// Owe makes the next flush release what v holds.
func (a *Audience[V]) Owe(v V) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.oweLocked(v, awake)
}

// patience is how long an answer waits for the message that it answers to come back from the bus, which takes 0.1 ms within
// a process.
const patience = 2 * time.Millisecond

// OweSoon makes the flush that shows what v has just said release what v holds, which then goes along in one write(2), and
// has it released without after [patience]. False, and nothing is owed, where what was said does not leave at once.
func (a *Audience[V]) OweSoon(v V) bool {
	now := a.env.Clock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tick.batch.Len() > 0 || now < a.tick.flushed.Add(a.tickLengthLocked()) {
		return false
	}
	a.oweLocked(v, now.Add(patience))
	return true
}

func (a *Audience[V]) oweLocked(v V, release limit.Instant) {
	t := &a.tick
	t.owed = append(t.owed, v)
	t.release = min(t.release, release)
	a.pokeLocked(max(t.release, t.flushed.Add(a.tickLengthLocked())))
}

// tickLengthLocked is the shortest time between the beginnings of two flushes: what is configured, longer when the last
// flush took longer than that or where it pays to gather more for a frame, and a multiple of it while the node is behind.
// What must not be lost does not wait for that multiple beyond giftTick.
func (a *Audience[V]) tickLengthLocked() time.Duration {
	t := &a.tick
	needed := max(a.env.Tick, min(t.took, maxTick))
	length := min(a.env.Stretch(needed), maxTick)
	if t.batch.Essential() > 0 {
		length = min(length, giftTick)
	}
	return max(length, needed, a.gatherLocked())
}

// Bounds of what ticks stretch to.
const (
	maxTick  = time.Second
	giftTick = 100 * time.Millisecond
)

// pokeLocked makes a runner look at the room at due or before.
func (a *Audience[V]) pokeLocked(due limit.Instant) {
	t := &a.tick
	if !t.running {
		t.running = true
		t.sleeps = awake
		if !a.env.Run(a.runner) {
			t.running = false
		}
		return
	}
	if due < t.sleeps {
		t.sleeps = awake
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// run shows what there is to show, tick by tick, and ends when there is nothing.
func (a *Audience[V]) run() {
	var timer *time.Timer // most rooms have one thing to show at a time and wait for nothing
	for {
		wait, more := a.look()
		if !more {
			return
		}
		if wait <= 0 {
			continue
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-a.wake:
		case <-a.env.Done:
			return
		}
	}
}

// look flushes when a flush is due. Otherwise it returns how long to wait for one, and false when there is nothing to
// wait for, in which case the caller is no runner any more.
func (a *Audience[V]) look() (wait time.Duration, more bool) {
	t := &a.tick
	now := a.env.Clock()

	a.mu.Lock()
	due := a.dueLocked()
	if due == never {
		t.running = false
		a.mu.Unlock()
		return 0, false
	}
	if due = max(due, t.flushed.Add(a.tickLengthLocked())); now < due {
		t.sleeps = due
		a.mu.Unlock()
		return due.Sub(now), true
	}
	t.rate.note(t.batch.Len(), now.Sub(t.flushed))
	batch, stamps, missed := t.batch, t.stamps, t.missed
	t.batch, t.stamps, t.unshown, t.missed = protocol.Batch{}, t.spare[:0], 0, 0
	owed := t.owed
	t.owed, t.paid, t.release = t.paid[:0], nil, never
	t.flushed, t.sleeps = now, awake
	a.gifts.shown = a.gifts.last
	count, showOnline := a.crowd.takeLocked(now, a.env.OnlineEvery)
	delta, total, showLikes := a.likes.takeLocked(now, a.env.LikeEvery)
	t.snapshot = a.shards.freeze(t.snapshot[:0])
	t.plain = a.shards.deflating < a.env.DeflateFrom
	a.mu.Unlock()

	if missed > 0 {
		batch.Add(protocol.ClassControl, protocol.AppendMissed(nil, missed))
	}
	if showOnline {
		batch.Add(protocol.ClassLike, protocol.AppendOnline(nil, count.sessions, count.people))
	}
	if showLikes {
		batch.Add(protocol.ClassLike, protocol.AppendLike(nil, delta, total))
	}
	a.flush(&batch, stamps, now)
	release(owed)
	t.spare, t.paid = stamps, owed

	a.mu.Lock()
	a.shards.thaw()
	t.took = a.env.Clock().Sub(now)
	a.mu.Unlock()
	clear(t.snapshot)
	return 0, true
}

// never is the due time of nothing.
const never = limit.Instant(math.MaxInt64)

// dueLocked returns when there is something to show, the tick's length aside.
func (a *Audience[V]) dueLocked() limit.Instant {
	if a.tick.batch.Len() > 0 {
		return awake
	}
	return min(a.tick.release, a.crowd.dueLocked(a.env.OnlineEvery), a.likes.dueLocked(a.env.LikeEvery))
}

// flush delivers a batch to the snapshot and measures it. Only the runner calls it; it holds no lock.
func (a *Audience[V]) flush(batch *protocol.Batch, stamps []int64, began limit.Instant) {
	if len(a.tick.snapshot) == 0 || batch.Len() == 0 {
		return
	}
	b := batch.Build()
	if a.tick.plain {
		b.KeepPlain()
	}
	a.deliver(b)
	took := a.env.Clock().Sub(began)
	a.env.Metrics.flushed(took, a.env.Wall(a.env.Clock()), stamps)
	if a.env.Flushed != nil {
		a.env.Flushed(a.room, took)
	}
}

// deliver hands b to every member of the snapshot. A large room's shards are taken by several goroutines; each member
// gets one broadcast after the other all the same, since all shards are done before the next one is built.
func (a *Audience[V]) deliver(b *protocol.Broadcast) {
	shards := a.tick.snapshot
	if len(shards) < parallelShards || a.env.Workers < 2 {
		for _, members := range shards {
			deliverShard(members, b)
		}
		return
	}
	var next atomic.Int64
	take := func() {
		for i := next.Add(1) - 1; i < int64(len(shards)); i = next.Add(1) - 1 {
			deliverShard(shards[i], b)
		}
	}
	var others sync.WaitGroup
	for range min(a.env.Workers, len(shards)) - 1 {
		others.Go(take)
	}
	take()
	others.Wait()
}

// parallelShards is how many shards make a room large: handing out fewer costs more than it saves.
const parallelShards = 4

// yieldEvery is how many members get a frame, at some 8 µs each, before whatever else may run has its turn: a small room's
// flush, a gift on its way through the ledger.
const yieldEvery = 128

func deliverShard[V Viewer](members []V, b *protocol.Broadcast) {
	for part := range slices.Chunk(members, yieldEvery) {
		for _, m := range part {
			m.Deliver(b)
		}
		runtime.Gosched()
	}
}

// release sends what members hold whom the flush has not reached, and forgets them.
func release[V Viewer](owed []V) {
	for part := range slices.Chunk(owed, yieldEvery) {
		for _, m := range part {
			m.Release()
		}
		runtime.Gosched()
	}
	clear(owed)
}

// A frame of one danmaku does not deflate, one of sixteen does to a third. So a room in which many viewers take deflated
// frames gathers for longer while enough is said to make that worth it: its ticks are as long as gathered messages take to
// come, [Config.GatherTick] at most. A room where less is said than worthGathering within that keeps its ticks, gifts and
// control wait for no more than the tick as it is configured, and the first message after a quiet tick leaves at once.
const (
	gathered       = 16 // messages per frame to aim for
	worthGathering = 4  // messages within the longest tick below which waiting saves too little
)

// rateOver is how far back a room's rate of messages is looked at.
const rateOver = time.Second

// rate is a room's rate of messages, averaged over about rateOver.
type rate float64 // per second

// note counts n messages that came within dt.
func (p *rate) note(n int, dt time.Duration) {
	if dt <= 0 {
		return
	}
	weight := dt.Seconds() / (dt + rateOver).Seconds()
	*p += rate(weight) * (rate(float64(n)/dt.Seconds()) - *p)
}

// takes is how long n messages take to come.
func (p rate) takes(n int) time.Duration {
	return time.Duration(float64(n) / float64(max(p, 1e-3)) * float64(time.Second))
}

// gatherLocked is how long a tick is for the sake of deflating; 0 where that makes no difference.
func (a *Audience[V]) gatherLocked() time.Duration {
	b := &a.tick.batch
	switch {
	case a.shards.deflating < a.env.DeflateFrom, a.tick.rate.takes(worthGathering) > a.env.GatherTick,
		b.Essential() > 0:
		return 0
	}
	return min(a.tick.rate.takes(gathered), a.env.GatherTick)
}
