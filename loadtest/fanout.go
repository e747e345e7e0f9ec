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
	return b.around(ctx, func() error {
		m, err := b.measure(ctx, p, c.live())
		if m != nil {
			b.result.trial(o, m, p.slot)
		}
		return err
	})
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
