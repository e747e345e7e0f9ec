package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/protocol"
)

// StoreGift writes a gift into the ledger and returns when it is durable. The same (room, user, id) within
// [Config.GiftRetry] returns the first one's sequence with Duplicate, also after a crash, whatever the event.
//
// An error is ErrRefused (nothing was stored: not connected, ledger full) or ErrUnknown (no answer within
// [Config.StoreTimeout] or ctx, or the same id is being stored this moment).
func (f *Fabric) StoreGift(ctx context.Context, room, user, id string, event []byte) (protocol.Receipt, error) {
	return f.StorePaidGift(ctx, room, user, id, event, protocol.Payment{})
}

// StorePaidGift is [Fabric.StoreGift] for a gift that the platform has reserved money for. Once [Fabric.EndAttempt] has ended the
// attempt, it stores nothing and returns ErrRefused, however late it comes.
func (f *Fabric) StorePaidGift(ctx context.Context, room, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error) {
	start := time.Now()
	m := &nats.Msg{Subject: giftSubject(room), Data: event}
	if paid.Attempt > 0 {
		m.Header = paymentHeader(paid)
	}
	receipt, err := f.storeGift(ctx, m, giftID(room, user, id))
	result := "stored"
	switch {
	case errors.Is(err, ErrUnknown):
		result = "unknown"
	case err != nil:
		result = "refused"
	case receipt.Duplicate:
		result = "duplicate"
		// The server re-publishes no duplicate, and the first answer may have been lost with its re-publishing.
		f.sayGift(room, receipt.Seq)
	}
	f.metrics.giftDone(result, time.Since(start))
	return receipt, err
}

func (f *Fabric) storeGift(ctx context.Context, m *nats.Msg, id string) (protocol.Receipt, error) {
	if f.isClosed() {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", ErrRefused, ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := f.mayStore(roadGift); err != nil {
		return protocol.Receipt{}, err
	}
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	// No second attempt: "no responders" means that nobody took it, and the client is told so at once.
	ack, err := f.js.PublishMsg(ctx, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(giftStream), jetstream.WithRetryAttempts(0))
	f.wrote(err)
	if err != nil {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", storeFailure(err), err)
	}
	f.known.gift.meet(ack.Sequence)
	f.marks.met(giftStream, ack.Sequence)
	return protocol.Receipt{Seq: ack.Sequence, Duplicate: ack.Duplicate}, nil
}

// errCodeDuplicateInProcess: the same message id is on its way into a replicated stream (nats-server error 10158).
const errCodeDuplicateInProcess = 10158

// storeFailure tells refusals, after which nothing is stored, from silence, after which nobody knows.
func storeFailure(err error) error {
	switch code := apiCode(err); code {
	case 0:
	case errCodeDuplicateInProcess:
		return ErrUnknown
	default:
		return ErrRefused // the server answered that it did not store
	}
	// nats.ErrConnectionClosed is not among them: nats.go returns it for a request whose connection broke under way.
	for _, unsent := range []error{
		nats.ErrReconnectBufExceeded, nats.ErrNoResponders, nats.ErrMaxPayload, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, unsent) {
			return ErrRefused
		}
	}
	return ErrUnknown
}
