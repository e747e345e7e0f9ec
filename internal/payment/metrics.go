package payment

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics shows what is paid for. Nil counts for nobody.
type Metrics struct {
	ends   *prometheus.CounterVec
	open   prometheus.Gauge
	oldest prometheus.Gauge
}

var ends = map[deed]string{forgetIt: "refused", cancelIt: "cancelled", confirmIt: "confirmed"}

// NewMetrics registers them, at zero.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liveroom_gifts_settled_total", Help: "Gifts whose payment has ended on this node, by how, and whether the sender's own request or the sweep saw to it.",
		}, []string{"end", "by"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liveroom_gifts_unsettled", Help: "Gifts of all nodes for which the platform may hold money and which are not settled.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liveroom_gifts_unsettled_seconds", Help: "Age of the oldest of them, 0 for none.",
		}),
	}
	reg.MustRegister(m.ends, m.open, m.oldest)
	for _, end := range ends {
		m.ends.WithLabelValues(end, "request")
		m.ends.WithLabelValues(end, "sweep")
	}
	return m
}

func (m *Metrics) settled(w work) {
	if m == nil {
		return
	}
	by := "request"
	if w.swept {
		by = "sweep"
	}
	m.ends.WithLabelValues(ends[w.do], by).Inc()
}

func (m *Metrics) unsettled(all []Intent) {
	if m == nil {
		return
	}
	m.open.Set(float64(len(all)))
	oldest := 0.0
	for _, i := range all {
		oldest = max(oldest, i.Age.Seconds())
	}
	m.oldest.Set(oldest)
}
