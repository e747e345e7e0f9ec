package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// asFast is a connect rate that waits for nothing: what is measured is how fast the other side is.
const asFast = 1e9

// joins asks how many viewers a second come in when all of them come at once, from dial to welcome, in turns with a
// process that upgrades, reads a hello and answers a fixed welcome: no server is faster than that with this client.
func joins(ctx context.Context, b *bench) error {
	o := b.o
	if err := b.oneNode(); err != nil {
		return err
	}
	loop, address, err := startUpgrader(ctx, o.serverCPUs)
	if loop != nil {
		defer loop.Kill() // it holds nothing that must be put away
	}
	if err != nil {
		return err
	}
	bare := *b.dial
	if bare.Targets, err = client.ParseTargets([]string{address}); err != nil {
		return err
	}
	return b.around(ctx, func() error {
		for i := range o.rounds + 1 {
			b.progress.line(fmt.Sprintf("joins: round %d of %d, %d viewers", i, o.rounds, o.viewers))
			var r report.JoinRound
			if r.Bare, err = b.storm(ctx, &bare); err != nil {
				return err
			}
			r.CPU, err = b.timed(func() error { r.Server, err = b.storm(ctx, b.dial); return err })
			if err != nil {
				return err
			}
			r.CPU /= float64(o.viewers)
			r.Ratio = r.Server / math.Max(r.Bare, 1)
			if i > 0 { // the first warms up
				b.result.Joins = append(b.result.Joins, r)
			}
		}
		b.result.Medians(b.result.Joins)
		return nil
	})
}

// storm lets all viewers come at once by way of d and go again, and returns how many came in per second.
func (b *bench) storm(ctx context.Context, d *client.Dialer) (float64, error) {
	c := b.crowd(b.o.viewers, false)
	c.Dial = d
	defer c.Disperse(context.WithoutCancel(ctx), client.Politely, 0)
	start := time.Now()
	err := c.Connect(ctx, b.o.viewers, asFast)
	took := time.Since(start)
	b.connected(c, b.o.viewers)
	if err != nil {
		return 0, err
	}
	if n := len(c.Live()); n < b.o.viewers {
		closes, _ := b.readers.Tables()
		b.result.Note("%d of %d viewers came in at once (close codes %v)", n, b.o.viewers, closes)
	}
	return float64(c.Joined.Load()) / took.Seconds(), nil
}

// tailRates are messages per second over all rooms, up to -rate.
var tailRates = []float64{1000, 2000, 4000, 7000}

// longTail asks what the rooms cost that most rooms of a platform are: small ones, each with a publisher, all busy.
func longTail(ctx context.Context, b *bench) error {
	if err := b.oneNode(); err != nil {
		return err
	}
	return b.audience(ctx, func(c *client.Crowd) error {
		publishers := onePerRoom(c.Live())
		return b.withBare(ctx, len(c.Live()), func(loop *bare) error {
			return b.around(ctx, func() error {
				for _, rate := range tailRates {
					if rate > b.o.rate {
						break
					}
					if err := b.tailRound(ctx, c.Live(), publishers, loop, rate); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// onePerRoom is a session of each room, in the order of the rooms' first ones.
func onePerRoom(sessions []*client.Session) (out []*client.Session) {
	seen := map[uint16]bool{}
	for _, s := range sessions {
		if !seen[s.Room] {
			seen[s.Room] = true
			out = append(out, s)
		}
	}
	return out
}

// tailRound measures one rate, and then the bare loop: a write to a room's number of sockets as often as a message comes.
func (b *bench) tailRound(ctx context.Context, viewers, publishers []*client.Session, loop *bare, rate float64) error {
	r := report.TailRound{Rate: rate}
	p := plan{phases: []client.Phase{client.Steady(b.o.warmup+b.o.duration, rate)}, warm: b.o.warmup, slot: time.Second, label: fmt.Sprintf("tail %.0f/s", rate)}
	turn := 0
	p.pick = func(time.Duration) *client.Session { turn++; return publishers[turn%len(publishers)] }
	var m *measured
	spent, err := b.timed(func() (err error) { m, err = b.mainTrial(ctx, p, viewers); return err })
	if err != nil || m.counted.Frames == 0 {
		return errors.Join(err, ctx.Err())
	}
	frames, deliveries := float64(m.counted.Frames), float64(m.counted.Danmaku)
	r.Delivery, r.Frame = spent/max(deliveries, 1), spent/frames
	r.P50, r.P99 = m.latencies.Quantile(client.ToReceipt, 50).Seconds(), m.latencies.Quantile(client.ToReceipt, 99).Seconds()
	room := (len(viewers) + len(publishers) - 1) / len(publishers)
	passes := max(1, int(rate/2))
	if r.Bare, err = b.beside(loop, Passes{passes, time.Duration(1e9 / rate), int(float64(m.counted.Bytes)/frames) + frameHeader4, room}); err != nil {
		return err
	}
	r.Message = (spent - frames*r.Bare) / float64(len(m.trial.Due))
	b.result.Tail = append(b.result.Tail, r)
	b.result.Values["message_cpu"] = max(b.result.Values["message_cpu"], r.Message)
	b.result.Values[fmt.Sprintf("delivery_cpu_%.0f", r.Rate)] = r.Delivery
	return nil
}
