package feed

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// Handler takes what arrives for one room. Calls are sequential, from one goroutine, in the order of the bus. A handler
// may keep the slices and must not change them. It should return quickly: the room's next message waits.
type Handler interface {
	// Message takes one message as [Feeds.Publish] was given it.
	Message(c protocol.Class, message []byte)
	// Gift takes the room's gifts in order of Seq, each once, without a hole: Prev is the Seq of the call before.
	Gift(gift protocol.StoredGift)
	// Likes takes the room's total; it never falls.
	Likes(total int64)
	// Settings takes the settings and their revision, which grows.
	Settings(payload []byte, revision uint64)
	// Act takes the room's acts in order of Seq, each once. One that is missing is part of the settings.
	Act(protocol.StoredAct)
}

// Opening is what the store knew of a room at the start of its subscription; later values come to the handler.
type Opening struct {
	// Known is false when the store did not answer. The handler gets likes and settings as soon as it does.
	Known bool
	// LastGift is the sequence of the room's last gift, 0 for none.
	LastGift uint64
	// Likes is the room's total.
	Likes int64
	// Settings is the last payload, nil for none.
	Settings []byte
	// Revision of Settings, 0 for none.
	Revision uint64
	// Acts are those that the store has, in order.
	Acts []protocol.StoredAct
}

// Subscription is a node's ear for one room.
type Subscription struct {
	// Fixed after Subscribe.
	feeds   *Feeds
	room    string
	h       Handler
	stop    func()
	ready   chan struct{} // closed once the opening is known, or given up
	opening Opening

	// Written by Subscribe before ready, then by the feed's goroutine alone; read by presence and the comparing.
	known    atomic.Bool   // lastGift is a point that the handler has been told
	lastGift atomic.Uint64 // sequence
	revision atomic.Uint64 // of the settings
	total    atomic.Int64  // likes
	act      atomic.Uint64 // number of the last act

	closed atomic.Bool

	// Owned by the feed's goroutine.
	held  []heldGift // of batch, in order; bounded by its size
	batch string     // what came last was of it; "" for none
}

// Subscribe begins the delivery of a room to h and returns with the state of its store. At most one subscription per
// room and node is open (ErrSubscribed). ctx bounds the reading of the store, not the subscription.
func (f *Feeds) Subscribe(ctx context.Context, room string, h Handler) (*Subscription, error) {
	s := &Subscription{feeds: f, room: room, h: h, ready: make(chan struct{})}
	if err := f.register(s); err != nil {
		return nil, err
	}
	f.store.Enter(room)
	var err error
	if s.stop, err = f.bus.Subscribe(room, s.receive, f.Soon.Soon); err != nil { // gifts among what was lost are read from the ledger
		f.store.Leave(room)
		f.unregister(s)
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		f.log.Warn("room opens without its stored state", "room", room, "err", err)
		f.Soon.Soon()
	}
	close(s.ready)
	return s, nil
}

// open reads the room's state, after the bus has confirmed the subscription: what is stored from now on is heard.
func (s *Subscription) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.feeds.patience)
	defer cancel()
	if err := s.feeds.bus.Flush(ctx); err != nil {
		return err
	}
	v, err := s.feeds.store.Open(ctx, s.room)
	if err != nil {
		return err
	}
	s.opening = Opening{Known: true, LastGift: v.Gift, Likes: v.Likes, Settings: v.Settings.Data, Revision: v.Revision, Acts: v.Acts}
	s.lastGift.Store(v.Gift)
	s.total.Store(v.Likes)
	s.revision.Store(v.Revision)
	s.act.Store(v.Act)
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
	s.stop()
	s.feeds.store.Leave(s.room)
	s.feeds.unregister(s)
}

// receive runs on the goroutine that the bus keeps for this subscription.
func (s *Subscription) receive(kind link.Kind, payload []byte, header nats.Header) {
	<-s.ready
	if s.closed.Load() {
		return
	}
	switch kind {
	case link.KindGift:
		s.receiveGift(payload, header)
	case link.KindLikes:
		if total, err := strconv.ParseInt(string(payload), 10, 64); err == nil {
			s.advanceLikes(total)
		}
	case link.KindSettings:
		if r, err := link.StoredRecord(payload, header); err == nil {
			s.advanceSettings(r)
		}
	case link.KindAct:
		if r, err := link.StoredRecord(payload, header); err == nil {
			s.receiveAct(r, header)
		}
	case link.KindSeen:
		s.receiveSeen(payload)
	default:
		if c, ok := protocol.LiveClass(kind); ok {
			s.feeds.metrics.class[c].Inc()
			s.h.Message(c, payload)
		}
	}
}

func (s *Subscription) advanceLikes(total int64) {
	if total <= s.total.Load() {
		return
	}
	s.total.Store(total)
	s.feeds.store.Shown(s.room, total)
	s.feeds.metrics.class[protocol.ClassLike].Inc()
	s.h.Likes(total)
}

func (s *Subscription) advanceSettings(r link.Record) {
	if r.Seq <= s.revision.Load() || !s.feeds.store.Take(s.room, r) {
		return
	}
	s.revision.Store(r.Seq)
	s.feeds.metrics.settings.Inc()
	s.h.Settings(r.Data, r.Seq)
}

// receiveAct takes a re-published act, after those before it: what is missing is read, and what the store has no more is part of settings that
// come, or have.
func (s *Subscription) receiveAct(r link.Record, header nats.Header) {
	prev, _ := strconv.ParseUint(header.Get(jetstream.LastSequenceHeader), 10, 64) // none: 0
	if prev <= s.act.Load() || s.readActs() {
		s.advanceAct(protocol.StoredAct{Seq: r.Seq, Value: r.Data})
	}
}

// readActs delivers what the store has behind the last act; false: it does not answer, and is asked again.
func (s *Subscription) readActs() bool {
	acts, err := s.feeds.store.ActsAfter(context.Background(), s.room, s.act.Load()) // bounded by the store
	if err != nil {
		s.feeds.log.Warn("acts of moderators are missing and cannot be read yet", "room", s.room, "err", err)
		s.feeds.Soon.Soon()
		return false
	}
	for _, a := range acts {
		s.advanceAct(a)
	}
	return true
}

func (s *Subscription) advanceAct(a protocol.StoredAct) {
	if a.Seq <= s.act.Load() || s.closed.Load() {
		return
	}
	s.act.Store(a.Seq)
	s.feeds.metrics.settings.Inc()
	s.h.Act(a)
}

// seen returns how far this subscription is.
func (s *Subscription) seen() link.Seen {
	return link.Seen{Gift: s.lastGift.Load(), Revision: s.revision.Load(), Likes: s.total.Load(), Act: s.act.Load()}
}

func (s *Subscription) receiveSeen(b []byte) {
	v, ok := link.ParseSeen(b)
	if !ok {
		return
	}
	s.advanceLikes(v.Likes)
	s.release(v.Gift)
	if v.Revision > s.revision.Load() {
		r, err := s.feeds.store.SettingsRecord(context.Background(), s.room) // bounded by the store
		if err != nil {
			s.feeds.log.Warn("settings changed and cannot be read yet", "room", s.room, "err", err)
			s.feeds.Soon.Soon()
		} else {
			s.advanceSettings(r)
		}
	}
	if v.Act > s.act.Load() {
		s.readActs()
	}
	switch {
	case v.Gift <= s.lastGift.Load():
	case s.known.Load():
		s.fill(v.Gift)
	default: // the store was away at the start: begin here
		s.lastGift.Store(v.Gift)
		s.known.Store(true)
	}
}
