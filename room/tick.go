package room

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

// tick is what a room is about to show. Guarded by Room.mu but for the parts of the runner.
type tick struct {
	batch   protocol.Batch
	stamps  []int64       // instants of admission of what is in batch, Unix ms
	unshown int           // danmaku in batch, which are the newest of the history
	missed  int           // danmaku that found the batch full
	owed    []*Member     // who holds answers
	flushed limit.Instant // when the last flush began
	took    time.Duration // by the last flush
	pace    pace          // of what is said

	running bool          // a runner exists
	sleeps  limit.Instant // until when it will not look by itself

	// owned by the runner
	spare    []int64
	paid     []*Member
	snapshot [][]*Member
	plain    bool // too few of them take deflated frames
}

// maxTickBytes bounds a tick's frame. A room that is behind by that much drops further danmaku, and says so in the frame;
// gifts and control are never dropped, and bounded by their quotas.
const maxTickBytes = 1 << 20

// awake says that the runner will look before it sleeps.
const awake = limit.Instant(math.MinInt64)

// addLocked appends an event to the current batch. ts is its instant of admission, 0 for events that have none.
func (r *Room) addLocked(c protocol.Class, event []byte, ts int64) {
	r.tick.batch.Add(c, event)
	if ts != 0 {
		r.tick.stamps = append(r.tick.stamps, ts)
	}
	r.pokeLocked(r.tick.flushed.Add(r.tickLengthLocked()))
}

// oweLocked makes the next flush release what m holds.
func (r *Room) oweLocked(m *Member) {
	r.tick.owed = append(r.tick.owed, m)
	r.pokeLocked(r.tick.flushed.Add(r.tickLengthLocked()))
}

// tickLengthLocked is the shortest time between the beginnings of two flushes: what is configured, longer when the last
// flush took longer than that or where it pays to gather more for a frame, and a multiple of it while the node is behind.
// What must not be lost does not wait for that multiple beyond giftTick.
func (r *Room) tickLengthLocked() time.Duration {
	t := &r.tick
	needed := max(r.hub.cfg.Tick, min(t.took, maxTick))
	length := min(r.hub.stretched(needed), maxTick)
	if t.batch.Count(protocol.ClassGift)+t.batch.Count(protocol.ClassControl) > 0 {
		length = min(length, giftTick)
	}
	return max(length, needed, r.gatherLocked())
}

// Bounds of what ticks stretch to.
const (
	maxTick  = time.Second
	giftTick = 100 * time.Millisecond
)

// pokeLocked makes a runner look at the room at due or before.
func (r *Room) pokeLocked(due limit.Instant) {
	t := &r.tick
	if !t.running {
		t.running = true
		t.sleeps = awake
		if !r.hub.spawn(r.run) {
			t.running = false
		}
		return
	}
	if due < t.sleeps {
		t.sleeps = awake
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// run shows what there is to show, turn by turn, and ends when there is nothing.
func (r *Room) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait, more := r.turn()
		if !more {
			return
		}
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-r.hub.done:
			return
		}
	}
}

// turn flushes when a flush is due. Otherwise it returns how long to wait for one, and false when there is nothing to
// wait for, in which case the caller is no runner any more.
func (r *Room) turn() (wait time.Duration, more bool) {
	cfg, t := &r.hub.cfg, &r.tick
	now := r.hub.gate.Now()

	r.mu.Lock()
	due := r.dueLocked()
	if due == never {
		t.running = false
		r.mu.Unlock()
		return 0, false
	}
	if due = max(due, t.flushed.Add(r.tickLengthLocked())); now < due {
		t.sleeps = due
		r.mu.Unlock()
		return due.Sub(now), true
	}
	r.noteLocked(now)
	batch, stamps, missed := t.batch, t.stamps, t.missed
	t.batch, t.stamps, t.unshown, t.missed = protocol.Batch{}, t.spare[:0], 0, 0
	owed := t.owed
	t.owed, t.paid = t.paid[:0], nil
	t.flushed, t.sleeps = now, awake
	r.gifts.shown = r.gifts.last
	online, showOnline := r.crowd.takeLocked(now, cfg.OnlineEvery)
	delta, total, showLikes := r.likes.takeLocked(now, cfg.LikeEvery)
	t.snapshot = r.audience.freeze(t.snapshot[:0])
	t.plain = r.audience.deflating < cfg.DeflateFrom
	r.mu.Unlock()

	if missed > 0 {
		batch.Add(protocol.ClassControl, protocol.AppendMissed(nil, missed))
	}
	if showOnline {
		batch.Add(protocol.ClassLike, protocol.AppendOnline(nil, online))
	}
	if showLikes {
		batch.Add(protocol.ClassLike, protocol.AppendLike(nil, delta, total))
	}
	r.flush(&batch, stamps, now)
	release(owed)
	t.spare, t.paid = stamps, owed

	r.mu.Lock()
	r.audience.thaw()
	t.took = r.hub.gate.Now().Sub(now)
	r.mu.Unlock()
	clear(t.snapshot)
	return 0, true
}

// never is the due time of nothing.
const never = limit.Instant(math.MaxInt64)

// dueLocked returns when there is something to show, the tick's length aside.
func (r *Room) dueLocked() limit.Instant {
	if r.tick.batch.Len()+len(r.tick.owed) > 0 {
		return awake
	}
	return min(r.crowd.dueLocked(r.hub.cfg.OnlineEvery), r.likes.dueLocked(r.hub.cfg.LikeEvery))
}

// flush delivers a batch to the snapshot and measures it. Only the runner calls it; it holds no lock.
func (r *Room) flush(batch *protocol.Batch, stamps []int64, began limit.Instant) {
	if len(r.tick.snapshot) == 0 || batch.Len() == 0 {
		return
	}
	b := batch.Build()
	if r.tick.plain {
		b.KeepPlain()
	}
	r.deliver(b)
	r.hub.cfg.Metrics.flushed(r.hub.gate.Now().Sub(began), r.hub.cfg.Now().UnixMilli(), stamps)
}

// deliver hands b to every member of the snapshot. A large room's shards are taken by several goroutines; each member
// gets one broadcast after the other all the same, since all shards are done before the next one is built.
func (r *Room) deliver(b *protocol.Broadcast) {
	shards := r.tick.snapshot
	if len(shards) < parallelShards || r.hub.cfg.Workers < 2 {
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
	for range min(r.hub.cfg.Workers, len(shards)) - 1 {
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

func deliverShard(members []*Member, b *protocol.Broadcast) {
	for part := range slices.Chunk(members, yieldEvery) {
		for _, m := range part {
			m.session.Deliver(b)
		}
		runtime.Gosched()
	}
}

// release sends what members hold whom the flush has not reached, and forgets them.
func release(owed []*Member) {
	for part := range slices.Chunk(owed, yieldEvery) {
		for _, m := range part {
			m.session.Release()
		}
		runtime.Gosched()
	}
	clear(owed)
}
