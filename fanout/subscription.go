package fanout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"liveroom/internal/lock"
	"liveroom/protocol"
)

// Handler takes what arrives for one room. Calls are sequential, from one goroutine, in the order of NATS. A handler
// may keep the slices and must not change them. It should return quickly: the room's next message waits.
type Handler interface {
	// Message takes one message as [Fabric.Publish] was given it.
	Message(c protocol.Class, message []byte)
	// Gift takes the room's gifts in order of Seq, each once, without a hole: Prev is the Seq of the call before.
	Gift(gift protocol.StoredGift)
	// Likes takes the room's total; it never falls.
	Likes(total int64)
	// Settings takes the settings and their revision, which grows.
	Settings(payload []byte, revision uint64)
}

// Opening is what the store knew of a room at the start of its subscription; later values come to the handler.
type Opening struct {
	// Known is false when the store did not answer. The handler gets likes and settings as soon as it does.
	Known bool
	// LastGift is the sequence of the room's last gift, 0 for none.
	LastGift uint64
	// Likes is the room's total.
	Likes int64
	// Settings is the last payload of [Fabric.PutSettings], nil for none.
	Settings []byte
	// Revision of Settings, 0 for none.
	Revision uint64
}

// Subscription is a node's ear for one room.
type Subscription struct {
	// Fixed after Subscribe.
	f       *Fabric
	room    string
	h       Handler
	cut     int // where the kind begins in a subject
	sub     *nats.Subscription
	ready   chan struct{} // closed once the opening is known, or given up
	opening Opening

	// Written by Subscribe before ready, then by the feed's goroutine alone; read by presence and sweep.
	known    atomic.Bool            // lastGift is a point that the handler has been told
	lastGift atomic.Uint64          // sequence
	revision atomic.Uint64          // of the settings
	total    atomic.Int64           // likes
	settings atomic.Pointer[record] // of that revision, for a store that comes back without them
	outdated atomic.Bool            // the store has an older copy of them

	closed atomic.Bool

	dropMu  lock.Mutex[lock.Leaf]
	dropped int // counted so far
}

// Subscribe begins the delivery of a room to h and returns with the state of its store. At most one subscription per
// room and node is open (ErrSubscribed). ctx bounds the reading of the store, not the subscription.
func (f *Fabric) Subscribe(ctx context.Context, room string, h Handler) (*Subscription, error) {
	s := &Subscription{f: f, room: room, h: h, cut: len(roomSubject(room, "")), ready: make(chan struct{})}
	if err := f.register(s); err != nil {
		return nil, err
	}
	sub, err := f.live.Subscribe(roomSubject(room, ">"), s.receive)
	if err == nil {
		err = sub.SetPendingLimits(f.cfg.PendingMessages, f.cfg.PendingBytes)
	}
	if err != nil {
		f.unregister(s)
		return nil, fmt.Errorf("subscribe to room %s: %w", room, err)
	}
	f.mu.Lock()
	s.sub = sub // under mu for onError, which may come before Subscribe returns
	f.mu.Unlock()
	if err := s.open(ctx); err != nil {
		f.log.Warn("room opens without its stored state", "room", room, "err", err)
		f.sweepSoon.soon()
	}
	close(s.ready)
	return s, nil
}

// open reads the room's state, after the server has confirmed the subscription: what is stored from now on is heard.
func (s *Subscription) open(ctx context.Context) error {
	ctx, cancel := s.f.storeContext(ctx)
	defer cancel()
	if err := s.f.live.FlushWithContext(ctx); err != nil {
		return err
	}
	var o Opening
	var errs [3]error
	var wg sync.WaitGroup
	wg.Go(func() { o.LastGift, errs[0] = s.f.LastGift(ctx, s.room) })
	wg.Go(func() { o.Likes, errs[1] = s.f.Likes(ctx, s.room) })
	var settings record
	wg.Go(func() { settings, errs[2] = s.f.storedSettings(ctx, s.room) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	o.Known, o.Settings, o.Revision = true, settings.Data, settings.Seq
	o.Likes = max(o.Likes, s.f.totals.of(s.room)) // if the store has lost some, the sweep finds out
	s.opening = o
	s.lastGift.Store(o.LastGift)
	s.total.Store(o.Likes)
	s.knowSettings(settings)
	s.f.known.gift.meet(o.LastGift)
	s.known.Store(true)
	return nil
}

// Opening returns the room's state at the start.
func (s *Subscription) Opening() Opening { return s.opening }

// LastGift returns the sequence up to which the handler has been given every gift.
func (s *Subscription) LastGift() uint64 { return s.lastGift.Load() }

// Close ends the delivery. It does not wait: a call that is under way may still finish, and none begins after it.
func (s *Subscription) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.countDropped()
	s.f.totals.keep(s.room, s.total.Load())
	_ = s.sub.Unsubscribe() // fails only on a closed connection
	s.f.unregister(s)
}

func (f *Fabric) register(s *Subscription) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if f.subs[s.room] != nil {
		return ErrSubscribed
	}
	f.subs[s.room] = s
	return nil
}

func (f *Fabric) unregister(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[s.room] == s {
		delete(f.subs, s.room)
	}
}

// receive runs on the goroutine that nats.go keeps for this subscription.
func (s *Subscription) receive(m *nats.Msg) {
	<-s.ready
	if s.closed.Load() {
		return
	}
	switch kind := m.Subject[s.cut:]; kind {
	case kindGift:
		s.receiveGift(m)
	case kindLikes:
		if total, err := strconv.ParseInt(string(m.Data), 10, 64); err == nil {
			s.advanceLikes(total)
		}
	case kindSettings:
		if r, err := storedRecord(m); err == nil {
			s.advanceSettings(r)
		}
	case kindSeen:
		s.receiveSeen(m.Data)
	default:
		if c, ok := protocol.LiveClass(kind); ok {
			s.f.metrics.class[c].Inc()
			s.h.Message(c, m.Data)
		}
	}
}

func (s *Subscription) advanceLikes(total int64) {
	if total <= s.total.Load() {
		return
	}
	s.total.Store(total)
	s.f.metrics.class[protocol.ClassLike].Inc()
	s.h.Likes(total)
}

func (s *Subscription) advanceSettings(r record) {
	if r.Seq <= s.revision.Load() {
		return
	}
	if known := s.settings.Load(); known != nil && known.outdates(r) {
		s.outdated.Store(true)
		s.f.lookAfterStreams() // which writes the newer ones over them
		return
	}
	s.knowSettings(r)
	s.f.metrics.setting.Inc()
	s.h.Settings(r.Data, r.Seq)
}

func (s *Subscription) knowSettings(r record) {
	s.settings.Store(&r)
	s.revision.Store(r.Seq)
	s.f.known.settings.meet(r.Seq)
}

// countDropped adds what nats.go has dropped for this room since the last call.
func (s *Subscription) countDropped() {
	s.dropMu.Lock()
	defer s.dropMu.Unlock()
	if n, err := s.sub.Dropped(); err == nil && n > s.dropped {
		s.f.metrics.pending.Add(float64(n - s.dropped))
		s.dropped = n
	}
}
