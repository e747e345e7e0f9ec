package main

import (
	"github.com/prometheus/client_golang/prometheus"

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
