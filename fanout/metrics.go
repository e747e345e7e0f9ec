package fanout

import (
	"time"

	"liveroom/protocol"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what the bus does. Its labels are closed sets, created at zero.
type Metrics struct {
	received   *prometheus.CounterVec // by class
	dropped    *prometheus.CounterVec // by reason
	gifts      *prometheus.CounterVec // by result
	giftTime   prometheus.Histogram
	holes      *prometheus.CounterVec // by result
	connected  prometheus.Gauge
	reconnects prometheus.Counter
	deaf       prometheus.Counter
	probe      prometheus.Gauge
	nodes      prometheus.Gauge
	giftBytes  prometheus.Gauge
	giftLimit  prometheus.Gauge
	volume     prometheus.Gauge
	likes      prometheus.Gauge
	sync       prometheus.Gauge
	presence   prometheus.Counter
	forbidden  *prometheus.CounterVec // by operation
	asks       *prometheus.CounterVec // by result
	answers    *prometheus.CounterVec // by result

	// resolved once: a label lookup per message costs more than the count
	class            [protocol.NumClasses]prometheus.Counter // of received
	setting, pending prometheus.Counter
}

// NewMetrics makes the bus's metrics and registers them. A nil Registerer makes metrics that nobody reads.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "liveroom_bus_" + name, Help: help})
	}
	vec := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_bus_" + name, Help: help}, []string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "liveroom_bus_" + name, Help: help})
	}
	m := &Metrics{
		received: vec("received_total", "Messages delivered to the rooms of this node.", "class", "settings"),
		dropped:  vec("dropped_total", "Messages that NATS delivered and the client dropped.", "reason", "pending"),
		gifts: vec("gifts_total", "Gifts handed to the ledger.", "result",
			"stored", "duplicate", "refused", "unknown"),
		giftTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "liveroom_bus_gift_seconds", Help: "Time from a gift to the ledger's answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
		holes:      vec("gift_holes_total", "Holes found in a room's gifts.", "result", "filled", "failed"),
		connected:  gauge("connected", "1 while the connection to NATS stands."),
		reconnects: counter("reconnects_total", "Connections to NATS made anew."),
		deaf:       counter("deaf_total", "Connections cut because the message to ourselves did not come back."),
		probe:      gauge("probe_seconds", "Round trip of the last message to ourselves."),
		nodes:      gauge("nodes", "Nodes heard of lately, this one included."),
		giftBytes:  gauge("gift_ledger_bytes", "Size of the gift ledger."),
		giftLimit:  gauge("gift_ledger_limit_bytes", "Size at which the ledger refuses gifts; alert at 80 %."),
		presence:   counter("presence_bytes_total", "Bytes in which this node has announced itself and its rooms."),
		forbidden:  vec("forbidden_total", "Publications and subscriptions that NATS has forbidden.", "operation", opPublish, opSubscribe),
		asks:       vec("asks_total", "Questions to nodes.", "result", askResults[:]...),
		answers:    vec("answers_total", "Questions from nodes.", "result", "answered", faultFailed, faultBusy),
		volume: prometheus.NewGauge(prometheus.GaugeOpts{Name: "liveroom_data_volume_used_ratio",
			Help: "Used part of the data directory's volume, 0 to 1; at 1 nothing is stored. 0 with NATS servers of others."}),
		likes: gauge("likes_unstored", "Likes that wait to be stored."),
		sync:  gauge("sync_seconds", "How much longer the NATS servers took at start for a write to disk than for one to memory; 0: embedded, or not measured."),
	}
	for c := range protocol.NumClasses {
		m.class[c] = m.received.WithLabelValues(c.String())
	}
	m.setting, m.pending = m.received.WithLabelValues("settings"), m.dropped.WithLabelValues("pending")
	if reg != nil {
		reg.MustRegister(m.received, m.dropped, m.gifts, m.giftTime, m.holes, m.connected, m.reconnects, m.deaf,
			m.probe, m.nodes, m.giftBytes, m.giftLimit, m.volume, m.likes, m.sync, m.presence, m.forbidden, m.asks, m.answers)
	}
	return m
}

func (m *Metrics) giftDone(result string, took time.Duration) {
	m.gifts.WithLabelValues(result).Inc()
	m.giftTime.Observe(took.Seconds())
}
