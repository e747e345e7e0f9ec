package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/store"
	"liveroom/internal/catalogue"
	"liveroom/internal/config"
	"liveroom/internal/edition"
	"liveroom/internal/filter"
	"liveroom/internal/payment"
	"liveroom/protocol"
	"liveroom/room"
)

// openTill makes what has gifts paid for. It settles what is open also where sockets may send none any more.
func (n *Node) openTill(ctx context.Context, reg prometheus.Registerer) {
	sales := payment.NewMetrics(reg)
	n.tellAuthority()
	if n.hooks.gift == nil {
		n.tellUnsettled(ctx)
		return
	}
	n.till = payment.New(payment.Config{Node: n.cfg.NodeID, Ledger: counter{n.fabric.Store.Payments}, Platform: n.hooks.gift, Metrics: sales, Log: n.log})
	n.runs("settling gifts", n.till.Run)
}

// keptCatalogue is the copy of the last good catalogue, in the data directory.
const keptCatalogue = "gifts.json"

// openCatalogue puts the gifts in force that the store has, or the configuration's until somebody has published others.
func (n *Node) openCatalogue(ctx context.Context, reg prometheus.Registerer) (err error) {
	n.catalogue, err = catalogue.Open(ctx, edition.Config[catalogue.Edition]{
		Store: editions{n.fabric.Store.Catalogue}, Keep: filepath.Join(n.cfg.DataDir, keptCatalogue), Node: n.cfg.NodeID, Log: n.log,
		Metrics: edition.NewMetrics(reg, "catalogue"),
	}, n.cfg.Gifts.Catalogue, n.hub.Offer)
	if err == nil {
		n.closers.add("close the catalogue", 0, func(context.Context) error { n.catalogue.Close(); return nil })
	}
	return err
}

// keptWords is the copy of the last good list of words, in the data directory.
const keptWords = "filter.json"

// openFilter puts the platform's list of words in force, and follows it.
func (n *Node) openFilter(ctx context.Context, reg prometheus.Registerer) (err error) {
	n.words, err = filter.Open(ctx, edition.Config[filter.Edition]{
		Store: editions{n.fabric.Store.Filter}, Keep: filepath.Join(n.cfg.DataDir, keptWords), Node: n.cfg.NodeID, Log: n.log, Metrics: edition.NewMetrics(reg, "filter"),
	}, n.hub.Filter)
	if err == nil {
		n.closers.add("close the list of words", 0, func(context.Context) error { n.words.Close(); return nil })
	}
	return err
}

// sells is the till as rooms know it.
func (n *Node) sells() room.Till {
	if n.till == nil {
		return nil // no *payment.Till in it
	}
	return n.till
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
	err := n.fabric.Store.Payments.Intents(ctx, func(store.Intent) bool { open++; return true })
	if err == nil && open > 0 {
		n.log.Error("gifts are not settled, and the platform may hold money for them: set hooks.gift.url and hooks.secrets on one node at least", "gifts", open)
	}
}

// counter lets the till keep its intents in the fabric, and store its gifts there.
type counter struct{ *store.Payments }

var _ payment.Ledger = counter{}

// Intend implements [payment.Ledger].
func (c counter) Intend(ctx context.Context, roomID, user, id string, data []byte) (uint64, error) {
	attempt, err := c.Payments.Intend(ctx, roomID, user, id, data)
	if errors.Is(err, store.ErrConflict) {
		return 0, fmt.Errorf("%w: %w", payment.ErrOpen, err)
	}
	return attempt, busError(err)
}

// Intents implements [payment.Ledger].
func (c counter) Intents(ctx context.Context, each func(payment.Intent) bool) error {
	return c.Payments.Intents(ctx, func(i store.Intent) bool { return each(payment.Intent(i)) })
}

// StorePaidGift implements [payment.Ledger].
func (c counter) StorePaidGift(ctx context.Context, roomID, user, id string, event []byte, paid protocol.Payment) (protocol.Receipt, error) {
	receipt, err := c.Payments.StorePaidGift(ctx, roomID, user, id, event, paid)
	return receipt, busError(err)
}
