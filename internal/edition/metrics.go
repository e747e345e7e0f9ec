package edition

import "github.com/prometheus/client_golang/prometheus"

// Values of the label result.
const (
	loadOK     = "ok"
	loadFailed = "failed"
	loadOlder  = "older"
)

// Metrics counts what happens to one kind of editions.
type Metrics struct {
	version   prometheus.Gauge
	loads     *prometheus.CounterVec
	rollbacks *prometheus.CounterVec
}

// NewMetrics makes the metrics of what is called so, and registers them with reg, unless that is nil. It panics when they are registered
// already.
func NewMetrics(reg prometheus.Registerer, name string) *Metrics {
	m := &Metrics{
		version: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liveroom_" + name + "_version", Help: "Version in force on this node.",
		}),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liveroom_" + name + "_loads_total", Help: "Versions that this node was handed, by what became of them.",
		}, []string{"result"}),
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liveroom_" + name + "_rollbacks_total", Help: "Versions put in force here that restore an older one, by who did it.",
		}, []string{"by"}),
	}
	for _, r := range []string{loadOK, loadFailed, loadOlder} {
		m.loads.WithLabelValues(r)
	}
	for _, k := range []Kind{KindRollback, KindGuard} {
		m.rollbacks.WithLabelValues(string(k))
	}
	if reg != nil {
		reg.MustRegister(m.version, m.loads, m.rollbacks)
	}
	return m
}

// inForce counts an edition that is in force now.
func (m *Metrics) inForce(s *Story) {
	m.loads.WithLabelValues(loadOK).Inc()
	m.version.Set(float64(s.Version))
	if s.Kind == KindGuard || s.Kind == KindRollback {
		m.rollbacks.WithLabelValues(string(s.Kind)).Inc()
	}
}
