package hook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the calls of all endpoints. Nil counts for nobody.
type Metrics struct {
	seconds *prometheus.HistogramVec
	flying  *prometheus.GaugeVec
	open    *prometheus.GaugeVec
}

// NewMetrics registers the metrics of the named hooks, at zero.
func NewMetrics(reg prometheus.Registerer, names ...string) *Metrics {
	m := &Metrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liveroom_hook_seconds", Help: "Calls of the platform's hooks, tries and waits included, by how they ended.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"hook", "outcome"}),
		flying: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "liveroom_hook_in_flight", Help: "Calls of a hook that are under way.",
		}, []string{"hook"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "liveroom_hook_away", Help: "1 while a hook has not answered and is only pinged.",
		}, []string{"hook"}),
	}
	reg.MustRegister(m.seconds, m.flying, m.open)
	for _, name := range names {
		m.flying.WithLabelValues(name)
		m.open.WithLabelValues(name)
		for _, o := range outcomes {
			m.seconds.WithLabelValues(name, string(o))
		}
	}
	return m
}

func (m *Metrics) done(name string, o Outcome, took time.Duration) {
	if m != nil {
		m.seconds.WithLabelValues(name, string(o)).Observe(took.Seconds())
	}
}

func (m *Metrics) inFlight(name string, n float64) {
	if m != nil {
		m.flying.WithLabelValues(name).Add(n)
	}
}

func (m *Metrics) away(name string, is bool) {
	if m == nil {
		return
	}
	value := 0.0
	if is {
		value = 1
	}
	m.open.WithLabelValues(name).Set(value)
}
