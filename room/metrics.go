package room

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/protocol"
)

// Metrics are what the rooms of a node count.
type Metrics struct {
	rooms, users prometheus.Gauge
	messages     [protocol.NumClasses]prometheus.Counter
	delivery     prometheus.Histogram
	flush        prometheus.Histogram
	giftHoles    prometheus.Counter
	giftRepeats  prometheus.Counter
	repeats      prometheus.Counter
	missed       prometheus.Counter
	lag, tick    prometheus.Gauge
	overload     [len(stages)]prometheus.Gauge
}

// stages are what a node that is behind does, by the rung it begins on.
var stages = [...]struct {
	name string
	rung int
}{{"ticks", rungNormal + 1}, {"likes", rungLikes}, {"danmaku", rungDanmaku}, {"connections", rungNewcomers}}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	m := &Metrics{
		rooms: f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_rooms", Help: "Rooms of this node, idle ones included."}),
		users: f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_users",
			Help: "Users of this node, those who left and whose buckets are not full again included."}),
		delivery: f.NewHistogram(prometheus.HistogramOpts{Name: "liveroom_delivery_seconds",
			Help:    "From a message's admission to the end of the flush that handed it to this node's viewers, once per message.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .5, 1, 2.5, 5}}),
		flush: f.NewHistogram(prometheus.HistogramOpts{Name: "liveroom_flush_seconds",
			Help:    "Length of one flush of a room: the frame built and handed to every member.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}}),
		giftHoles: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_gift_holes_total",
			Help: "Gifts that reached a room although one before them had not. Viewers see the hole by prev."}),
		giftRepeats: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_gift_repeats_total",
			Help: "Gifts that reached a room again and were dropped."}),
		repeats: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_first_answers_total",
			Help: "Requests answered from the memory of first answers."}),
		missed: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_tick_overflow_total",
			Help: "Danmaku that a room did not show because it was behind by a whole frame. Viewers are told by missed."}),
	}
	messages := f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_messages_total",
		Help: "Messages admitted by this node; degraded and repeated ones are not counted."}, []string{"class"})
	for c := range protocol.NumClasses {
		m.messages[c] = messages.WithLabelValues(c.String())
	}
	m.watched(f)
	return m
}

// watched registers what tells of overload.
func (m *Metrics) watched(f promauto.Factory) {
	m.lag = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_lag_seconds",
		Help: "How late this node comes to what viewers send. Over 0.04 it gives things up step by step."})
	m.tick = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_tick_seconds",
		Help: "Shortest time between two flushes of a room: what is configured, doubled up to three times while this node is behind."})
	overload := f.NewGaugeVec(prometheus.GaugeOpts{Name: "liveroom_overload",
		Help: "1 while this node is behind and therefore stretches ticks, or refuses likes, danmaku, connections."}, []string{"stage"})
	for i, s := range stages {
		m.overload[i] = overload.WithLabelValues(s.name)
	}
}

// behind shows how far behind the node is.
func (m *Metrics) behind(lag time.Duration, rung int, tick time.Duration) {
	m.lag.Set(lag.Seconds())
	m.tick.Set(tick.Seconds())
	for i, s := range stages {
		on := 0.0
		if rung >= s.rung {
			on = 1
		}
		m.overload[i].Set(on)
	}
}

// flushed counts one flush. now and the stamps are Unix ms.
func (m *Metrics) flushed(took time.Duration, now int64, stamps []int64) {
	m.flush.Observe(took.Seconds())
	for _, ts := range stamps {
		m.delivery.Observe(float64(max(0, now-ts)) / 1000)
	}
}
