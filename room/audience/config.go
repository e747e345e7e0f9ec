package audience

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Config says how rooms show what they show. Zero fields take the defaults that are named with them.
type Config struct {
	// Tick is the shortest time between two flushes of a room. Default 25 ms.
	Tick time.Duration
	// DeflateFrom is how many members must take deflated frames before a room makes them, and gathers longer for a frame
	// while much is said, so that it deflates better. Making one costs about as much as writing it to five or ten. Default 16.
	DeflateFrom int
	// GatherTick is the longest that it then gathers; at Tick or below it never does. Default 100 ms.
	GatherTick time.Duration
	// HistoryCount is how many danmaku a joining member is shown. Default 50.
	HistoryCount int
	// HistoryAge is how old the oldest of them may be. Default 5 minutes.
	HistoryAge time.Duration
	// ResumeOverlap is how far before a resuming client's last danmaku its history begins. Default 2 s.
	ResumeOverlap time.Duration
	// OnlineEvery is the shortest time between two online events of a room. Default 2 s.
	OnlineEvery time.Duration
	// LikeEvery is the shortest time between two like events of a room. Default 1 s.
	LikeEvery time.Duration
	// Workers is how many goroutines deliver one flush of a large room. Default: GOMAXPROCS.
	Workers int
	// Flushed is told how long each flush of a room took. Nil: nobody is.
	Flushed func(room string, took time.Duration)
}

// WithDefaults returns a copy in which zero fields have their defaults.
func (c Config) WithDefaults() Config {
	set(&c.Tick, 25*time.Millisecond)
	set(&c.DeflateFrom, 16)
	set(&c.GatherTick, 100*time.Millisecond)
	set(&c.HistoryCount, 50)
	set(&c.HistoryAge, 5*time.Minute)
	set(&c.ResumeOverlap, 2*time.Second)
	set(&c.OnlineEvery, 2*time.Second)
	set(&c.LikeEvery, time.Second)
	set(&c.Workers, runtime.GOMAXPROCS(0))
	return c
}

func set[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate returns every fault of the configuration, joined, each with its field; nil when there is none.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var faults []error
	for i, n := range []int{c.DeflateFrom, c.HistoryCount, c.Workers} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: want at least 1, have %d", [...]string{"DeflateFrom", "HistoryCount", "Workers"}[i], n))
		}
	}
	for i, d := range []time.Duration{c.Tick, c.GatherTick, c.HistoryAge, c.ResumeOverlap, c.OnlineEvery, c.LikeEvery} {
		if d < time.Millisecond {
			field := [...]string{"Tick", "GatherTick", "HistoryAge", "ResumeOverlap", "OnlineEvery", "LikeEvery"}[i]
			faults = append(faults, fmt.Errorf("%s: want at least 1ms, have %v", field, d))
		}
	}
	return errors.Join(faults...)
}

// Metrics are what the audiences of a node count.
type Metrics struct {
	delivery, flush                prometheus.Histogram
	giftHoles, giftRepeats, missed prometheus.Counter
}

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	return &Metrics{
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
		missed: f.NewCounter(prometheus.CounterOpts{Name: "liveroom_tick_overflow_total",
			Help: "Messages that a room did not show because it was behind by a whole frame. Viewers are told of danmaku by missed."}),
	}
}

// flushed counts one flush. now and the stamps are Unix ms.
func (m *Metrics) flushed(took time.Duration, now int64, stamps []int64) {
	m.flush.Observe(took.Seconds())
	for _, ts := range stamps {
		m.delivery.Observe(float64(max(0, now-ts)) / 1000)
	}
}
