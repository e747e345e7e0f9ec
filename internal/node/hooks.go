package node

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/config"
	"liveroom/internal/consult"
	"liveroom/internal/hook"
	"liveroom/internal/payment"
	"liveroom/internal/webhook"
	"liveroom/protocol"
	"liveroom/room"
)

// The hooks, in metrics, in the log and in /readyz.
const (
	hookGift    = "hook_gift"
	hookJoin    = "hook_join"
	hookDanmaku = "hook_danmaku"
)

// hooks are where the platform is asked; nil: it is not.
type hooks struct{ gift, join, danmaku *hook.Endpoint }

// openHooks makes them.
func (n *Node) openHooks(reg prometheus.Registerer) error {
	n.calls = hook.NewMetrics(reg, append([]string{hookGift, hookJoin, hookDanmaku}, webhookNames(n.cfg)...)...)
	for _, h := range []struct {
		name string
		cfg  config.Hook
		to   **hook.Endpoint
	}{{hookGift, n.cfg.Hooks.Gift, &n.hooks.gift}, {hookJoin, n.cfg.Hooks.Join.Hook, &n.hooks.join}, {hookDanmaku, n.cfg.Hooks.Danmaku.Hook, &n.hooks.danmaku}} {
		if h.cfg.URL == "" {
			continue
		}
		c, err := hookConfig(h.name, n.cfg.Hooks, h.cfg)
		if err != nil {
			return err
		}
		c.Metrics, c.Log, c.Trace = n.calls, n.log, n.trace
		e, err := hook.New(c)
		if err != nil {
			return err
		}
		*h.to = e
		n.closers.add("let go of "+h.name, 0, func(context.Context) error { e.Close(); return nil })
		n.runs("watching "+h.name, e.Watch)
	}
	return nil
}

// needs are the hooks that can be away.
func (h hooks) needs() (out []dependency) {
	names := []string{hookGift, hookJoin, hookDanmaku}
	for i, e := range []*hook.Endpoint{h.gift, h.join, h.danmaku} {
		if e != nil {
			out = append(out, dependency{names[i], e.Err})
		}
	}
	return out
}

// consults are the hooks as rooms know them; nil where the platform is not asked.
func (n *Node) consults(reg prometheus.Registerer) (joins room.JoinHook, danmaku room.DanmakuHook) {
	metrics, all := consult.NewMetrics(reg, hookJoin, hookDanmaku), n.cfg.Hooks
	if n.hooks.join != nil {
		joins = consult.NewJoins(consult.Config{
			Hook: hookJoin, Platform: n.hooks.join, OnTimeout: consult.Policy(all.Join.OnTimeout), Metrics: metrics, Log: n.log,
		}, n.cfg.Protocol.Attributes)
	}
	if n.hooks.danmaku != nil {
		danmaku = consult.NewDanmaku(consult.Config{
			Hook: hookDanmaku, Platform: n.hooks.danmaku, OnTimeout: consult.Policy(all.Danmaku.OnTimeout), Metrics: metrics, Log: n.log,
		}, n.cfg.Rooms.TextGraphemes)
	}
	return joins, danmaku
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

// HookSample says what a trial of the hooks asks for.
type HookSample struct {
	User string // who pays, joins and speaks
	Pay  bool   // whether the price is taken in the end
}

// TestHooks asks the configured hooks what a running node would, tells of each step what is wrong with the answer, and returns whether
// nothing was.
func TestHooks(ctx context.Context, cfg config.Config, sample HookSample, tell func(step string, wrong error)) (good bool, err error) {
	if err := protocol.CheckUser("user", sample.User); err != nil {
		return false, config.Fault{Path: "user", Sentence: err.Error()}
	}
	all, asked := cfg.Hooks, false
	good = true
	type tried struct {
		name string
		cfg  config.Hook
		try  func(*hook.Trial) bool
	}
	hooks := []tried{
		{hookGift, all.Gift, func(t *hook.Trial) bool {
			gift := protocol.CatalogueGift{ID: "sample", Price: 1}
			if len(cfg.Gifts.Catalogue) > 0 {
				gift = cfg.Gifts.Catalogue[0]
			}
			return (&payment.Trial{Trial: t, User: sample.User, Pay: sample.Pay, Gift: gift, Attempt: uint64(time.Now().UnixMicro())}).Run(ctx)
		}},
		{hookJoin, all.Join.Hook, func(t *hook.Trial) bool { return consult.TryJoin(ctx, t, sample.User, cfg.Protocol.Attributes) }},
		{hookDanmaku, all.Danmaku.Hook, func(t *hook.Trial) bool { return consult.TryDanmaku(ctx, t, sample.User, cfg.Rooms.TextGraphemes) }},
	}
	for _, w := range cfg.Webhooks {
		hooks = append(hooks, tried{hookWebhook + w.Name, config.Hook{URL: w.URL, Timeout: deliverWithin}, func(t *hook.Trial) bool { return webhook.Try(ctx, t, w.Name) }})
	}
	for _, h := range hooks {
		if h.cfg.URL == "" {
			continue
		}
		asked = true
		t, done, err := newTrial(h.name, all, h.cfg)
		if err != nil {
			return false, err
		}
		t.Tell = func(step string, wrong error) { tell(h.name+": "+step, wrong) }
		good = h.try(t) && good
		done()
	}
	if !asked {
		return false, config.Fault{Path: "hooks.gift.url", Allowed: "a URL to be tried, here, at hooks.join.url, at hooks.danmaku.url or in webhooks", Received: "nothing"}
	}
	return good, nil
}

// newTrial makes what a trial asks by: the hook as it will be, by a secret that nobody knows, and by a clock that is an hour late.
func newTrial(name string, all config.Hooks, one config.Hook) (t *hook.Trial, done func(), err error) {
	unknown := make([]byte, 32)
	_, _ = rand.Read(unknown) // never fails
	stranger, err := hook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(unknown))
	if err != nil {
		return nil, nil, err
	}
	c, err := hookConfig(name, all, one)
	if err != nil {
		return nil, nil, err
	}
	c.Secrets, c.Log = c.Secrets[:1], slog.New(slog.DiscardHandler)
	forged, stale := c, c
	forged.Secrets, stale.Now = []hook.Secret{stranger}, func() time.Time { return time.Now().Add(-time.Hour) }
	var made []*hook.Endpoint
	for _, c := range []hook.Config{c, forged, stale} {
		e, err := hook.New(c)
		if err != nil {
			return nil, nil, err
		}
		made = append(made, e)
	}
	t = &hook.Trial{Platform: made[0], Forged: made[1], Stale: made[2], ID: fmt.Sprintf("t%d", time.Now().UnixNano())}
	return t, func() {
		for _, e := range made {
			e.Close()
		}
	}, nil
}
