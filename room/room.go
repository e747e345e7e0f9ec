package room

import (
	"context"
	"sync/atomic"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// Room is one live room on this node.
type Room struct {
	// fixed
	id      string
	hub     *Hub
	subject limit.Subject
	shares  *shares
	ready   chan struct{} // closed once opening has ended
	gone    chan struct{} // closed once the room is closed for good
	wake    chan struct{} // one element: makes the runner look again

	// set while opening, fixed once ready is closed
	openErr *protocol.Error
	stop    func() // ends the subscription

	// guarded by Hub.mu
	refs     int // members and calls that use it
	idle     limit.Instant
	retiring bool

	policy atomic.Pointer[policy]
	online atomic.Int64 // sessions here and elsewhere, for the gate's tiers

	stats stats

	// mu guards the rest.
	mu       lock.Mutex[lock.Room]
	audience audience
	tick     tick
	history  history
	authors  authors
	gifts    giftOrder
	likes    likes
	crowd    crowd
}

func newRoom(h *Hub, id string) *Room {
	r := &Room{
		id: id, hub: h,
		subject: limit.Subject{Scope: limit.ScopeRoom}, shares: newShares(),
		ready: make(chan struct{}), gone: make(chan struct{}), wake: make(chan struct{}, 1),
		history:  history{most: h.cfg.HistoryCount},
		audience: audience{most: shardMax},
	}
	r.policy.Store(&policy{})
	now := h.gate.Now()
	r.tick.flushed = now.Add(-h.cfg.Tick)
	r.likes.shownAt = now.Add(-h.cfg.LikeEvery)
	r.crowd.shownAt = now.Add(-h.cfg.OnlineEvery)
	return r
}

// ID is the room's id.
func (r *Room) ID() string { return r.id }

// open subscribes to the room's traffic and reads what there was before. Nobody is in the room yet.
func (r *Room) open(ctx context.Context, create func() *protocol.Error) *protocol.Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.hub.cfg.OpenTimeout)
	defer cancel()
	o, stop, err := r.hub.bus.Subscribe(ctx, r.id, (*feed)(r))
	if err != nil {
		r.hub.troubled("room does not open", r.id, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	r.stop = stop
	opened := r.hub.gate.Now()
	since := opened.Add(-r.hub.cfg.HistoryAge)
	recent, err := r.hub.bus.Recent(ctx, r.id, r.hub.cfg.HistoryCount)
	if err != nil {
		r.hub.troubled("room opens without its recent danmaku", r.id, err)
		since = opened
	}
	if o.Known && o.Revision == 0 && o.LastGift == 0 && o.Likes == 0 && len(recent) == 0 {
		if refusal := r.mayCreate(create); refusal != nil {
			stop()
			return refusal
		}
	}
	if o.Revision > 0 {
		r.adopt(o.Settings, o.Revision)
	}
	elsewhere := r.hub.elsewhere(r.id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crowd.elsewhere = elsewhere
	r.countLocked()
	r.recallLocked(recent, opened, since)
	r.likes.total = max(r.likes.total, o.Likes)
	r.likes.shown = r.likes.total
	r.gifts.last = max(r.gifts.last, o.LastGift)
	r.gifts.shown = r.gifts.last
	return nil
}

// mayCreate asks whether a room that nobody has seen before may come to be.
func (r *Room) mayCreate(create func() *protocol.Error) *protocol.Error {
	if !r.hub.cfg.AutoCreate {
		return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "room"}
	}
	if create == nil {
		return nil
	}
	return create()
}

// recallLocked puts what was said before the room opened in front of what came in since. It counts as come when the room
// opened; nothing is known of what was said before floor.
func (r *Room) recallLocked(recent [][]byte, opened, floor limit.Instant) {
	since := r.history
	if len(recent) >= since.most {
		floor = opened
	}
	r.history = history{most: since.most, gone: spoken{at: floor}}
	deleted := r.policy.Load().deleted
	for _, event := range recent {
		s := spoken{event: event, ts: protocol.EventTS(event), at: opened}
		mid := s.id()
		if since.find(mid) != nil {
			continue
		}
		if _, yes := deleted[mid]; yes {
			s.event, s.mid = nil, mid
		} else {
			r.authors.note(event)
		}
		r.history.add(s)
	}
	for i := range since.size {
		r.history.add(*since.at(i))
	}
	if since.gone.id() != "" { // more came while the room opened than it keeps
		r.history.gone = since.gone
	}
}

// quiet reports whether a room without members may be forgotten. Caller holds Hub.mu.
func (r *Room) quiet(now limit.Instant) bool {
	r.mu.Lock()
	busy := r.tick.running || r.likes.folding || r.likes.pending > 0 || r.audience.size > 0
	r.mu.Unlock()
	return !busy && r.subject.Full(now)
}

// Online is the number of sessions in the room on all nodes, as far as this one knows.
func (r *Room) Online() int { return int(r.online.Load()) }
