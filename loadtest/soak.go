package main

import (
	"context"
	"sync"
	"time"
)

// visit is how long a visitor of a soak stays.
const visit = 20 * time.Second

// soak is everything at once for a long time: what grows shows in the charts of memory and goroutines.
func soak(ctx context.Context, b *bench) error {
	o := b.o
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, c, o.viewers); err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if o.churn > 0 {
		wg.Go(func() { b.shift(background, 0) })
		wg.Go(func() { b.shift(background, visit) })
	}
	if o.frozen > 0 {
		wg.Go(func() { b.freezeAgainAndAgain(background) })
	}
	defer wg.Wait()
	defer stop()
	b.adviseSenders()
	p := plan{phases: []phase{steady(o.warmup+o.duration, o.rate)}, warm: o.warmup, slot: time.Second, senders: o.senders, label: "soak"}
	return b.around(ctx, func() error {
		m, err := b.measure(ctx, p, c.live())
		if m != nil {
			b.result.trial(o, m, p.slot)
		}
		return err
	})
}

// shift lets visitors come and then go, -churn of them a second, until ctx ends. Two shifts take turns, so that while
// the visitors of one come, those of the other leave: politely, without a word, or by reset.
func (b *bench) shift(ctx context.Context, after time.Duration) {
	if waitFor(ctx, after) != nil {
		return
	}
	n := max(1, int(b.o.churn*visit.Seconds()))
	for ctx.Err() == nil {
		c := b.crowd(n, false)
		_ = c.connect(ctx, n, b.o.churn) // ends early with ctx alone
		b.connected(c, c.size())
		c.disperse(ctx, func(i int) farewell { return farewell(i % 3) }, b.o.churn)
	}
}

// freezeAgainAndAgain keeps -frozen readers in the rooms that read nothing, new ones every minute.
func (b *bench) freezeAgainAndAgain(ctx context.Context) {
	for ctx.Err() == nil {
		_ = b.withFrozen(ctx, func(*crowd) error { return waitFor(ctx, time.Minute) }) // the server may refuse them: that shows in the figures
	}
}
