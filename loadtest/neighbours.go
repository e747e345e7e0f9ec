package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Turn is one turn of a comparison: the same trial without and with neighbours that may disturb it.
type Turn struct {
	Frozen int     `json:"frozen"` // readers that stopped reading
	Beside bool    `json:"beside"` // the huge room was busy
	P50    float64 `json:"p50_seconds" col:"p50,s"`
	P99    float64 `json:"p99_seconds" col:"p99,s"`
	Closed int     `json:"closed" col:"cut off"`               // frozen readers that the server had cut off at the turn's end
	Memory float64 `json:"memory_bytes" col:"server memory,B"` // at the turn's end; 0 when unknown
}

// disturbed reports whether there were neighbours.
func (t Turn) disturbed() bool { return t.Frozen > 0 || t.Beside }

func (t Turn) label() string {
	switch {
	case t.Beside:
		return "beside a busy room"
	case t.Frozen > 0:
		return fmt.Sprintf("with %d frozen", t.Frozen)
	}
	return "alone"
}

// frozenBuffer is the receive buffer of a frozen reader: small, so that the server feels it soon. Linux doubles it.
const frozenBuffer = 4 << 10

// slow asks what frozen readers cost the others: the same traffic without them and with them, in turns.
func slow(ctx context.Context, b *bench) error {
	return b.audience(ctx, func(c *crowd) error {
		return b.inTurns(ctx, &b.result.Slow, func(with bool, p plan) (t Turn, m *measured, err error) {
			if !with {
				m, err = b.measure(ctx, p, c.live())
				return t, m, err
			}
			err = b.withFrozen(ctx, func(frozen *crowd) (err error) {
				m, err = b.measure(ctx, p, c.live())
				t.Frozen, t.Memory = b.o.frozen, b.memoryNow(ctx)
				t.Closed = thaw(ctx, frozen)
				return err
			})
			return t, m, err
		})
	})
}

// inTurns measures -rate, -rounds times without and with neighbours, and compares. The main figures are of the last turn
// with them, the latencies of all such turns.
func (b *bench) inTurns(ctx context.Context, turns *[]Turn, one func(with bool, p plan) (Turn, *measured, error)) error {
	return b.around(ctx, func() error {
		var sum latencies
		for i := range 2 * b.o.rounds {
			with := i%2 == 1
			p := b.o.steady(fmt.Sprintf("%s %d %s:", b.o.scenario.name, i/2+1, map[bool]string{false: "without", true: "with"}[with]))
			t, m, err := one(with, p)
			if m != nil {
				t.P50, t.P99 = m.latencies.quantile(toReceipt, 50).Seconds(), m.latencies.quantile(toReceipt, 99).Seconds()
				if t.Memory == 0 {
					t.Memory = b.memoryNow(ctx)
				}
				*turns = append(*turns, t)
				if with {
					b.result.trial(b.o, m, p.slot)
					m.latencies.moveTo(&sum)
				}
			}
			b.compareTurns(*turns)
			if err != nil {
				return err
			}
		}
		b.result.latencies(&sum)
		return nil
	})
}

// memoryNow is the server's, 0 when unknown.
func (b *bench) memoryNow(ctx context.Context) float64 {
	if b.sampler.blind() {
		return 0
	}
	x, _ := b.sampler.read(ctx)
	return x.Memory
}

// withFrozen calls f while -frozen more viewers are in the room and read nothing.
func (b *bench) withFrozen(ctx context.Context, f func(*crowd) error) error {
	c := b.crowd(b.o.frozen, false)
	dial := *b.dial
	dial.readBuffer = frozenBuffer
	c.dial = &dial
	defer c.disperse(context.WithoutCancel(ctx), func(int) farewell { return hangUp }, 0)
	if err := c.connect(ctx, b.o.frozen, b.o.connectRate); err != nil {
		return err
	}
	b.connected(c, b.o.frozen)
	for _, s := range c.live() {
		s.wire.freeze(true)
	}
	return f(c)
}

// thaw lets the frozen read again, and counts those whom the server has left.
func thaw(ctx context.Context, frozen *crowd) int {
	for _, s := range frozen.all() {
		if s.wire != nil {
			s.wire.freeze(false)
		}
	}
	_ = waitFor(ctx, 500*time.Millisecond) // for the ends that wait behind what they did not read; cut short, some are missed
	return int(frozen.lost.Load())
}

// compareTurns takes the medians of both kinds.
func (b *bench) compareTurns(turns []Turn) {
	var without, with, closed, memory []float64
	for i, t := range turns {
		if !t.disturbed() {
			without = append(without, t.P99)
			continue
		}
		with = append(with, t.P99)
		closed = append(closed, float64(t.Closed)/float64(max(t.Frozen, 1)))
		if i > 0 && t.Memory > 0 {
			memory = append(memory, t.Memory-turns[i-1].Memory)
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return
	}
	v, name := b.result.Values, b.o.scenario.name
	v[name+"_ratio"] = median(with) / max(median(without), 1e-6)
	if name != "slow" {
		return
	}
	v["slow_closed"] = median(closed)
	if !b.sampler.blind() {
		v["memory_per_frozen"] = max(0, median(memory)) / float64(max(1, b.o.frozen))
	}
}

// The small room of the scenario fair: few people who talk now and then.
const (
	smallViewers = 20
	smallRate    = 20.0
)

// fairVisit is how long a visitor of the huge room stays.
const fairVisit = 2 * time.Second

// fairExtra is the small room and the visitors of the huge one.
func fairExtra(o *options) int { return smallViewers + int(2*o.churn*fairVisit.Seconds()) }

// fair asks what a small room notices of a huge one on the same node: the same few words alone and beside it, in turns.
func fair(ctx context.Context, b *bench) error {
	small, huge := b.crowd(smallViewers, true), b.crowd(b.o.viewers, false)
	small.rooms, huge.rooms = []string{small.rooms[0] + "-small"}, []string{huge.rooms[0] + "-huge"}
	defer dismiss(ctx, small, huge)
	if err := b.gather(ctx, small, smallViewers); err != nil {
		return err
	}
	if err := b.gather(ctx, huge, b.o.viewers); err != nil {
		return err
	}
	return b.inTurns(ctx, &b.result.Fair, func(with bool, p plan) (Turn, *measured, error) {
		p.phases, p.senders = []phase{steady(b.o.warmup+b.o.duration, smallRate)}, smallViewers
		if with {
			p.meanwhile = func(ctx context.Context, start time.Time) { b.crowded(ctx, huge, start) }
		}
		m, err := b.measure(ctx, p, small.live())
		return Turn{Beside: with}, m, err
	})
}

// crowded keeps the huge room busy, and people coming and going in it, until ctx ends. What they say and see is not
// measured: it is no part of the trial.
func (b *bench) crowded(ctx context.Context, huge *crowd, start time.Time) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { b.visitors(ctx, huge.rooms, fairVisit, politely) })
	due, err := schedule([]phase{steady(b.o.warmup+b.o.duration, b.o.rate)}, nil)
	if err != nil {
		return // validate has seen the rate
	}
	t := newTrial(newTag(newRand(uint64(time.Now().UnixNano()))), due, make([]class, len(due)), 0)
	t.start = start
	_ = newSpeaker(t, huge.live(), b.o.gift, newRand(b.o.seed)).run(ctx) // ends early with ctx alone
}
