package main

import (
	"context"
	"fmt"
	"time"
)

// fanout is the plain question: how long does a danmaku take to reach everybody, and at what price.
func fanout(ctx context.Context, b *bench) error {
	o := b.o
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, c, o.viewers); err != nil {
		return err
	}
	p := plan{phases: []phase{steady(o.warmup+o.duration, o.rate)}, warm: o.warmup, slot: time.Second, senders: o.senders, label: "fanout"}
	b.adviseSenders()
	var m *measured
	err := b.around(ctx, func() (err error) {
		if m, err = b.measure(ctx, p, c.live()); m != nil {
			b.result.trial(o, m, p.slot)
		}
		return err
	})
	if err != nil || !o.bare || m.counted.frames == 0 {
		return err
	}
	sockets := len(c.live())
	loop, err := startBare(ctx, sockets, o.serverCPUs, o.loadCPUs)
	if loop != nil {
		defer loop.stop()
	}
	if err != nil {
		return err
	}
	const passes, every = 10, 25 * time.Millisecond // as ticks follow each other
	b.result.Values["frame_cpu_bare"], err = b.beside(loop, passes, every, int(m.counted.bytes/m.counted.frames)+frameHeader4, sockets)
	return err
}

// beside measures what the bare loop needs per frame of that size, header included: the median of some rounds of passes.
func (b *bench) beside(loop *bare, passes int, every time.Duration, size, sockets int) (float64, error) {
	const rounds = 8
	var each []float64
	for i := range rounds {
		b.progress.line(fmt.Sprintf("bare loop: %d of %d", i+1, rounds))
		t, err := loop.timed(passes, every, size, sockets)
		if err != nil {
			return 0, err
		}
		if i > 0 { // the first warms up
			each = append(each, t/float64(passes*sockets))
		}
	}
	return median(each), nil
}

// adviseSenders notes when the rules that ship would refuse what this run sends.
func (b *bench) adviseSenders() {
	o := b.o
	each := max(o.rate, o.peak) * o.mix[danmaku] / o.mix.sum() / float64(o.senders)
	if each > 0.67 && o.spawn == 0 {
		b.result.note("each sender says %.2f danmaku/s; the rules that ship allow 20 in 30 s: more -viewers, or -senders, spread them", each)
	}
}

// phaseLabel names a phase of a scenario in the progress line.
func phaseLabel(scenario string, round int, what string) string {
	return fmt.Sprintf("%s %d %s:", scenario, round+1, what)
}
