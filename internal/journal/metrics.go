package journal

import (
	"encoding/json"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count what readers are told. Nil counts for nobody.
type Metrics struct{ gaps map[string]prometheus.Counter }

// NewMetrics registers the metrics with r, created at zero.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gaps := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "liveroom_events_gaps_total",
		Help: "Gaps that readers of the events were told of, by why something is missing."}, []string{"why"})
	m := &Metrics{gaps: map[string]prometheus.Counter{}}
	for _, why := range []string{whyAged, whyAnother, whyLost} {
		m.gaps[why] = gaps.WithLabelValues(why)
	}
	return m
}

// Told counts what a reader is given.
func (m *Metrics) Told(entries []Entry) {
	if m == nil {
		return
	}
	for _, e := range entries {
		var g gap
		if e.Kind == Gap && json.Unmarshal(e.Event, &g) == nil {
			if count := m.gaps[g.Why]; count != nil {
				count.Inc()
			}
		}
	}
}
