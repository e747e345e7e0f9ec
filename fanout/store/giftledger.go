package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// Ledger keeps gifts.
type Ledger struct {
	*core
	groups  *groups                // nil with NATS servers of others; fixed
	id      atomic.Pointer[string] // set with the streams
	lost    atomic.Pointer[error]  // see Whole
	checked bool                   // the marks tell of this ledger; fixed after Open

	mu     lock.Mutex[lock.Leaf]
	size   LedgerSize // when last asked; guarded by mu
	stored bool       // it answered then; guarded by mu
}

// LedgerSize is the gift ledger's size and the size at which it refuses gifts, in bytes.
type LedgerSize struct{ Bytes, Limit int64 }

// nearlyFull is where operators are told.
func (l LedgerSize) nearlyFull() bool { return l.Bytes > l.Limit/10*8 }

func giftSubject(room string) string { return link.GiftPrefix + protocol.Token(room) }

// giftID is the gift's idempotency key. "/" is no byte of a token, so the three parts cannot run into each other.
func giftID(room, user, id string) string {
	return protocol.Token(room) + "/" + protocol.Token(user) + "/" + protocol.Token(id)
}

// StoreGift writes a gift into the ledger and returns when it is durable. The same (room, user, id) within
// ten minutes returns the first one's sequence with Duplicate, also after a crash, whatever the event.
//
// An error is ErrRefused (nothing was stored: not connected, ledger full, the disk too slow) or ErrUnknown (no answer within
// one and a half of the store's time-outs or ctx, or the same id is being stored this moment).
func (g *Ledger) StoreGift(ctx context.Context, room, user, id string, event []byte) (protocol.Receipt, error) {
	return g.await(ctx, room, giftID(room, user, id), &nats.Msg{Data: event})
}

// BeginGift is StoreGift that does not wait: the gift has its place behind those that were begun before. done is called once, within
// that time, by this call or by a goroutine on which others' answers wait, so that it must not block.
func (g *Ledger) BeginGift(ctx context.Context, room, user, id string, event []byte, within time.Duration, done func(protocol.Receipt, error)) {
	g.begin(ctx, room, giftID(room, user, id), &nats.Msg{Data: event}, within, done)
}

// Late reports whether a gift that is begun now would be refused, since what waits already takes longer than the store's time-out; if so,
// it is counted as one.
func (g *Ledger) Late() bool {
	late := g.groups != nil && g.groups.late()
	if late {
		g.metrics.gifts[giftLate].Inc()
	}
	return late
}

func (g *Ledger) await(ctx context.Context, room, id string, m *nats.Msg) (protocol.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Receipt{}, refusedSince(err)
	}
	return answerOf(ctx, g.patience(ctx), func(within time.Duration, done func(protocol.Receipt, error)) {
		g.begin(ctx, room, id, m, within, done)
	})
}

// begin also counts, and tells the room.
func (g *Ledger) begin(ctx context.Context, room, id string, m *nats.Msg, within time.Duration, done func(protocol.Receipt, error)) {
	since := time.Now()
	_, op := g.link.Traced(ctx, "put", link.GiftStream)
	answer := func(ack *jetstream.PubAck, err error) {
		var receipt protocol.Receipt
		if errors.Is(err, ErrConflict) { // the attempt to pay for it has ended
			err = refusedSince(err)
		}
		if err == nil {
			receipt = protocol.Receipt{Seq: ack.Sequence, Duplicate: ack.Duplicate}
		}
		op.End(err)
		g.tell(room, receipt, err, time.Since(since))
		done(receipt, err)
	}
	if g.link.Closed() {
		answer(nil, refusedSince(link.ErrClosed))
		return
	}
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Subject = giftSubject(room)
	m.Header.Set(jetstream.MsgIDHeader, id)
	m.Header.Set(jetstream.ExpectedStreamHeader, link.GiftStream)
	if g.groups == nil {
		g.post(link.RoadGift, m, within, answer)
		return
	}
	if err := g.mayStore(link.RoadGift); err != nil {
		answer(nil, err)
		return
	}
	g.groups.begin(&write{m: m, room: room, since: since, until: since.Add(within), done: answer})
}

// tell counts a gift, and tells the room of one that nothing else does.
func (g *Ledger) tell(room string, receipt protocol.Receipt, err error, took time.Duration) {
	result := giftStored
	switch {
	case errors.Is(err, ErrLate):
		result = giftLate
	case errors.Is(err, link.ErrUnknown):
		result = giftUnknown
	case err != nil:
		result = giftRefused
	case receipt.Duplicate:
		result = giftDuplicate
	}
	if err == nil && g.groups == nil {
		g.met(receipt.Seq)
	}
	if err == nil && (receipt.Duplicate || g.groups == nil) {
		g.rooms.SayGift(room, receipt.Seq, receipt.Duplicate)
	}
	g.metrics.gifts[result].Inc()
	g.metrics.giftTime.Observe(took.Seconds())
}

// met notes that a gift was acknowledged.
func (g *Ledger) met(seq uint64) {
	g.here.gift.meet(seq)
	g.marks.met(link.GiftStream, seq)
}

