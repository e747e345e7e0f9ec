package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/store"
	"liveroom/internal/api"
	"liveroom/internal/config"
	"liveroom/internal/hook"
	"liveroom/internal/journal"
	"liveroom/internal/webhook"
)

// hookWebhook begins the names of webhooks among the hooks.
const hookWebhook = "webhook_"

// deliverWithin bounds one call of a webhook, its tries together.
const deliverWithin = 10 * time.Second

// webhookNames are the webhooks among the hooks.
func webhookNames(cfg config.Config) (names []string) {
	for _, w := range cfg.Webhooks {
		names = append(names, hookWebhook+w.Name)
	}
	return names
}

// openWebhooks begins to deliver, where this node is the one to.
func (n *Node) openWebhooks(reg prometheus.Registerer) error {
	names := make([]string, len(n.cfg.Webhooks))
	for i, w := range n.cfg.Webhooks {
		names[i] = w.Name
	}
	n.readers = n.consumers(reg)
	metrics := webhook.NewMetrics(reg, names...)
	for _, w := range n.cfg.Webhooks {
		c, err := webhookConfig(n.cfg.Hooks, w)
		if err != nil {
			return err
		}
		c.Metrics, c.Log, c.Trace = n.calls, n.log, n.trace
		endpoint, err := hook.New(c)
		if err != nil {
			return err
		}
		n.closers.add("let go of the webhook "+w.Name, 0, func(context.Context) error { endpoint.Close(); return nil })
		n.runs("watching the webhook "+w.Name, endpoint.Watch)
		courier := webhook.New(webhook.Config{
			Name: w.Name, Node: n.cfg.NodeID, Rooms: w.Rooms, Kinds: kindsOf(w.Kinds), Consumers: n.readers, Platform: endpoint,
			Letters: deadLetters{n.fabric.Store.Letters}, Metrics: metrics, Log: n.log,
		})
		n.webhooks = append(n.webhooks, courier)
		n.runs("delivering for the webhook "+w.Name, courier.Run)
	}
	n.watchConsumers(reg)
	return nil
}

func webhookConfig(all config.Hooks, w config.Webhook) (hook.Config, error) {
	c, err := hookConfig(hookWebhook+w.Name, all, config.Hook{URL: w.URL, Timeout: deliverWithin})
	c.InFlight, c.Waiting = 2, 2 // the line's, and what is sent again
	return c, err
}

func kindsOf(names []string) (kinds []journal.Kind) {
	for _, k := range names {
		kinds = append(kinds, journal.Kind(k))
	}
	return kinds
}

// webhook is one of this node's as the API knows it.
func (n *Node) webhook(consumer string) api.Webhook {
	if c := n.webhooks.Of(consumer); c != nil {
		return c
	}
	return nil // no *webhook.Courier in it
}

// deadLetters keeps them in the fabric.
type deadLetters struct{ *store.Letters }

var _ webhook.Letters = deadLetters{}

// LettersAfter implements [webhook.Letters].
func (l deadLetters) LettersAfter(ctx context.Context, name string, after uint64, limit int) ([]webhook.KeptLetter, error) {
	kept, err := l.LettersOf(ctx, name, after, limit)
	out := make([]webhook.KeptLetter, len(kept))
	for i, k := range kept {
		out[i] = webhook.KeptLetter(k)
	}
	return out, err
}

// watchEvery is how often it is looked how far consumers are behind.
const watchEvery = 15 * time.Second

// watchConsumers shows how far those who read are behind.
func (n *Node) watchConsumers(reg prometheus.Registerer) {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		reg.MustRegister(g)
		return g
	}
	count := gauge("liveroom_consumers", "Readers of the events that have names, webhooks included.")
	worst := gauge("liveroom_consumer_lag_seconds", "Age of the oldest event that a consumer has not acknowledged; the one that is furthest behind, webhooks and paused ones excepted.")
	letters := gauge("liveroom_webhook_dead_letters", "Events that platforms did not take and nobody has decided about, of all webhooks.")
	lag := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "liveroom_webhook_lag_seconds", Help: "Age of the oldest event that a webhook has not delivered; 0 while it is paused."}, []string{"webhook"})
	reg.MustRegister(lag)
	for _, w := range n.cfg.Webhooks {
		lag.WithLabelValues(w.Name)
	}
	n.every("watching consumers", watchEvery, func(ctx context.Context) {
		if left, err := n.fabric.Store.Letters.LettersLeft(ctx); err == nil {
			letters.Set(float64(left))
		}
		all, err := n.readers.All(ctx)
		if err != nil {
			return // the store's absence is told by others
		}
		most := 0.0
		for _, c := range all {
			behind := journal.Lag{}
			if !c.Paused {
				if behind, err = n.readers.Lag(ctx, c.At, c.Filter()); err != nil {
					return
				}
			}
			if ours := n.webhooks.Of(c.Name); ours != nil {
				lag.WithLabelValues(ours.Name()).Set(behind.Seconds)
			} else if !c.Owned {
				most = max(most, behind.Seconds)
			}
		}
		count.Set(float64(len(all)))
		worst.Set(most)
	})
}
