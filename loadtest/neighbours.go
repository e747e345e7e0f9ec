package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// frozenBuffer is the receive buffer of a frozen reader: small, so that the server feels it soon. Linux doubles it.
const frozenBuffer = 4 << 10

// slow asks what frozen readers cost the others: the same traffic without them and with them, in turns.
func slow(ctx context.Context, b *bench) error {
	return b.audience(ctx, func(c *client.Crowd) error {
		return b.inTurns(ctx, &b.result.Slow, func(with bool, p plan) (t report.Turn, m *measured, err error) {
			if !with {
				m, err = b.measure(ctx, p, c.Live())
				return t, m, err
			}
			err = b.withFrozen(ctx, func(frozen *client.Crowd) (err error) {
				m, err = b.measure(ctx, p, c.Live())
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
func (b *bench) inTurns(ctx context.Context, turns *[]report.Turn, one func(with bool, p plan) (report.Turn, *measured, error)) error {
	return b.around(ctx, func() error {
		var sum client.Latencies
		for i := range 2 * b.o.rounds {
			with := i%2 == 1
			p := b.o.steady(fmt.Sprintf("%s %d %s:", b.o.scenario.name, i/2+1, map[bool]string{false: "without", true: "with"}[with]))
			t, m, err := one(with, p)
			if m != nil {
				t.P50, t.P99 = m.latencies.Quantile(client.ToReceipt, 50).Seconds(), m.latencies.Quantile(client.ToReceipt, 99).Seconds()
				if t.Memory == 0 {
					t.Memory = b.memoryNow(ctx)
				}
				*turns = append(*turns, t)
				if with {
					b.record(m, p.slot)
					m.latencies.MoveTo(&sum)
				}
			}
			b.compareTurns(*turns)
			if err != nil {
				return err
			}
		}
		b.result.AddLatencies(&sum)
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
func (b *bench) withFrozen(ctx context.Context, f func(*client.Crowd) error) error {
	c := b.crowd(b.o.frozen, false)
	dial := *b.dial
	dial.ReadBuffer = frozenBuffer
	c.Dial = &dial
	defer c.Disperse(context.WithoutCancel(ctx), func(int) client.Farewell { return client.HangUp }, 0)
	if err := c.Connect(ctx, b.o.frozen, b.o.connectRate); err != nil {
		return err
	}
	b.connected(c, b.o.frozen)
	for _, s := range c.Live() {
		s.Wire.Freeze(true)
	}
	return f(c)
}

// thaw lets the frozen read again, and counts those whom the server has left.
func thaw(ctx context.Context, frozen *client.Crowd) int {
	for _, s := range frozen.All() {
		if s.Wire != nil {
			s.Wire.Freeze(false)
		}
	}
	_ = client.WaitFor(ctx, 500*time.Millisecond) // for the ends that wait behind what they did not read; cut short, some are missed
	return int(frozen.Lost.Load())
}

// compareTurns takes the medians of both kinds.
func (b *bench) compareTurns(turns []report.Turn) {
	var without, with, closed, memory []float64
	for i, t := range turns {
		if !t.Disturbed() {
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
	v[name+"_ratio"] = report.Median(with) / max(report.Median(without), 1e-6)
	if name != "slow" {
		return
	}
	v["slow_closed"] = report.Median(closed)
	if !b.sampler.blind() {
		v["memory_per_frozen"] = max(0, report.Median(memory)) / float64(max(1, b.o.frozen))
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
	small.Rooms, huge.Rooms = []string{small.Rooms[0] + "-small"}, []string{huge.Rooms[0] + "-huge"}
	defer client.Dismiss(ctx, small, huge)
	if err := b.gather(ctx, small, smallViewers); err != nil {
		return err
	}
	if err := b.gather(ctx, huge, b.o.viewers); err != nil {
		return err
	}
	return b.inTurns(ctx, &b.result.Fair, func(with bool, p plan) (report.Turn, *measured, error) {
		p.phases, p.senders = []client.Phase{client.Steady(b.o.warmup+b.o.duration, smallRate)}, smallViewers
		if with {
			p.meanwhile = func(ctx context.Context, start time.Time) { b.crowded(ctx, huge, start) }
		}
		m, err := b.measure(ctx, p, small.Live())
		return report.Turn{Beside: with}, m, err
	})
}

// crowded keeps the huge room busy, and people coming and going in it, until ctx ends. What they say and see is not
// measured: it is no part of the trial.
func (b *bench) crowded(ctx context.Context, huge *client.Crowd, start time.Time) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { b.visitors(ctx, huge.Rooms, fairVisit, client.Politely) })
	due, err := client.Schedule([]client.Phase{client.Steady(b.o.warmup+b.o.duration, b.o.rate)}, nil)
	if err != nil {
		return // validate has seen the rate
	}
	t := client.NewTrial(client.NewTag(client.NewRand(uint64(time.Now().UnixNano()))), due, make([]client.Class, len(due)), 0)
	t.Start = start
	_ = client.NewSpeaker(t, client.InTurns(huge.Live()), b.o.gift, client.NewRand(b.o.seed)).Run(ctx) // ends early with ctx alone
}
