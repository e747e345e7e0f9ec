package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// SlowRound is one turn of the comparison.
type SlowRound struct {
	Frozen int     `json:"frozen"`
	P50    float64 `json:"p50_seconds"`
	P99    float64 `json:"p99_seconds"`
	Memory float64 `json:"memory_bytes"` // the server's, at the turn's end; 0 when unknown
	Closed int     `json:"closed"`       // frozen readers that the server had cut off at the turn's end
}

// frozenBuffer is the receive buffer of a frozen reader: small, so that the server feels it soon. Linux doubles it.
const frozenBuffer = 4 << 10

// slow asks what frozen readers cost the others: the same traffic without them and with them, in turns.
func slow(ctx context.Context, b *bench) error {
	o := b.o
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, c, o.viewers); err != nil {
		return err
	}
	return b.around(ctx, func() error {
		var with latencies
		for i := range o.rounds {
			if err := b.slowTurn(ctx, c, nil, phaseLabel("slow", i, "without"), &latencies{}); err != nil {
				return err
			}
			err := b.withFrozen(ctx, func(frozen *crowd) error {
				return b.slowTurn(ctx, c, frozen, phaseLabel("slow", i, "with"), &with)
			})
			b.compareTurns()
			if err != nil {
				return err
			}
		}
		b.result.latencies(&with)
		return nil
	})
}

// withFrozen calls f while -frozen more viewers are in the room and read nothing.
func (b *bench) withFrozen(ctx context.Context, f func(*crowd) error) error {
	c := b.crowd(b.o.frozen, false)
	c.dial = &dialer{targets: b.dial.targets, sources: b.dial.sources, readBuffer: frozenBuffer, insecureTLS: b.dial.insecureTLS, compress: b.dial.compress}
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

// slowTurn is one trial; frozen is nil for a turn without them. The main figures are of the last turn with them.
func (b *bench) slowTurn(ctx context.Context, c, frozen *crowd, label string, sum *latencies) error {
	o := b.o
	p := plan{phases: []phase{steady(o.warmup+o.duration, o.rate)}, warm: o.warmup, slot: time.Second, senders: o.senders, label: label}
	m, err := b.measure(ctx, p, c.live())
	if m == nil {
		return err
	}
	turn := SlowRound{P50: m.latencies.quantile(toReceipt, 50).Seconds(), P99: m.latencies.quantile(toReceipt, 99).Seconds()}
	if x, rerr := b.sampler.read(ctx); rerr == nil {
		turn.Memory = x.Memory
	}
	if frozen != nil {
		turn.Frozen = b.o.frozen
		turn.Closed = thaw(ctx, frozen)
		b.result.trial(o, m, p.slot)
	}
	m.latencies.moveTo(sum)
	b.result.Slow = append(b.result.Slow, turn)
	return err
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
func (b *bench) compareTurns() {
	var without, with, closed, memory []float64
	for _, t := range b.result.Slow {
		if t.Frozen == 0 {
			without = append(without, t.P99)
			memory = append(memory, -t.Memory)
			continue
		}
		with = append(with, t.P99)
		closed = append(closed, float64(t.Closed)/float64(t.Frozen))
		if n := len(memory); n > 0 && t.Memory > 0 {
			memory[n-1] += t.Memory
		}
	}
	if len(with) == 0 || len(without) == 0 {
		return
	}
	v := b.result.Values
	v["slow_ratio"] = median(with) / max(median(without), 1e-6)
	v["slow_closed"] = median(closed)
	if !b.sampler.blind() {
		v["memory_per_frozen"] = max(0, median(memory)) / float64(max(1, b.o.frozen))
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (r *Result) slowTable(w io.Writer) {
	if len(r.Slow) == 0 {
		return
	}
	fmt.Fprint(w, "\nturn\tfrozen\tp50\tp99\tcut off\tserver memory\t\n")
	for i, t := range r.Slow {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%d\t%s\t\n", i+1, t.Frozen, inSeconds.format(t.P50), inSeconds.format(t.P99), t.Closed, formatBytes(t.Memory))
	}
	fmt.Fprintf(w, "p99 with / without\t%.2f\t\n", r.Values["slow_ratio"])
}
