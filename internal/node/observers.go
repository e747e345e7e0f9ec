package node

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/headcount"
	"liveroom/internal/preview"
	"liveroom/internal/recent"
	"liveroom/limit"
)

// watchTraffic lets a recorder and a head count look on at the gate.
func (n *Node) watchTraffic(reg prometheus.Registerer) {
	n.recorder, n.lately = preview.NewRecorder(n.cfg.NodeID, n.gate.Now), newLately()
	n.gate.Observe(observers{newHeadcount(n.gate, reg), n.recorder, n.lately.top})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "liveroom_preview_sampled_ratio", Help: "Share of users whose requests are kept for previews of the limits.",
	}, n.recorder.Share))
}

// recentFigures are the metrics that the operator's page draws beside the limits' decisions, by the name it knows them by.
var recentFigures = map[string]string{
	"liveroom_sessions":         "sessions",
	"liveroom_messages_total":   "admitted",
	"liveroom_deliveries_total": "deliveries",
	"liveroom_dropped_total":    "dropped",
}

// lately keeps what this node did in the last minutes for the operator's page.
type lately struct {
	ring *recent.Ring
	top  *recent.Top
}

func newLately() *lately { return &lately{recent.NewRing(), &recent.Top{}} }

// remember ends a step of the ring each [recent.Step].
func (n *Node) remember(reg prometheus.Gatherer) {
	n.lately.take(n, reg)
	n.every("remembering what was", recent.Step, func(context.Context) { n.lately.take(n, reg) })
}

func (l *lately) take(n *Node, reg prometheus.Gatherer) {
	set := n.changes.Current()
	now := recent.Reading{Counts: n.gate.Counts(), Totals: map[string]int64{}, Gauges: map[string]int64{}, Version: set.Version, Kind: string(set.Kind)}
	families, err := reg.Gather()
	if err != nil {
		n.log.Warn("some metrics can't be read", "err", err) // what could be is there
	}
	for _, f := range families {
		name, wanted := recentFigures[f.GetName()]
		if !wanted {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.Gauge != nil {
				now.Gauges[name] += int64(m.Gauge.GetValue())
			} else {
				now.Totals[name] += int64(m.GetCounter().GetValue())
			}
		}
	}
	l.ring.Take(now)
}

// recentTraffic tells what this node knows by itself.
func (n *Node) recentTraffic() recent.Traffic {
	t := n.lately.ring.Traffic()
	t.Top = n.lately.top.Users(n.gate.Now())
	return t
}

// limitMetrics shows a gate's counters. The library counts by itself and knows no Prometheus.
type limitMetrics struct {
	gate      *limit.Gate
	decisions *prometheus.Desc
}

var _ prometheus.Collector = (*limitMetrics)(nil)

func newLimitMetrics(gate *limit.Gate) *limitMetrics {
	return &limitMetrics{
		gate: gate,
		decisions: prometheus.NewDesc("liveroom_limit_decisions_total", "What each rule made of the requests it was asked about.",
			[]string{"rule", "scope", "action", "outcome"}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (m *limitMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.decisions
}

// Collect implements [prometheus.Collector].
func (m *limitMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.gate.Counts() {
		ch <- prometheus.MustNewConstMetric(m.decisions, prometheus.CounterValue, float64(c.N), c.Rule, c.Scope, c.Action, c.Outcome)
	}
}

// observers lets several look on at one gate.
type observers []limit.Observer

var _ limit.Observer = observers(nil)

// Observe implements [limit.Observer].
func (all observers) Observe(o limit.Observed) {
	for _, one := range all {
		one.Observe(o)
	}
}

// newHeadcount counts the gate's users and shows them.
func newHeadcount(gate *limit.Gate, reg prometheus.Registerer) *headcount.Counter {
	c := headcount.New()
	for _, o := range headcount.Outcomes() {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "liveroom_limit_users", Help: "Different users of the last minute, by what they met; an estimate, off by about 1.6 %.",
			ConstLabels: prometheus.Labels{"outcome": o.String()},
		}, func() float64 { return c.Estimate(o, gate.Now()) }))
	}
	return c
}
