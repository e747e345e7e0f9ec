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
}

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
	return m
}

// flushed counts one flush. now and the stamps are Unix ms.
func (m *Metrics) flushed(took time.Duration, now int64, stamps []int64) {
	m.flush.Observe(took.Seconds())
	for _, ts := range stamps {
		m.delivery.Observe(float64(max(0, now-ts)) / 1000)
	}
}
