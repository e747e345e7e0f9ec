package room

import (
	"liveroom/protocol"
)

// feed is a Room as the bus sees it.
type feed Room

var _ Feed = (*feed)(nil)

// Danmaku implements [Traffic].
func (f *feed) Danmaku(event []byte) { (*Room)(f).show(event) }

// show appends an admitted danmaku to the history and to the tick.
func (r *Room) show(event []byte) {
	ts, now := protocol.EventTS(event), r.hub.gate.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tick.batch.Size() >= maxTickBytes {
		r.tick.missed++
		r.hub.cfg.Metrics.missed.Inc()
		return
	}
	r.history.expire(now.Add(-r.hub.cfg.HistoryAge))
	r.history.add(spoken{event: event, ts: ts, at: now})
	r.authors.note(event)
	if r.audience.size == 0 {
		return
	}
	r.tick.unshown++
	r.addLocked(protocol.ClassDanmaku, event, ts)
}

// giftOrder is how far the room is in the ledger. Guarded by Room.mu.
type giftOrder struct {
	last  uint64 // sequence of the newest gift taken from the feed
	shown uint64 // of the newest one that has been flushed
}

// Gift implements [Traffic]. A gift that the room has had is dropped; a hole is the bus' to fill, and counted here.
func (f *feed) Gift(g protocol.StoredGift) {
	r := (*Room)(f)
	event := protocol.AppendStoredGift(make([]byte, 0, len(g.Event)+64), g)
	ts := protocol.EventTS(g.Event)
	r.mu.Lock()
	defer r.mu.Unlock()
	if g.Seq <= r.gifts.last {
		r.hub.cfg.Metrics.giftRepeats.Inc()
		return
	}
	if g.Prev > r.gifts.last && r.gifts.last != 0 {
		r.hub.cfg.Metrics.giftHoles.Inc()
	}
	r.gifts.last = g.Seq
	if r.audience.size == 0 {
		r.gifts.shown = g.Seq
		return
	}
	r.addLocked(protocol.ClassGift, event, ts)
}

// Likes implements [State]. A total below what is known is older than it and ignored.
func (f *feed) Likes(total int64) {
	r := (*Room)(f)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.likes.total = max(r.likes.total, total)
	if r.audience.size == 0 {
		r.likes.shown = r.likes.total
		return
	}
	if due := r.likes.dueLocked(r.hub.cfg.LikeEvery); due != never {
		r.pokeLocked(due)
	}
}

// Settings implements [State].
func (f *feed) Settings(value []byte, revision uint64) { (*Room)(f).adopt(value, revision) }

// Control implements [Traffic].
func (f *feed) Control(message []byte) { (*Room)(f).obey(message) }
