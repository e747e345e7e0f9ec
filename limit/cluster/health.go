package cluster

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// errAway is the Err of a call that was not made, because the shard is away.
var errAway = errors.New("cluster: the store is away")

// errAsleep stands for a time-out that was noticed late: it was this process
// that stood still, and nothing is known of the shard.
var errAsleep = errors.New("cluster: this process stood still")

// errSlow stands for an answer that came too late to be of use.
var errSlow error = slowness{}

type slowness struct{}

func (slowness) Error() string { return "cluster: the store answers too slowly" }
func (slowness) Timeout() bool { return true }

// health is what a lane knows of its shard: a breaker, which gobreaker keeps
// by generations, so that an answer from before an outage does not end it, and
// since when there is an outage.
type health struct {
	cluster *Cluster
	shard   string
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]

	// away is whether the breaker is not closed. down is the instant of the
	// first failure of the present outage, 0 while there is none.
	// back is when the last outage ended.
	away atomic.Bool
	down atomic.Int64
	back atomic.Int64
	// failing is since when no call has succeeded, 0 when the last one has.
	failing atomic.Int64
	mute    atomic.Bool // the last failure was for want of an answer

	mu     lock.Mutex[lock.Leaf]
	up     limit.Instant // of the first success since the last failure, 0 for none
	broken bool          // the shard is away, and that was told
	since  limit.Instant // when it was found away
	total  time.Duration // of times away that are over
	reason string
}

const (
	// tripAfter failures in a row open a breaker, unless all of them are within
	// a span, which is longer when there was no answer at all than when there
	// was a bad one: the nodes that saw a short one would go on with parts of
	// what the others still draw from, and on a machine that is short of time a
	// call may be late without anybody's fault. probeAfter lets one call through.
	tripAfter  = 3
	failedSpan = 100 * time.Millisecond
	silentSpan = 400 * time.Millisecond
	probeAfter = 400 * time.Millisecond
	// calm is how long a shard must answer before a failure begins another
	// outage, so that one that comes and goes is not open over and over.
	calm = 10 * time.Second
	// settling is how long after an outage the nodes go on with their parts:
	// until each has noticed and has told the store what it spent.
	settling = time.Second
)

func newHealth(c *Cluster, shard string) *health {
	h := &health{cluster: c, shard: shard}
	h.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     probeAfter,
		IsExcluded:  func(err error) bool { return errors.Is(err, errAsleep) },
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= tripAfter && h.lasts() },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateClosed {
				h.back.Store(int64(max(c.cfg.Clock(), 1)))
			}
			h.away.Store(to != gobreaker.StateClosed)
		},
	})
	return h
}

// allow asks whether a call may be made; done is told how it ended.
func (h *health) allow() (done func(error), err error) {
	if h.away.Load() {
		return nil, errAway
	}
	return h.probe()
}

// probe asks whether a call may be made to find out how the shard is: while it
// is away, one now and then.
func (h *health) probe() (done func(error), err error) {
	report, err := h.breaker.Allow()
	if err != nil {
		return nil, errAway
	}
	sent, patience := h.cluster.cfg.Clock(), h.cluster.timing.patience()
	return func(err error) {
		now := h.cluster.cfg.Clock()
		if timedOut(err) && now.Sub(sent) > patience*3/2 {
			report(errAsleep)
			return
		}
		if err != nil || now.Sub(sent) >= h.cluster.timing.slow() {
			h.cluster.timing.feelLag()
		}
		if err == nil && now.Sub(sent) >= h.cluster.timing.slow() {
			err = errSlow
		}
		was := h.away.Load()
		h.note(sent, now, err)
		report(err)
		h.tell(was, err)
	}, nil
}

// note keeps the instant of the first failure. It runs before the breaker
// hears of it, so that a rule that finds the shard away knows since when.
func (h *health) note(sent, now limit.Instant, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.failing.Store(0)
	} else {
		h.mute.Store(timedOut(err))
		h.failing.CompareAndSwap(0, int64(max(sent, 1)))
	}
	switch {
	case err == nil && h.up == 0:
		h.up = now
	case err == nil:
	case h.down.Load() == 0 || h.up != 0 && now.Sub(h.up) >= calm:
		h.down.Store(int64(max(now, 1)))
		h.up = 0
	default:
		h.up = 0
	}
}

// lasts tells whether calls have failed for long enough to be an outage.
func (h *health) lasts() bool {
	failing := limit.Instant(h.failing.Load())
	span := failedSpan
	if h.mute.Load() {
		span = silentSpan
	}
	return failing != 0 && h.cluster.cfg.Clock().Sub(failing) >= span*h.cluster.timing.allowance()
}

// tell logs the beginning and the end of an outage.
func (h *health) tell(was bool, err error) {
	if h.away.Load() == was {
		return
	}
	now := h.cluster.cfg.Clock()
	h.mu.Lock()
	begins := h.away.Load() && !h.broken
	ends := !h.away.Load() && h.broken
	span := now.Sub(h.since)
	switch {
	case begins:
		h.broken, h.since, h.reason = true, now, reasonOf(err)
	case ends:
		h.broken, h.total, h.reason = false, h.total+span, ""
	}
	h.mu.Unlock()
	log := h.cluster.cfg.Log
	switch {
	case log == nil:
	case begins:
		log.Warn("shared quotas: the store is away, rules go by on_outage", slog.String("shard", h.shard), slog.Any("err", err))
	case ends:
		log.Info("shared quotas: the store is back", slog.String("shard", h.shard), slog.Duration("after", span))
	}
}

// settles tells whether an outage is just over.
func (h *health) settles(now limit.Instant) bool {
	back := limit.Instant(h.back.Load())
	return back != 0 && now.Sub(back) < settling
}

// state is the breaker's.
func (h *health) state() BreakerState {
	switch h.breaker.State() {
	case gobreaker.StateOpen:
		return BreakerOpen
	case gobreaker.StateHalfOpen:
		return BreakerProbing
	}
	return BreakerClosed
}

// degraded tells whether the shard is away, for how long and why, and how long
// it was in all.
func (h *health) degraded() (away bool, age time.Duration, reason string, total time.Duration) {
	now := h.cluster.cfg.Clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.broken {
		return false, 0, "", h.total
	}
	age = now.Sub(h.since)
	return true, age, h.reason, h.total + age
}

// reasonOf is a word or two for people; the log has the whole error.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errSlow):
		return "answers too slowly"
	case timedOut(err):
		return "no answer in time"
	}
	return err.Error()
}

// timedOut tells an error for want of an answer, the context's or a socket's.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// verdictOf is what a batch says of its shard: it is at fault when no call
// succeeded, or when it refuses one as it would all: a call that had nothing to
// write may pass nevertheless. A key that alone gives errors is no outage of the
// others.
func verdictOf(calls []*Call) error {
	var first error
	served := false
	for _, c := range calls {
		switch {
		case errors.Is(c.Err, ErrRefused):
			return c.Err
		case c.Err == nil || errors.Is(c.Err, ErrStale):
			served = true
		case first == nil:
			first = c.Err
		}
	}
	if served {
		return nil
	}
	return first
}
