package node

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/recent"
)

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

// watch ends a step of the ring each [recent.Step].
func (l *lately) watch(ctx context.Context, n *Node, reg prometheus.Gatherer) {
	tick := time.NewTicker(recent.Step)
	defer tick.Stop()
	for {
		l.take(n, reg)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l *lately) take(n *Node, reg prometheus.Gatherer) {
	set := n.book.Current()
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
