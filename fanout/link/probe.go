package link

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// probe sends messages to ourselves over one connection and notes when one came back.
type probe struct {
	conn    *nats.Conn
	subject string
	began   time.Time
	back    atomic.Int64 // nanoseconds after began of the last return
	sent    atomic.Int64 // the same, of its sending
	cut     time.Time    // when the connection was cut last; owned by Probe
}

func newProbe(c *nats.Conn, subject string) (*probe, error) {
	p := &probe{conn: c, subject: subject, began: time.Now()}
	_, err := c.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) != 8 {
			return
		}
		p.sent.Store(int64(binary.BigEndian.Uint64(m.Data)))
		p.back.Store(int64(time.Since(p.began)))
	})
	return p, err
}

func (p *probe) send() error {
	return p.conn.Publish(p.subject, binary.BigEndian.AppendUint64(nil, uint64(time.Since(p.began))))
}

func (p *probe) sentAt() time.Time { return p.began.Add(time.Duration(p.sent.Load())) }

// trip is how long the last message that came back was under way.
func (p *probe) trip() time.Duration { return time.Duration(p.back.Load() - p.sent.Load()) }

func (p *probe) silence(now time.Time) time.Duration {
	return now.Sub(p.began) - time.Duration(p.back.Load())
}

// HeardSelf returns the latest instant of which this node knows that others could reach it: when it sent the last message
// to itself that came back, on the worse of its two connections. It is the instant of sending, because a process that was paused finds
// messages of long ago when it wakes. It costs a few loads.
func (l *Link) HeardSelf() time.Time {
	oldest := l.probes[0].sentAt()
	if other := l.probes[1].sentAt(); other.Before(oldest) {
		return other
	}
	return oldest
}

// Healthy reports whether both connections stand and [Link.HeardSelf] is within the probe's time-out. It costs a few loads.
func (l *Link) Healthy() bool {
	return l.Connected() && time.Since(l.HeardSelf()) <= l.cfg.ProbeTimeout
}

// Deaf reports whether NATS accepts messages and delivers none.
func (l *Link) Deaf(now time.Time) bool {
	return l.probes[0].silence(now) > l.cfg.ProbeTimeout || l.probes[1].silence(now) > l.cfg.ProbeTimeout
}

// Probe is one round of messages to ourselves. It cuts a connection that stands and delivers nothing, so that nats.go makes it
// anew. Rounds come one after the other; a process that was paused learns nothing from a silence that was its own, and the next one tells.
func (l *Link) Probe() {
	late := !l.probed.IsZero() && time.Since(l.probed) > l.cfg.ProbeTimeout
	l.probed = time.Now()
	for i, p := range l.probes {
		_ = p.send() // not connected: counted as silence
		now := time.Now()
		if !late && p.conn.IsConnected() && p.silence(now) > l.cfg.ProbeTimeout && now.Sub(p.cut) > l.cfg.ProbeTimeout {
			p.cut = now
			l.metrics.deaf.Inc()
			l.Log.Error("nats delivers nothing; connecting anew", "connection", i, "silence", p.silence(now))
			_ = p.conn.ForceReconnect() // fails only on a closed connection
		}
	}
	now := time.Now()
	l.roads.probe(now, !late && l.Connected() && !l.Deaf(now))
	l.metrics.probe.Set(max(0, l.probes[0].trip()).Seconds())
}

// Metrics tell how the connections to NATS are.
type Metrics struct {
	connected  prometheus.Gauge
	reconnects prometheus.Counter
	deaf       prometheus.Counter
	probe      prometheus.Gauge
	forbidden  map[string]prometheus.Counter // by operation
}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	return &Metrics{
		connected:  f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_bus_connected", Help: "1 while the connection to NATS stands."}),
		reconnects: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_bus_reconnects_total", Help: "Connections to NATS made anew."}),
		deaf: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_bus_deaf_total",
			Help: "Connections cut because the message to ourselves did not come back."}),
		probe:     f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_bus_probe_seconds", Help: "Round trip of the last message to ourselves."}),
		forbidden: Counters(r, "forbidden_total", "Publications and subscriptions that NATS has forbidden.", "operation", opPublish, opSubscribe),
	}
}

// Counters makes the counters of one name, one for each value of a label.
func Counters(r prometheus.Registerer, name, help, label string, values ...string) map[string]prometheus.Counter {
	vec := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "liveroom_bus_" + name, Help: help}, []string{label})
	out := make(map[string]prometheus.Counter, len(values))
	for _, v := range values {
		out[v] = vec.WithLabelValues(v)
	}
	return out
}
