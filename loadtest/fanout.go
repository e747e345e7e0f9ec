package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// fanout is the plain question: how long does a danmaku take to reach everybody, and at what price.
func fanout(ctx context.Context, b *bench) error {
	o := b.o
	return b.audience(ctx, func(c *client.Crowd) error {
		var m *measured
		err := b.around(ctx, func() (err error) {
			m, err = b.steadily(ctx, c.Live(), nil)
			return err
		})
		if err != nil || !o.bare || m.counted.Frames == 0 {
			return err
		}
		return b.withBare(ctx, len(c.Live()), func(loop *bare) (err error) {
			const passes, every = 10, 25 * time.Millisecond // as ticks follow each other
			b.result.Values["frame_cpu_bare"], err = b.beside(loop, Passes{passes, every, int(m.counted.Bytes/m.counted.Frames) + frameHeader4, len(c.Live())})
			return err
		})
	})
}

// steadily measures -rate as the run's main trial; change may alter the plan before.
func (b *bench) steadily(ctx context.Context, viewers []*client.Session, change func(*plan)) (*measured, error) {
	b.adviseSenders()
	p := b.o.steady(b.o.scenario.name)
	if change != nil {
		change(&p)
	}
	return b.mainTrial(ctx, p, viewers)
}

// beside measures what the bare loop needs per frame: the median of some rounds of passes.
func (b *bench) beside(loop *bare, p Passes) (float64, error) {
	const rounds = 8
	var each []float64
	for i := range rounds {
		b.progress.line(fmt.Sprintf("bare loop: %d of %d", i+1, rounds))
		t, err := loop.timed(p)
		if err != nil {
			return 0, err
		}
		if i > 0 { // the first warms up
			each = append(each, t/float64(p.Count*p.Sockets))
		}
	}
	return report.Median(each), nil
}

// adviseSenders notes when the rules that ship would refuse what this run sends.
func (b *bench) adviseSenders() {
	o := b.o
	each := max(o.rate, o.peak) * o.mix[client.Danmaku] / o.mix.Sum() / float64(o.senders)
	if each > 0.67 && o.spawn == 0 {
		b.result.Note("each sender says %.2f danmaku/s; the rules that ship allow 20 in 30 s: more -viewers, or -senders, spread them", each)
	}
}

// pulse is the shape that takes servers down: a quiet room becomes many times busier within a tenth of a second.
func pulse(ctx context.Context, b *bench) error {
	o := b.o
	p := plan{label: "pulse", slot: 100 * time.Millisecond, senders: o.senders, phases: []client.Phase{
		client.Steady(o.calm, o.rate), {Lasts: o.rise, From: o.rate, To: o.peak}, client.Steady(o.duration, o.peak),
		{Lasts: o.rise, From: o.peak, To: o.rate}, client.Steady(o.calm, o.rate)}}
	rise, drop := o.calm.Seconds(), (o.calm + o.rise + o.duration).Seconds()
	b.band("calm", 0, rise)
	b.band("pulse", rise, drop)
	b.band("calm again", drop, drop+(o.rise+o.calm).Seconds())
	return b.audience(ctx, func(c *client.Crowd) error {
		return b.around(ctx, func() error {
			if o.spawn > 1 {
				// A node knows of the others' viewers after a beat of presence; before that it takes the room for a smaller one,
				// whose tier then stays for ten seconds.
				if err := client.WaitFor(ctx, presenceBeat); err != nil {
					return err
				}
			}
			m, err := b.mainTrial(ctx, p, c.Live())
			if err == nil {
				b.result.Values["recovery"] = recovery(m.slots, o.calm, o.calm+2*o.rise+o.duration).Seconds()
			}
			return err
		})
	})
}

// presenceBeat is longer than a beat of the nodes' presence, two seconds.
const presenceBeat = 3 * time.Second

// recovery is the time from drop until the p99 of slots is normal for half a second: at most twice its worst before the
// pulse, or 50 ms where that was less. When it never is, it is the time that is left.
func recovery(slots []report.Slot, calm, drop time.Duration) time.Duration {
	const stretch = 5
	normal := 0.050
	for _, s := range slots {
		if s.At <= calm.Seconds() {
			normal = max(normal, 2*s.P99)
		}
	}
	good, since := 0, drop.Seconds()
	for _, s := range slots {
		switch {
		case s.At <= drop.Seconds():
		case s.P99 > normal:
			good, since = 0, s.At
		default:
			if good++; good == stretch {
				return time.Duration((since - drop.Seconds()) * 1e9)
			}
		}
	}
	return time.Duration((slots[len(slots)-1].At - drop.Seconds()) * 1e9)
}

// soakVisit is how long a visitor of a soak stays.
const soakVisit = 20 * time.Second

// soak is everything at once for a long time: what grows shows in the charts of memory and goroutines.
func soak(ctx context.Context, b *bench) error {
	return b.audience(ctx, func(c *client.Crowd) error {
		return b.around(ctx, func() error {
			_, err := b.steadily(ctx, c.Live(), func(p *plan) {
				p.meanwhile = func(ctx context.Context, _ time.Time) {
					var wg sync.WaitGroup
					wg.Go(func() { b.visitors(ctx, b.roomNames(), soakVisit, client.Rudely) })
					b.freezeAgainAndAgain(ctx)
					wg.Wait()
				}
			})
			return err
		})
	})
}

// visitors come to rooms and go again, -churn of them a second, until ctx ends: in two shifts that take turns, so that while
// those of one come, those of the other leave. Each stays for stay.
func (b *bench) visitors(ctx context.Context, rooms []string, stay time.Duration, how func(i int) client.Farewell) {
	n := int(b.o.churn * stay.Seconds())
	shift := func(after time.Duration) {
		_ = client.WaitFor(ctx, after)
		for n > 0 && ctx.Err() == nil {
			c := b.crowd(n, false)
			c.Rooms = rooms
			_ = c.Connect(ctx, n, b.o.churn) // ends early with ctx alone
			b.connected(c, c.Size())
			c.Disperse(ctx, how, b.o.churn)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { shift(0) })
	wg.Go(func() { shift(stay) })
	wg.Wait()
}

// freezeAgainAndAgain keeps -frozen readers in the rooms that read nothing, new ones every minute.
func (b *bench) freezeAgainAndAgain(ctx context.Context) {
	for b.o.frozen > 0 && ctx.Err() == nil {
		_ = b.withFrozen(ctx, func(*client.Crowd) error { return client.WaitFor(ctx, time.Minute) }) // the server may refuse them: that shows in the figures
	}
}
