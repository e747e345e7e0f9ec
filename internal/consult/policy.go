package consult

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/hook"
	"liveroom/internal/lock"
)

// Platform is asked.
type Platform interface {
	// Call asks; its error is a *hook.Failure.
	Call(ctx context.Context, c hook.Call, answer hook.Answer) error
}

var _ Platform = (*hook.Endpoint)(nil)

// Policy is what happens where the platform has not said what does.
type Policy string

// Policies. Joins know Allow and Refuse, danmaku Allow, SenderOnly and Hold.
const (
	Allow      Policy = "allow"       // as if nobody had to be asked
	Refuse     Policy = "refuse"      // come back later
	SenderOnly Policy = "sender_only" // shown to who said it
	Hold       Policy = "hold"        // kept until staff has decided
)

// Config configures [NewJoins] and [NewDanmaku]. Everything is required but Metrics.
type Config struct {
	Hook      string // its name in metrics and log
	Platform  Platform
	OnTimeout Policy
	Metrics   *Metrics
	Log       *slog.Logger
}

// What became of what was asked about, for metrics.
const (
	saidAllow      = "allow"
	saidReplace    = "replace"
	saidSenderOnly = "sender_only"
	saidHold       = "hold"
	saidRefuse     = "refuse"
	saidNothing    = "none" // no answer: the policy decided
)

// Metrics counts verdicts. Nil counts for nobody.
type Metrics struct{ verdicts *prometheus.CounterVec }

// NewMetrics registers what the named hooks for joins and danmaku say, at zero.
func NewMetrics(reg prometheus.Registerer, joins, danmaku string) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "liveroom_hook_verdicts_total", Help: "Joins and danmaku that the platform was asked about, by what it said; none: on_timeout decided.",
	}, []string{"hook", "verdict"})}
	reg.MustRegister(m.verdicts)
	for _, said := range []string{saidAllow, saidRefuse, saidNothing} {
		m.verdicts.WithLabelValues(joins, said)
	}
	for _, said := range []string{saidAllow, saidReplace, saidSenderOnly, saidHold, saidRefuse, saidNothing} {
		m.verdicts.WithLabelValues(danmaku, said)
	}
	return m
}

func (c *Config) count(said string) {
	if c.Metrics != nil {
		c.Metrics.verdicts.WithLabelValues(c.Hook, said).Inc()
	}
}

// complaints tells of answers that are none, at most one in complainEvery. What the endpoint knows to be away it has told itself.
type complaints struct {
	mu   lock.Mutex[lock.Leaf]
	last time.Time
}

const complainEvery = 10 * time.Second

func (l *complaints) tell(c *Config, room string, err error) {
	var f *hook.Failure
	if errors.As(err, &f) && (f.Outcome == hook.Away || f.Outcome == hook.Abandoned) {
		return
	}
	now := time.Now()
	l.mu.Lock()
	told := now.Sub(l.last) < complainEvery
	if !told {
		l.last = now
	}
	l.mu.Unlock()
	if !told {
		c.Log.Warn("a hook has given no answer", "hook", c.Hook, "room", room, "on_timeout", string(c.OnTimeout), "err", err)
	}
}
