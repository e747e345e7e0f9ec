package feed

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// ErrSubscribed says that the room has a subscription on this node already.
var ErrSubscribed = errors.New("fanout: room already subscribed")

// Bus carries what is said in rooms between nodes: at most once, in order per publisher.
type Bus interface {
	// Publish does not wait. An error means that nothing was sent.
	Publish(room string, kind link.Kind, payload []byte) error
	// Subscribe calls take with what is said in a room, one after the other, until stop; and lost when some of it was dropped.
	// The header is that of what a stream re-published.
	Subscribe(room string, take func(link.Kind, []byte, nats.Header), lost func()) (stop func(), err error)
	// Flush returns when what was published and subscribed before has taken effect.
	Flush(ctx context.Context) error
	// Echoes tells whether what is stored comes on the bus by itself. Where it does not, it is said how far the store is.
	Echoes() bool
}

// Store is what is stored of rooms.
type Store interface {
	Reader
	Memory
}

// Reader reads it. No call takes longer than the store's time-out.
type Reader interface {
	// Open returns what is stored of a room that is here.
	Open(ctx context.Context, room string) (link.Stored, error)
	// ActsAfter returns the room's acts behind one, in order, as far as they are not part of its settings.
	ActsAfter(ctx context.Context, room string, after uint64) ([]protocol.StoredAct, error)
	// GiftsAfter returns the gifts behind one of the room's, in order.
	GiftsAfter(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error)
	// SettingsRecord returns the settings, zero for none.
	SettingsRecord(ctx context.Context, room string) (link.Record, error)
	// Compare returns how far the store is with each of these rooms, and mends what is less than was shown of their likes.
	Compare(ctx context.Context, shown map[string]int64) (map[string]link.Seen, error)
}

// Memory keeps what this node goes by of the rooms that have members here, for a store that comes back without it.
type Memory interface {
	Enter(room string)
	Leave(room string)
	// Take returns false when these settings are an older copy of what the room goes by.
	Take(room string, settings link.Record) bool
	Shown(room string, likes int64)
	MetGift(seq uint64)
}

// Feeds are the rooms that have members here. All methods may be called from any goroutine.
type Feeds struct {
	// Fixed after New.
	Soon link.Wake // asks for a comparing of all rooms with the store

	bus      Bus
	store    Store
	log      *slog.Logger
	patience time.Duration
	metrics  *Metrics

	mu     lock.Mutex[lock.Leaf]
	subs   map[string]*Subscription // guarded by mu
	closed bool                     // guarded by mu
}

// New makes feeds without rooms; patience bounds the opening of one.
func New(bus Bus, store Store, patience time.Duration, metrics *Metrics, log *slog.Logger) *Feeds {
	return &Feeds{Soon: link.NewWake(), bus: bus, store: store, log: log, patience: patience, metrics: metrics, subs: map[string]*Subscription{}}
}

// Publish sends one message of a live class to all nodes that have the room, this one included: at most once, without
// waiting. ErrDisconnected when the bus is away, ErrForbidden when it is known to let nobody hear it; nothing is kept for later.
func (f *Feeds) Publish(c protocol.Class, room string, message []byte) error {
	return f.bus.Publish(room, c.String(), message)
}

// Say tells all nodes how far the store is with a room.
func (f *Feeds) Say(room string, v link.Seen) {
	// Lost when disconnected: presence and the comparing say it again.
	_ = f.bus.Publish(room, link.KindSeen, v.Append(nil))
}

// SayLikes tells a room's new total.
func (f *Feeds) SayLikes(room string, total int64) {
	// Lost when disconnected: the comparing finds that the room is behind the counter.
	_ = f.bus.Publish(room, link.KindLikes, strconv.AppendInt(nil, total, 10))
}

// SayGift tells that a gift is stored, where its stream does not: no stream re-publishes one that it had before, and the
// first answer may have been lost with its re-publishing.
func (f *Feeds) SayGift(room string, seq uint64, again bool) {
	if again || !f.bus.Echoes() {
		f.Say(room, link.Seen{Gift: seq})
	}
}

// Seen is how far a room that is here is; zero for another.
func (f *Feeds) Seen(room string) link.Seen {
	if s := f.of(room); s != nil {
		return s.seen()
	}
	return link.Seen{}
}

// Heard takes how far somebody is with a room.
func (f *Feeds) Heard(room string, v link.Seen) {
	f.Behind(room, v)
}

// Behind reports whether a room that is here has not been told all that somebody has seen, and tells it.
func (f *Feeds) Behind(room string, v link.Seen) bool {
	s := f.of(room)
	if s == nil || s.closed.Load() || !v.Beyond(s.seen()) {
		return false
	}
	f.Say(room, v)
	return true
}

// SweepSoon asks for a comparing of all rooms with the store.
func (f *Feeds) SweepSoon() { f.Soon.Soon() }

// Close refuses rooms from now on.
func (f *Feeds) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *Feeds) of(room string) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subs[room]
}

func (f *Feeds) register(s *Subscription) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return link.ErrClosed
	}
	if f.subs[s.room] != nil {
		return ErrSubscribed
	}
	f.subs[s.room] = s
	return nil
}

func (f *Feeds) unregister(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[s.room] == s {
		delete(f.subs, s.room)
	}
}

// compareBatch is how many rooms are compared at once; NATS answers for at most 1024 subjects.
const compareBatch = 256

// Sweep compares the rooms with the store, which finds what no later message would: a stored last gift that
// was never re-published and whose sender is gone.
func (f *Feeds) Sweep(ctx context.Context) error {
	f.mu.Lock()
	subs := make([]*Subscription, 0, len(f.subs))
	for _, s := range f.subs {
		subs = append(subs, s)
	}
	f.mu.Unlock()
	for len(subs) > 0 {
		n := min(len(subs), compareBatch)
		shown := make(map[string]int64, n)
		for _, s := range subs[:n] {
			shown[s.room] = s.total.Load() // before the store is read, which has had it then
		}
		stored, err := f.store.Compare(ctx, shown)
		for _, s := range subs[:n] {
			if v := stored[s.room]; v.Beyond(s.seen()) {
				f.Say(s.room, v)
			}
		}
		if err != nil {
			return err // the next one begins anew
		}
		subs = subs[n:]
	}
	return nil
}

// Metrics count what rooms are told.
type Metrics struct {
	class            [protocol.NumClasses]prometheus.Counter
	settings         prometheus.Counter
	filled, unfilled prometheus.Counter // holes
}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	const settings, filled, failed = "settings", "filled", "failed"
	classes := []string{settings}
	for c := range protocol.NumClasses {
		classes = append(classes, c.String())
	}
	received := link.Counters(r, "received_total", "Messages delivered to the rooms of this node.", "class", classes...)
	holes := link.Counters(r, "gift_holes_total", "Holes found in a room's gifts.", "result", filled, failed)
	m := &Metrics{settings: received[settings], filled: holes[filled], unfilled: holes[failed]}
	for c := range protocol.NumClasses {
		m.class[c] = received[c.String()]
	}
	return m
}
