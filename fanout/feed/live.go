package feed

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// pendingBytes bounds what waits for one room's reader.
const pendingBytes = 16 << 20

// Live is the [Bus] over core NATS: everything that concerns a room arrives on one subscription, lr.room.<room>.>, and so in one order,
// for the streams re-publish onto it what they have stored. A subscription's messages come one after the other, on a goroutine of
// nats.go; beyond a bound they are dropped and counted, and their room is told.
type Live struct {
	link    *link.Link
	pending int // messages that wait for one room's reader, at most
	dropped prometheus.Counter

	mu   lock.Mutex[lock.Leaf]
	ears map[*nats.Subscription]*ear // guarded by mu
}

var _ Bus = (*Live)(nil)

// ear is the subscription of one room.
type ear struct {
	room    string
	lost    func()
	dropped int // counted so far; guarded by Live.mu
}

// NewLive makes it; pending bounds the messages that wait for one room's reader. With a nil Registerer its metrics are shown to
// nobody.
func NewLive(l *link.Link, pending int, r prometheus.Registerer) *Live {
	return &Live{link: l, pending: pending, ears: map[*nats.Subscription]*ear{},
		dropped: link.Counters(r, "dropped_total", "Messages that NATS delivered and the client dropped.", "reason", "pending")["pending"]}
}

// Publish sends to all nodes that have the room, this one included, without waiting. ErrDisconnected when NATS is away,
// ErrForbidden when it is known to let nobody hear it; nothing is kept for later.
func (b *Live) Publish(room string, kind link.Kind, payload []byte) error {
	if err := b.link.MayShow(kind); err != nil {
		return err
	}
	return b.link.Publish(link.RoomSubject(room, kind), payload)
}

// Subscribe hands everything that is said in the room to take, and tells lost when some was dropped. stop does not wait: a call
// that is under way may still finish.
func (b *Live) Subscribe(room string, take func(link.Kind, []byte, nats.Header), lost func()) (stop func(), err error) {
	begin := len(link.RoomSubject(room, ""))
	sub, err := b.link.Live.Subscribe(link.RoomSubject(room, ">"), func(m *nats.Msg) { take(m.Subject[begin:], m.Data, m.Header) })
	if err == nil {
		err = sub.SetPendingLimits(b.pending, pendingBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to room %s: %w", room, err)
	}
	b.mu.Lock()
	b.ears[sub] = &ear{room: room, lost: lost}
	b.mu.Unlock()
	return func() {
		b.count(sub)
		_ = sub.Unsubscribe() // fails only on a closed connection
		b.mu.Lock()
		delete(b.ears, sub)
		b.mu.Unlock()
	}, nil
}

// Flush returns when what was published and subscribed before has reached the server.
func (b *Live) Flush(ctx context.Context) error { return b.link.Live.FlushWithContext(ctx) }

// Echoes tells that what a stream stores comes on the bus by itself.
func (b *Live) Echoes() bool { return true }

// Slow is for the connection, which has dropped messages of a subscription.
func (b *Live) Slow(sub *nats.Subscription) {
	if e := b.count(sub); e != nil {
		b.link.Log.Warn("room drops messages: its handler is too slow", "room", e.room)
		e.lost()
	}
}

// CountDropped brings the metric up to date.
func (b *Live) CountDropped() {
	b.mu.Lock()
	subs := make([]*nats.Subscription, 0, len(b.ears))
	for sub := range b.ears {
		subs = append(subs, sub)
	}
	b.mu.Unlock()
	for _, sub := range subs {
		b.count(sub)
	}
}

// count adds what nats.go has dropped of a subscription since the last call.
func (b *Live) count(sub *nats.Subscription) *ear {
	n, err := sub.Dropped()
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.ears[sub]
	if e != nil && err == nil && n > e.dropped {
		b.dropped.Add(float64(n - e.dropped))
		e.dropped = n
	}
	return e
}
