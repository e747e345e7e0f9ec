package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
)

// Intent is a gift that the platform may hold money for and that is not settled yet.
type Intent struct {
	Attempt uint64 // numbers it among all that ever were
	Data    []byte
	Age     time.Duration // by the store's clock
}

const (
	intentStream = "liveroom_intents"
	intentPrefix = "lr.intent."
	// intentBytes is some 100,000 of them; more are refused, and with them the gifts.
	intentBytes = 64 << 20
	// intentsRead is how many are read at a time.
	intentsRead = 256
)

// intents describes the stream: one message per (room, user, id), taken away when it is settled.
func intents() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: intentStream, Subjects: []string{intentPrefix + "*"}, Storage: jetstream.FileStorage,
		MaxBytes: intentBytes, Discard: jetstream.DiscardNew, AllowDirect: true, Duplicates: time.Second,
		FirstSeq: uint64(time.Now().UnixMilli()), // a stream that was lost must not number attempts again
	}
}

// LedgerEnd is the highest sequence of any gift that this node has met: whatever is stored from now on lies beyond it.
func (f *Fabric) LedgerEnd() uint64 { return f.known.gift.n.Load() }

// Intend keeps an intent, on disk before it returns, and numbers it. ErrConflict when one of the same (room, user, id) is not
// settled; ErrRefused and ErrUnknown as with gifts.
func (f *Fabric) Intend(ctx context.Context, room, user, id string, data []byte) (attempt uint64, err error) {
	if err := f.mayStore(roadIntent); err != nil {
		return 0, err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	m := &nats.Msg{Subject: intentPrefix + giftID(room, user, id), Data: data}
	ack, err := f.js.PublishMsg(ctx, m, jetstream.WithExpectStream(intentStream), jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	f.wrote(err)
	switch {
	case err == nil:
		return ack.Sequence, nil
	case wrongLast(err):
		return 0, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return 0, fmt.Errorf("%w: %w", storeFailure(err), err)
}

// wrongLast reports whether a subject has another message than was expected, or one on its way into a replicated stream.
func wrongLast(err error) bool {
	code := apiCode(err)
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

// Intents calls f with what is not settled, oldest first, until it returns false.
func (f *Fabric) Intents(ctx context.Context, each func(Intent) bool) error {
	now, err := f.storeNow(ctx, intentStream)
	if err != nil {
		return err
	}
	for after := uint64(0); ; {
		got, err := f.read(ctx, intentStream, directGet{Seq: after + 1, Next: intentPrefix + "*", Batch: intentsRead})
		if err != nil {
			return err
		}
		for _, r := range got {
			if after = r.Seq; !each(Intent{Attempt: r.Seq, Data: r.Data, Age: now.Sub(r.Time)}) {
				return nil
			}
		}
		if len(got) < intentsRead {
			return nil
		}
	}
}

// DropIntent takes away what is settled. It may be gone already.
func (f *Fabric) DropIntent(ctx context.Context, attempt uint64) error {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	answer, err := f.store.RequestWithContext(ctx, "$JS.API.STREAM.MSG.DELETE."+intentStream, fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, attempt))
	if err != nil {
		return fmt.Errorf("drop intent %d: %w", attempt, err)
	}
	var got struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return fmt.Errorf("drop intent %d: %w", attempt, err)
	}
	if got.Error == nil {
		return nil
	}
	// The server has one word for all that may be wrong with it.
	if _, there, err := f.leaderGet(ctx, intentStream, leaderGet{Seq: attempt}); err == nil && !there {
		return nil
	}
	return fmt.Errorf("drop intent %d: %w", attempt, got.Error)
}

// The headers of a gift that was paid for.
const (
	attemptHeader = "Lr-Attempt"
	chargedHeader = "Lr-Charged"
	refHeader     = "Lr-Ref"
)

// endSubject is where an attempt's end is kept, among the gifts. "==" begins no room's token.
func endSubject(attempt uint64) string {
	return giftPrefix + "==end=" + strconv.FormatUint(attempt, 10)
}

// paymentHeader says how a gift was paid for, and has the store refuse it once its attempt has an end.
func paymentHeader(p protocol.Payment) nats.Header {
	h := nats.Header{}
	h.Set(attemptHeader, strconv.FormatUint(p.Attempt, 10))
	h.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	h.Set(jetstream.ExpectedLastSubjSeqSubjHeader, endSubject(p.Attempt))
	if p.Charged != 0 {
		h.Set(chargedHeader, strconv.FormatInt(p.Charged, 10))
	}
	if p.Ref != "" {
		h.Set(refHeader, p.Ref)
	}
	return h
}

func paymentOf(h nats.Header) (p protocol.Payment) {
	if attempt := h.Get(attemptHeader); attempt != "" {
		p.Attempt, _ = strconv.ParseUint(attempt, 10, 64)
		p.Charged, _ = strconv.ParseInt(h.Get(chargedHeader), 10, 64)
		p.Ref = h.Get(refHeader)
	}
	return p
}

var (
	errLagging = errors.New("fanout: this replica of the ledger is behind its leader")
	errAged    = errors.New("fanout: too old to be decided: the ledger may have forgotten its gift")
)

// agedMargin is what is left of a gift's age when nobody may conclude from its absence any more.
const agedMargin = 24 * time.Hour

// EndAttempt settles what became of an attempt: from its return on no gift of it is stored, and the sequence of the one that was
// stored before is returned, 0 for none. from is [Fabric.LedgerEnd] as it was before the intent. It relies on no duplicate
// window and on nobody's clock: the end is a message among the gifts, on whose absence the store makes each gift of the attempt
// depend, and what lies before it is read. Whoever asks again, on any node, gets the same answer.
func (f *Fabric) EndAttempt(ctx context.Context, room string, attempt, from uint64, age time.Duration) (seq uint64, err error) {
	if age > f.cfg.GiftAge-agedMargin {
		return 0, errAged
	}
	end, err := f.endOf(ctx, attempt)
	if err != nil {
		return 0, fmt.Errorf("end attempt %d: %w", attempt, err)
	}
	last, ok, err := f.leaderGet(ctx, giftStream, leaderGet{Last: giftSubject(room)})
	if err != nil || !ok {
		return 0, err
	}
	for after := from; after < min(last.Seq, end); {
		got, err := f.read(ctx, giftStream, directGet{Seq: after + 1, Next: giftSubject(room), Batch: fillBatch})
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

// endOf writes an attempt's end, or finds the one that somebody has written.
func (f *Fabric) endOf(ctx context.Context, attempt uint64) (uint64, error) {
	if err := f.mayStore(roadGift); err != nil {
		return 0, err
	}
	within, cancel := f.storeContext(ctx)
	defer cancel()
	m := &nats.Msg{Subject: endSubject(attempt)}
	ack, err := f.js.PublishMsg(within, m, jetstream.WithExpectStream(giftStream), jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	f.wrote(err)
	if err == nil {
		f.marks.met(giftStream, ack.Sequence)
		return ack.Sequence, nil
	}
	if !wrongLast(err) {
		return 0, err
	}
	written, ok, err := f.leaderGet(ctx, giftStream, leaderGet{Last: endSubject(attempt)})
	if err == nil && !ok {
		err = errLagging
	}
	return written.Seq, err
}