// synced is for a group that is on disk. What of it came on the bus before was held back, see package feed.
func (g *Ledger) synced(group []*write) {
	g.metrics.group.Observe(float64(len(group)))
	last, rooms := uint64(0), map[string]uint64{}
	for _, w := range group {
		if w.err == nil {
			last = max(last, w.ack.Sequence)
			rooms[w.room] = max(rooms[w.room], w.ack.Sequence)
		}
	}
	if last == 0 {
		return
	}
	g.met(last)
	if len(group) >= groupLeast {
		for room, seq := range rooms {
			g.rooms.SayGift(room, seq, true)
		}
	}
}

// Gift returns one gift of the room by its sequence; its Prev is not filled in. ErrNotFound when the ledger has none,
// or another room's, under it.
func (g *Ledger) Gift(ctx context.Context, room string, seq uint64) (protocol.StoredGift, error) {
	if seq == 0 {
		return protocol.StoredGift{}, ErrNotFound
	}
	got, err := g.toldAll(g.link.Read(ctx, link.GiftStream, link.Ask{Seq: seq, Next: giftSubject(room), Batch: 1}))
	if err != nil {
		return protocol.StoredGift{}, err
	}
	if len(got) == 0 || got[0].Seq != seq {
		return protocol.StoredGift{}, ErrNotFound
	}
	return protocol.StoredGift{Seq: seq, Event: got[0].Data, Time: got[0].Time, Paid: got[0].Paid}, nil
}

// Gifts returns the room's gifts with Seq greater than after, oldest first, at most limit (1 to 1000, else an error).
// The first one's Prev equals after exactly if after is a gift of this room that the ledger still has, or 0 and
// nothing has aged out before it: so a reader knows whether it missed something.
func (g *Ledger) Gifts(ctx context.Context, room string, after uint64, limit int) ([]protocol.StoredGift, error) {
	if limit < 1 || limit > 1000 {
		return nil, fmt.Errorf("gifts of room %s: limit %d is not in 1 to 1000", room, limit)
	}
	var prev uint64
	if after > 0 {
		before, err := g.link.Read(ctx, link.GiftStream, link.Ask{MultiLast: []string{giftSubject(room)}, UpToSeq: after})
		if err != nil {
			return nil, err
		}
		if len(before) > 0 {
			prev = before[0].Seq
		}
	}
	return g.giftsFrom(ctx, room, after, prev, limit)
}

// giftsFrom reads on from after, where prev is known to be the gift before.
func (g *Ledger) giftsFrom(ctx context.Context, room string, after, prev uint64, limit int) ([]protocol.StoredGift, error) {
	got, err := g.toldAll(g.link.Read(ctx, link.GiftStream, link.Ask{Seq: after + 1, Next: giftSubject(room), Batch: limit}))
	if err != nil {
		return nil, err
	}
	gifts := make([]protocol.StoredGift, 0, len(got))
	for _, r := range got {
		gifts = append(gifts, protocol.StoredGift{Seq: r.Seq, Prev: prev, Event: r.Data, Time: r.Time, Paid: r.Paid})
		prev = r.Seq
	}
	return gifts, nil
}

// GiftsEnd is [Ledger.LastGift] as the stream's leader has it: nothing acknowledged is beyond it.
func (g *Ledger) GiftsEnd(ctx context.Context, room string) (uint64, error) {
	r, _, err := g.link.LeaderGet(ctx, link.GiftStream, link.Ask{Last: giftSubject(room)})
	return r.Seq, err
}

// LastGift returns the sequence of the room's last gift, 0 for none.
func (g *Ledger) LastGift(ctx context.Context, room string) (uint64, error) {
	r, _, err := g.link.Last(ctx, link.GiftStream, giftSubject(room))
	return r.Seq, err
}

// Size is what the ledger said of itself when it was asked last; false when it did not answer.
func (g *Ledger) Size() (LedgerSize, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.size, g.stored
}

// Measure asks the ledger for its size.
func (g *Ledger) Measure(ctx context.Context) {
	info, err := g.link.StreamInfo(ctx, link.GiftStream)
	if err != nil {
		g.note(nil)
		return
	}
	g.know(info)
	g.here.gift.meet(info.State.LastSeq)
	g.marks.ended(time.Now(), info.State.LastSeq, false)
	size := LedgerSize{int64(info.State.Bytes), info.Config.MaxBytes}
	if wasFull := g.note(&size); size.nearlyFull() && !wasFull {
		g.log.Warn("gift ledger is over 80 % full; at 100 % gifts are refused", "bytes", size.Bytes, "limit", size.Limit)
	}
	g.metrics.giftBytes.Set(float64(size.Bytes))
	g.metrics.giftLimit.Set(float64(size.Limit))
}

// note keeps the answer, nil for none, and reports whether the ledger was nearly full before.
func (g *Ledger) note(size *LedgerSize) (wasFull bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wasFull, g.stored = g.size.nearlyFull(), size != nil
	if g.stored {
		g.size = *size
	}
	return wasFull
}
