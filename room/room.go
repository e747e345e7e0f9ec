package room

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/audience"
	"liveroom/room/people"
	"liveroom/room/raid"
)

// Room is one live room on this node.
type Room struct {
	// fixed
	id       string
	hub      *Hub
	subject  limit.Subject
	shares   *shares
	crowds   crowds
	audience *audience.Audience[*Member]
	since    time.Time     // when it opened here
	ready    chan struct{} // closed once opening has ended
	gone     chan struct{} // closed once the room is closed for good

	// set while opening, fixed once ready is closed
	openErr *protocol.Error
	stop    func() // ends the subscription

	// guarded by Hub.mu
	refs     int // members and calls that use it
	idle     limit.Instant
	retiring bool

	policy     atomic.Pointer[policy] // stored with mu held
	people     *people.Census
	raids      raid.Detector
	raising    atomic.Bool  // somebody says that there is a raid
	heard      heard        // custom events
	tallied    tallied      // owned by opening, then by the hub's sweeper
	showStored atomic.Int64 // when, an instant of the gate's
	departed   departed
	owed       owed
	gathering  atomic.Bool // a goroutine brings deeds into the settings
	stats      stats
	visits     visits

	// mu guards the rest, and that viewers are told of policies in their order.
	mu     lock.Mutex[lock.Room]
	likes  likes
	vetted vetting
}

func newRoom(h *Hub, id string) *Room {
	r := &Room{
		id: id, hub: h,
		subject: limit.Subject{Scope: limit.ScopeRoom}, shares: newShares(), audience: audience.New[*Member](id, &h.showing),
		ready: make(chan struct{}), gone: make(chan struct{}),
	}
	r.since = h.cfg.Now()
	r.policy.Store(&policy{})
	r.people = people.New(h.part)
	r.showStored.Store(int64(awake))
	return r
}

// ID is the room's id.
func (r *Room) ID() string { return r.id }

// Online is the number of sessions in the room on all nodes, as far as this one knows.
func (r *Room) Online() int { return r.audience.Online() }

// open subscribes to the room's traffic and reads what there was before. Nobody is in the room yet.
func (r *Room) open(ctx context.Context, create func() *protocol.Error) *protocol.Error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	o, stop, err := r.hub.bus.Subscribe(ctx, r.id, (*feed)(r))
	if err != nil {
		r.hub.troubled("room does not open", r.id, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	r.stop = stop
	shown, opened := &r.hub.showing, r.hub.gate.Now()
	since := opened.Add(-shown.HistoryAge)
	recent, err := r.hub.bus.Recent(ctx, r.id, shown.HistoryCount)
	if err != nil {
		r.hub.troubled("room opens without its recent danmaku", r.id, err)
		since = opened
	}
	if o.Known && o.Revision == 0 && o.LastGift == 0 && o.Likes == 0 && len(recent) == 0 && !r.hub.queue.any(r.id) {
		if refusal := r.mayCreate(create); refusal != nil {
			stop()
			return refusal
		}
		r.hub.note(r.id, roomNote{noteRoom, "made", r.hub.cfg.Node, r.hub.cfg.Now().UnixMilli()})
	}
	if o.Revision > 0 {
		r.adopt(o.Settings, o.Revision)
	}
	r.follow(lastOf(o.Acts), o.Acts...)
	r.openShow(ctx)
	r.countElsewhere(r.hub.elsewhere(r.id))
	r.mu.Lock()
	defer r.mu.Unlock()
	policy := r.policy.Load()
	gone := func(event []byte) bool { return policy.hides(protocol.EventMID(event)) }
	recent = slices.DeleteFunc(recent, func(event []byte) bool { return r.hub.erased.has(r.id, event) })
	r.audience.Restore(recent, opened, since, gone, o.Likes, o.LastGift)
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

// feed is a Room as the bus sees it.
type feed Room

var _ Feed = (*feed)(nil)

// Message implements [Traffic].
func (f *feed) Message(c protocol.Class, message []byte) {
	switch c {
	case protocol.ClassControl:
		(*Room)(f).obey(message)
	case protocol.ClassEvent:
		(*Room)(f).customs(message)
	case protocol.ClassDanmaku:
		f.people.Danmaku()
		(*Room)(f).watch(message)
		f.audience.Message(c, message)
	default:
		f.audience.Message(c, message)
	}
}

// Gift implements [Traffic].
func (f *feed) Gift(g protocol.StoredGift) { f.audience.Gift(g) }

// Likes implements [State].
func (f *feed) Likes(total int64) { f.audience.Likes(total) }

// Settings implements [State].
func (f *feed) Settings(value []byte, revision uint64) { (*Room)(f).adopt(value, revision) }

// Act implements [State].
func (f *feed) Act(a protocol.StoredAct) { (*Room)(f).follow(a.Seq, a) }

// quiet reports whether a room without members may be forgotten. Caller holds Hub.mu.
func (r *Room) quiet(now limit.Instant) bool {
	r.mu.Lock()
	busy := r.likes.folding || r.likes.pending > 0 || r.vetted.waiting > 0
	r.mu.Unlock()
	return !busy && r.audience.Idle() && r.subject.Full(now)
}

// close ends the subscription and hands over what likes are left. Nobody is in the room and no runner exists.
func (r *Room) close() error {
	r.stop()
	r.noteVisits()
	r.mu.Lock()
	n := r.likes.pending
	r.likes.pending = 0
	r.mu.Unlock()
	if n == 0 {
		return nil
	}
	if err := r.hub.bus.AddLikes(r.id, n); err != nil {
		return fmt.Errorf("room %s: %d likes are lost: %w", r.id, n, err)
	}
	return nil
}
