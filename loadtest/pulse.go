package main

import (
	"context"
	"time"
)

// pulse is the shape that takes servers down: a quiet room becomes many times busier within a tenth of a second.
func pulse(ctx context.Context, b *bench) error {
	o := b.o
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, c, o.viewers); err != nil {
		return err
	}
	p := plan{label: "pulse", slot: 100 * time.Millisecond, senders: o.senders, phases: []phase{
		steady(o.calm, o.rate), {lasts: o.rise, from: o.rate, to: o.peak}, steady(o.duration, o.peak),
		{lasts: o.rise, from: o.peak, to: o.rate}, steady(o.calm, o.rate)}}
	rise, drop := o.calm.Seconds(), (o.calm + o.rise + o.duration).Seconds()
	b.result.Bands = []Band{{"calm", 0, rise}, {"pulse", rise, drop}, {"calm again", drop, drop + (o.rise + o.calm).Seconds()}}
	return b.around(ctx, func() error {
		if o.spawn > 1 {
			// A node knows of the others' viewers after a beat of presence; before that it takes the room for a smaller one,
			// whose tier then stays for ten seconds.
			if err := waitFor(ctx, presenceBeat); err != nil {
				return err
			}
		}
		m, err := b.measure(ctx, p, c.live())
		if m != nil {
			b.result.trial(o, m, p.slot)
			if err == nil {
				b.result.Values["recovery"] = recovery(m.slots, o.calm, o.calm+2*o.rise+o.duration).Seconds()
			}
		}
		return err
	})
}

// presenceBeat is longer than a beat of the nodes' presence, two seconds.
const presenceBeat = 3 * time.Second

// recovery is the time from drop until the p99 of slots is normal for half a second: at most twice its worst before the
// pulse, or 50 ms where that was less. When it never is, it is the time that is left.
func recovery(slots []Slot, calm, drop time.Duration) time.Duration {
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
