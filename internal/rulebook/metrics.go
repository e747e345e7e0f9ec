package rulebook

import "github.com/prometheus/client_golang/prometheus"

// Values of the label result.
const (
	loadOK     = "ok"
	loadFailed = "failed"
	loadOlder  = "older"
)

// Metrics counts what happens to the limits.
type Metrics struct {
	version   prometheus.Gauge
	loads     *prometheus.CounterVec
	rollbacks *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them with reg, unless that is nil. It panics when they are registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		version: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liveroom_rules_version", Help: "Version of the limits in force on this node.",
		}),
		loads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liveroom_rules_loads_total", Help: "Sets of limits that this node was handed, by what became of them.",
		}, []string{"result"}),
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liveroom_rules_rollbacks_total", Help: "Sets of limits put in force here that restore an older one, by who did it.",
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
