package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/headcount"
	"liveroom/limit"
)

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
