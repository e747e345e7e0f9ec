package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout"
	"liveroom/internal/config"
	"liveroom/internal/hook"
	"liveroom/internal/payment"
	"liveroom/protocol"
	"liveroom/room"
)

// hookGift is the hook of gifts, in metrics, in the log and in /readyz.
const hookGift = "hook_gift"

// openTill makes what has gifts paid for. It settles what is open also where sockets may send none any more.
func (n *Node) openTill(ctx context.Context, reg prometheus.Registerer) error {
	calls, sales := hook.NewMetrics(reg, hookGift), payment.NewMetrics(reg)
	n.tellAuthority()
	if n.cfg.Hooks.Gift.URL == "" {
		n.tellUnsettled(ctx)
		return nil
	}
	var err error
	if n.giftHook, err = newHook(hookGift, n.cfg.Hooks, n.cfg.Hooks.Gift, calls, n.log); err != nil {
		return err
	}
	n.closers.add("let go of the gift hook", 0, func(context.Context) error { n.giftHook.Close(); return nil })
	n.till = payment.New(payment.Config{Node: n.cfg.NodeID, Ledger: counter{n.fabric}, Platform: n.giftHook, Metrics: sales, Log: n.log})
	n.runs("settling gifts", n.till.Run)
	n.runs("watching the gift hook", n.giftHook.Watch)
	return nil
}

// sells is the till as rooms know it.
func (n *Node) sells() room.Till {
	if n.till == nil {
		return nil // no *payment.Till in it
	}
	return n.till
}

// newHook reads one hook's settings, which are valid as far as they can be judged without files.
func newHook(name string, all config.Hooks, one config.Hook, m *hook.Metrics, log *slog.Logger) (*hook.Endpoint, error) {
	ca, err := roots("hooks.ca", all.CA)
	if err != nil {
		return nil, err
	}
	secrets := make([]hook.Secret, len(all.Secrets))
	for i, s := range all.Secrets {
		if secrets[i], err = hook.ParseSecret(s); err != nil {
			return nil, err
		}
	}
	return hook.New(hook.Config{
		Name: name, URL: one.URL, Timeout: one.Timeout, Secrets: secrets, Roots: ca, Plain: all.Plain, InFlight: all.InFlight, Waiting: all.Waiting,
		Metrics: m, Log: log,
	})
}

// tellAuthority says at start what nobody decided, and what somebody may have left switched on.
func (n *Node) tellAuthority() {
	switch by := n.cfg.Gifts; {
	case by.Authority == config.GiftsByBackend && !by.Chosen():
		n.log.Warn("gifts that viewers' sockets send are refused, unlike in earlier versions: they come from your back end by the HTTP API. Say gifts.authority: backend to keep it so, hook to be asked about each, open to charge nothing",
			"gifts.authority", by.Authority)
	case by.Authority == config.GiftsOpen:
		n.log.Warn("gifts are open to everybody and nothing is charged: for a demonstration", "gifts.authority", by.Authority)
	}
}

// tellUnsettled says that the platform holds money for which this node can't speak to it.
func (n *Node) tellUnsettled(ctx context.Context) {
	open := 0
	err := n.fabric.Intents(ctx, func(fanout.Intent) bool { open++; return true })
	if err == nil && open > 0 {
		n.log.Error("gifts are not settled, and the platform may hold money for them: set hooks.gift.url and hooks.secrets on one node at least", "gifts", open)
	}
}

// counter lets the till keep its intents in the fabric, and store its gifts there.
type counter struct{ *fanout.Fabric }

var _ payment.Ledger = counter{}

// Intend implements [payment.Ledger].
func (c counter) Intend(ctx context.Context, roomID, user, id string, data []byte) (uint64, error) {
	attempt, err := c.Fabric.Intend(ctx, roomID, user, id, data)
	if errors.Is(err, fanout.ErrConflict) {
		return 0, fmt.Errorf("%w: %w", payment.ErrOpen, err)
	}
	return attempt, busError(err)
}

// Intents implements [payment.Ledger].
func (c counter) Intents(ctx context.Context, each func(payment.Intent) bool) error {
	return c.Fabric.Intents(ctx, func(i fanout.Intent) bool { return each(payment.Intent(i)) })
}

// StorePaidGift implements [payment.Ledger].
func (c counter) StorePaidGift(ctx context.Context, roomID, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error) {
	receipt, err := c.Fabric.StorePaidGift(ctx, roomID, user, id, event, paid)
	return receipt, busError(err)
}
