package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/lock"
	"liveroom/internal/trace"
	"liveroom/protocol"
	"liveroom/room"
)

// Ledger is where gifts are stored, and beside them the intents.
type Ledger interface {
	// LedgerEnd is a sequence beyond which everything lies that is stored from now on.
	LedgerEnd() uint64
	// Intend keeps an intent durably and numbers it. [ErrOpen] while the same (room, user, id) has one; room.ErrRefused: nothing was kept.
	Intend(ctx context.Context, room, user, id string, data []byte) (attempt uint64, err error)
	// Intents calls each with what is kept, oldest first, until it returns false.
	Intents(ctx context.Context, each func(Intent) bool) error
	// DropIntent takes one away, if it is there.
	DropIntent(ctx context.Context, attempt uint64) error
	// StorePaidGift is room.Ledger's StoreGift, refused once the attempt has ended.
	StorePaidGift(ctx context.Context, room, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error)
	// EndAttempt makes sure that no gift of the attempt is stored from now on, and returns the sequence of the one that was, 0 for none.
	EndAttempt(ctx context.Context, room string, attempt, from uint64, age time.Duration) (seq uint64, err error)
}

// Intent is a gift that is being paid for.
type Intent struct {
	Attempt uint64
	Data    []byte
	Age     time.Duration // by the store's clock
}

// Platform is asked for the money.
type Platform interface {
	// Call asks; its error is a *hook.Failure.
	Call(ctx context.Context, c hook.Call, answer hook.Answer) error
	// Err returns nil unless it is known to be away.
	Err() error
}

var _ Platform = (*hook.Endpoint)(nil)

// Config configures a [Till]. Everything is required but Metrics.
type Config struct {
	Node     string
	Ledger   Ledger
	Platform Platform
	Metrics  *Metrics
	Log      *slog.Logger
}

// Till has gifts paid for.
type Till struct {
	// Fixed after construction.
	cfg   Config
	queue chan work // for the goroutines of Run

	mu   lock.Mutex[lock.Leaf]
	held map[uint64]struct{} // attempts that somebody here works on
	wait map[uint64]pause    // and those that could not be settled
}

// queued bounds what waits to be settled after it was answered; what is beyond it is found by the sweep.
const queued = 4096

// New returns a till; [Till.Run] settles.
func New(cfg Config) *Till {
	return &Till{cfg: cfg, queue: make(chan work, queued), held: map[uint64]struct{}{}, wait: map[uint64]pause{}}
}

var _ room.Till = (*Till)(nil)

// ErrOpen says that an earlier attempt of the same gift is not settled: its outcome is not known yet.
var ErrOpen = errors.New("payment: an attempt of this gift is not settled")

// noted is an intent as it is kept.
type noted struct {
	Data
	From uint64 `json:"from"` // LedgerEnd before it
	Node string `json:"node"`

	Trace string `json:"trace,omitempty"` // that it belongs to
}

// Sell implements [room.Till].
func (t *Till) Sell(ctx context.Context, s *room.Sale) (protocol.Receipt, error) {
	if err := t.cfg.Platform.Err(); err != nil {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", room.ErrRefused, err)
	}
	n := noted{Data: dataOf(s), From: t.cfg.Ledger.LedgerEnd(), Node: t.cfg.Node, Trace: trace.Mark(ctx)}
	kept, err := json.Marshal(n)
	if err != nil {
		return protocol.Receipt{}, fmt.Errorf("%w: %w", room.ErrRefused, err)
	}
	n.Attempt, err = t.cfg.Ledger.Intend(ctx, s.Room, s.Gift.User.ID, s.ID, kept)
	switch {
	case errors.Is(err, ErrOpen):
		return protocol.Receipt{}, err
	case err != nil: // if it was kept all the same, the sweep cancels what nobody has heard of
		return protocol.Receipt{}, fmt.Errorf("%w: %w", room.ErrRefused, err)
	}
	t.hold(n.Attempt)
	receipt, w, err := t.sell(ctx, s, n)
	w.noted = n
	t.later(w)
	return receipt, err
}

// sell reserves and stores, and says what is left to do.
func (t *Till) sell(ctx context.Context, s *room.Sale, n noted) (protocol.Receipt, work, error) {
	var v Verdict
	if err := t.cfg.Platform.Call(ctx, hook.Call{ID: callID(Reserve, n.Attempt), Type: Reserve, Data: n.Data, Repeat: true}, &v); err != nil {
		left := work{do: cancelIt}
		if failure := (*hook.Failure)(nil); errors.As(err, &failure) && !failure.Sent {
			left.do = forgetIt
		}
		return protocol.Receipt{}, left, fmt.Errorf("%w: %w", room.ErrRefused, err)
	}
	switch {
	case !*v.Allow:
		return protocol.Receipt{}, work{do: forgetIt}, v.refusal()
	case v.Seq > 0:
		return protocol.Receipt{Seq: v.Seq, Duplicate: true}, work{do: forgetIt}, nil
	}
	paid := protocol.Payment{Attempt: n.Attempt, Charged: v.Charged, Ref: v.Ref}
	receipt, err := t.cfg.Ledger.StorePaidGift(ctx, s.Room, s.Gift.User.ID, s.ID, s.Event, paid)
	switch {
	case errors.Is(err, room.ErrRefused):
		return receipt, work{do: cancelIt}, err
	case err != nil:
		return receipt, work{do: decideIt}, err
	case receipt.Duplicate: // what the ledger has under this id was not stored by this attempt
		return receipt, work{do: cancelIt}, nil
	}
	return receipt, work{do: confirmIt, seq: receipt.Seq}, nil
}

// callID is a message's id in the sense of Standard Webhooks: the same over all tries of the same thing.
func callID(kind string, attempt uint64) string { return fmt.Sprintf("%s_%d", kind, attempt) }

func (t *Till) hold(attempt uint64) {
	t.mu.Lock()
	t.held[attempt] = struct{}{}
	t.mu.Unlock()
}

func (t *Till) letGo(attempt uint64) {
	t.mu.Lock()
	delete(t.held, attempt)
	t.mu.Unlock()
}
