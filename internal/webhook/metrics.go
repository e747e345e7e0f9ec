package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count what is delivered.
type Metrics struct {
	events *prometheus.CounterVec
	held   *prometheus.GaugeVec
}

// Results of an entry.
const (
	taken  = "delivered"
	letter = "dead"
)

// NewMetrics registers the metrics of the named webhooks, at zero.
func NewMetrics(r prometheus.Registerer, names ...string) *Metrics {
	f := promauto.With(r)
	m := &Metrics{
		events: f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_webhook_events_total",
			Help: "Events that a webhook's platform has taken, and dead letters."}, []string{"webhook", "result"}),
		held: f.NewGaugeVec(prometheus.GaugeOpts{Name: "liveroom_webhook_held",
			Help: "1 on the node that delivers for a webhook."}, []string{"webhook"}),
	}
	for _, name := range names {
		m.events.WithLabelValues(name, taken)
		m.events.WithLabelValues(name, letter)
		m.held.WithLabelValues(name)
	}
	return m
}

func (m *Metrics) delivered(name string, n int) {
	m.events.WithLabelValues(name, taken).Add(float64(n))
}
func (m *Metrics) dead(name string) { m.events.WithLabelValues(name, letter).Inc() }

func (m *Metrics) hold(name string, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	m.held.WithLabelValues(name).Set(value)
}
