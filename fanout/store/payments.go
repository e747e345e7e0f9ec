package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// Intent is a gift that the platform may hold money for and that is not settled yet.
type Intent struct {
	Attempt uint64 // numbers it among all that ever were
	Data    []byte
	Age     time.Duration // by the store's clock
}

// Payments is the ledger together with what is being paid for.
type Payments struct {
	*Ledger
	intents *groups // nil with NATS servers of others; fixed
}

const (
	// intentBytes is some 100,000 of them; more are refused, and with them the gifts.
	intentBytes = 64 << 20
)

// intents describes the stream: one message per (room, user, id), taken away when it is settled.
func intents(embedded bool) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.IntentStream, Subjects: []string{link.IntentPrefix + "*"}, Storage: jetstream.FileStorage,
		MaxBytes: intentBytes, Discard: jetstream.DiscardNew, AllowDirect: true, Duplicates: time.Second, AllowAtomicPublish: embedded,
		FirstSeq: uint64(time.Now().UnixMilli()), // a stream that was lost must not number attempts again
	}
}

// LedgerEnd is the highest sequence of any gift that this node has met: whatever is stored from now on lies beyond it.
func (p *Payments) LedgerEnd() uint64 { return p.here.gift.n.Load() }

// StorePaidGift is [Ledger.StoreGift] for a gift that the platform has reserved money for. Once [Payments.EndAttempt] has ended the
// attempt, it stores nothing and returns ErrRefused, however late it comes.
func (p *Payments) StorePaidGift(ctx context.Context, room, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error) {
	m := &nats.Msg{Data: event, Header: link.PaymentHeader(paid)}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	m.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, endSubject(paid.Attempt))
	return p.await(ctx, room, giftID(room, user, id), m)
}

// Intend keeps an intent, on disk before it returns, and numbers it. ErrConflict when one of the same (room, user, id) is not
// settled; ErrRefused and ErrUnknown as with gifts.
func (p *Payments) Intend(ctx context.Context, room, user, id string, data []byte) (attempt uint64, err error) {
	m := nats.NewMsg(link.IntentPrefix + giftID(room, user, id))
	m.Data = data
	m.Header.Set(jetstream.ExpectedStreamHeader, link.IntentStream)
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	ack, err := p.keep(ctx, m)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// keep stores an intent, where others come at the same time together with them.
func (p *Payments) keep(ctx context.Context, m *nats.Msg) (ack *jetstream.PubAck, err error) {
	if p.intents == nil {
		return p.put(ctx, link.RoadIntent, m)
	}
	if err := p.mayStore(link.RoadIntent); err != nil {
		return nil, err
	}
	_, op := p.link.Traced(ctx, "put", link.IntentStream)
	defer func() { op.End(err) }()
	return answerOf(ctx, p.patience(ctx), func(within time.Duration, done func(*jetstream.PubAck, error)) {
		now := time.Now()
		p.intents.begin(&write{m: m, since: now, until: now.Add(within), done: done})
	})
}

// Intents calls f with what is not settled, oldest first, until it returns false.
func (p *Payments) Intents(ctx context.Context, each func(Intent) bool) error {
	info, err := p.link.StreamInfo(ctx, link.IntentStream)
	if err != nil {
		return err
	}
	for after := uint64(0); ; {
		got, err := p.link.Read(ctx, link.IntentStream, link.Ask{Seq: after + 1, Next: link.IntentPrefix + "*", Batch: readBatch})
		if err != nil {
			return err
		}
		for _, r := range got {
			if after = r.Seq; !each(Intent{Attempt: r.Seq, Data: r.Data, Age: info.TimeStamp.Sub(r.Time)}) {
				return nil
			}
		}
		if len(got) < readBatch {
			return nil
		}
	}
}

// DropIntent takes away what is settled. It may be gone already.
func (p *Payments) DropIntent(ctx context.Context, attempt uint64) error {
	_, err := p.drop(ctx, link.IntentStream, attempt)
	return err
}

// endSubject is where an attempt's end is kept, among the gifts. "==" begins no room's token.
func endSubject(attempt uint64) string {
	return link.GiftPrefix + "==end=" + strconv.FormatUint(attempt, 10)
}

var (
	errLagging = errors.New("fanout: this replica of the ledger is behind its leader")
	errAged    = errors.New("fanout: too old to be decided: the ledger may have forgotten its gift")
)

// agedMargin is what is left of a gift's age when nobody may conclude from its absence any more.
const agedMargin = 24 * time.Hour

// EndAttempt settles what became of an attempt: from its return on no gift of it is stored, and the sequence of the one that was
// stored before is returned, 0 for none. from is [Payments.LedgerEnd] as it was before the intent. It relies on no duplicate
// window and on nobody's clock: the end is a message among the gifts, on whose absence the store makes each gift of the attempt
// depend, and what lies before it is read. Whoever asks again, on any node, gets the same answer.
func (p *Payments) EndAttempt(ctx context.Context, room string, attempt, from uint64, age time.Duration) (seq uint64, err error) {
	if age > p.cfg.GiftAge-agedMargin {
		return 0, errAged
	}
	// Not on condition that there is none: of several ends each says the same, since the first keeps all gifts out, and a condition
	// is refused while a gift that depends on the same subject is on its way.
	ack, err := p.put(ctx, link.RoadGift, &nats.Msg{Subject: endSubject(attempt)}, jetstream.WithExpectStream(link.GiftStream))
	if err != nil {
		return 0, fmt.Errorf("end attempt %d: %w", attempt, err)
	}
	p.marks.met(link.GiftStream, ack.Sequence)
	end := ack.Sequence
	last, ok, err := p.link.LeaderGet(ctx, link.GiftStream, link.Ask{Last: giftSubject(room)})
	if err != nil || !ok {
		return 0, err
	}
	for after := from; after < min(last.Seq, end); {
		got, err := p.link.Read(ctx, link.GiftStream, link.Ask{Seq: after + 1, Next: giftSubject(room), Batch: readBatch})
		if err != nil {
			return 0, err
		}
		if len(got) == 0 {
			return 0, errLagging
		}
		for _, r := range got {
			if after = r.Seq; after > end {
				break
			}
			if r.Paid.Attempt == attempt {
				return after, nil
			}
		}
	}
	return 0, nil
}
