package node

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/store"
	"liveroom/internal/catalogue"
	"liveroom/internal/config"
	"liveroom/internal/edition"
	"liveroom/internal/hook"
	"liveroom/internal/payment"
	"liveroom/protocol"
	"liveroom/room"
)

// hookGift is the hook of gifts, in metrics, in the log and in /readyz.
const hookGift = "hook_gift"

// openTill makes what has gifts paid for. It settles what is open also where sockets may send none any more.
func (n *Node) openTill(ctx context.Context, reg prometheus.Registerer) error {
	calls, sales := hook.NewMetrics(reg, append([]string{hookGift}, webhookNames(n.cfg)...)...), payment.NewMetrics(reg)
	n.calls = calls
	n.tellAuthority()
	if n.cfg.Hooks.Gift.URL == "" {
		n.tellUnsettled(ctx)
		return nil
	}
	c, err := hookConfig(hookGift, n.cfg.Hooks, n.cfg.Hooks.Gift)
	if err != nil {
		return err
	}
	c.Metrics, c.Log = calls, n.log
	if n.giftHook, err = hook.New(c); err != nil {
		return err
	}
	n.closers.add("let go of the gift hook", 0, func(context.Context) error { n.giftHook.Close(); return nil })
	n.till = payment.New(payment.Config{Node: n.cfg.NodeID, Ledger: counter{n.fabric.Store.Payments}, Platform: n.giftHook, Metrics: sales, Log: n.log})
	n.runs("settling gifts", n.till.Run)
	n.runs("watching the gift hook", n.giftHook.Watch)
	return nil
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

// sells is the till as rooms know it.
func (n *Node) sells() room.Till {
	if n.till == nil {
		return nil // no *payment.Till in it
	}
	return n.till
}

// hookConfig reads one hook's settings, which are valid as far as they can be judged without files.
func hookConfig(name string, all config.Hooks, one config.Hook) (hook.Config, error) {
	c := hook.Config{Name: name, URL: one.URL, Timeout: one.Timeout, Plain: all.Plain, InFlight: all.InFlight, Waiting: all.Waiting}
	for _, s := range all.Secrets {
		secret, err := hook.ParseSecret(s)
		if err != nil {
			return c, err
		}
		c.Secrets = append(c.Secrets, secret)
	}
	var err error
	c.Roots, err = roots("hooks.ca", all.CA)
	return c, err
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

// HookSample says what a trial of the hooks asks for.
type HookSample struct {
	User string // who pays
	Pay  bool   // whether the price is taken in the end
}

// TestHooks asks the configured hooks what a running node would, tells of each step what is wrong with the answer, and returns whether
// nothing was.
func TestHooks(ctx context.Context, cfg config.Config, sample HookSample, tell func(step string, wrong error)) (bool, error) {
	if cfg.Hooks.Gift.URL == "" {
		return false, config.Fault{Path: "hooks.gift.url", Allowed: "a URL to be tried", Received: "nothing"}
	}
	if err := protocol.CheckUser("user", sample.User); err != nil {
		return false, config.Fault{Path: "user", Sentence: err.Error()}
	}
	gift := protocol.CatalogueGift{ID: "sample", Price: 1}
	if len(cfg.Gifts.Catalogue) > 0 {
		gift = cfg.Gifts.Catalogue[0]
	}
	now := time.Now()
	endpoint := func(off time.Duration, secrets ...string) (*hook.Endpoint, error) {
		c, err := hookConfig(hookGift, cfg.Hooks, cfg.Hooks.Gift)
		if err != nil {
			return nil, err
		}
		for i, s := range secrets {
			if c.Secrets[i], err = hook.ParseSecret(s); err != nil {
				return nil, err
			}
		}
		c.Secrets, c.Log, c.Now = c.Secrets[:max(len(secrets), 1)], slog.New(slog.DiscardHandler), func() time.Time { return time.Now().Add(off) }
		return hook.New(c)
	}
	unknown := make([]byte, 32)
	_, _ = rand.Read(unknown) // never fails
	signed, err := endpoint(0)
	if err != nil {
		return false, err
	}
	defer signed.Close()
	forged, err := endpoint(0, "whsec_"+base64.StdEncoding.EncodeToString(unknown))
	if err != nil {
		return false, err
	}
	defer forged.Close()
	stale, err := endpoint(-time.Hour)
	if err != nil {
		return false, err
	}
	defer stale.Close()
	trial := payment.Trial{
		Platform: signed, Forged: forged, Stale: stale, User: sample.User, Pay: sample.Pay, Tell: tell,
		Gift: gift, ID: fmt.Sprintf("t%d", now.UnixNano()), Attempt: uint64(now.UnixNano() / 1000),
	}
	return trial.Run(ctx), nil
}
