package trace

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	otel "go.opentelemetry.io/otel/trace"
)

// slowEvery is the shortest time between two lines about operations of one kind. What comes between is counted in the next line.
const slowEvery = time.Second

// slow tells what took too long.
type slow struct {
	// Fixed after construction.
	least time.Duration // 0: nothing does
	log   *slog.Logger
	began time.Time
	count [kinds]prometheus.Counter

	told    [kinds]atomic.Int64 // nanoseconds after began; 0: never
	leftOut [kinds]atomic.Int64 // since then
}

func newSlow(cfg Config) *slow {
	s := &slow{least: cfg.Slow, log: cfg.Log, began: time.Now()}
	all := promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{Name: "liveroom_slow_operations_total",
		Help: "Operations that took log.slow or longer."}, []string{"kind"})
	for k := range s.count {
		s.count[k] = all.WithLabelValues(described[k].name)
	}
	return s
}

func (s *slow) on() bool { return s.least > 0 }

// look tells of an operation if it took too long.
func (s *slow) look(id otel.SpanContext, k Kind, what, place string, took time.Duration) {
	if !s.on() || took < s.least {
		return
	}
	s.count[k].Inc()
	now, last := int64(time.Since(s.began)), s.told[k].Load()
	if last != 0 && now-last < int64(slowEvery) || !s.told[k].CompareAndSwap(last, now) {
		s.leftOut[k].Add(1)
		return
	}
	line := []any{"kind", described[k].name, "what", what, string(described[k].place), place, "seconds", took.Seconds()}
	if n := s.leftOut[k].Swap(0); n > 0 {
		line = append(line, "left_out", n)
	}
	s.log.WarnContext(otel.ContextWithSpanContext(context.Background(), id), "slow operation", line...)
}
