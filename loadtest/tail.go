package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// TailRound is the small rooms at one rate.
type TailRound struct {
	Rate     float64 `json:"messages_per_second"`
	Delivery float64 `json:"server_seconds_per_delivery"` // processor time of all the server did
	Frame    float64 `json:"server_seconds_per_frame"`
	Bare     float64 `json:"bare_seconds_per_frame"`            // of a bare loop that writes at the same times to as many sockets
	Message  float64 `json:"seconds_per_message_beyond_writes"` // what a message costs besides those writes
	P50      float64 `json:"p50_seconds"`
	P99      float64 `json:"p99_seconds"`
}

// tailRates are messages per second over all rooms, up to -rate.
var tailRates = []float64{1000, 2000, 4000, 7000}

// longTail asks what the rooms cost that most rooms of a platform are: small ones, each with a publisher, all busy.
func longTail(ctx context.Context, b *bench) error {
	o := b.o
	if len(o.pids) != 1 {
		return errors.New("tail looks at the processor time of one node: give -spawn 1, or -pid with -url")
	}
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, c, o.viewers); err != nil {
		return err
	}
	publishers := onePerRoom(c.live())
	loop, err := startBare(ctx, len(c.live()), o.serverCPUs, o.loadCPUs)
	if loop != nil {
		defer loop.stop()
	}
	if err != nil {
		return err
	}
	return b.around(ctx, func() error {
		for _, rate := range tailRates {
			if rate > o.rate {
				break
			}
			if err := b.tailRound(ctx, c.live(), publishers, loop, rate); err != nil {
				return err
			}
		}
		return nil
	})
}

// onePerRoom is a session of each room, in the order of the rooms' first ones.
func onePerRoom(sessions []*session) (out []*session) {
	seen := map[uint16]bool{}
	for _, s := range sessions {
		if !seen[s.room] {
			seen[s.room] = true
			out = append(out, s)
		}
	}
	return out
}

// tailRound measures one rate, and then the bare loop: a write to a room's number of sockets as often as a message comes.
func (b *bench) tailRound(ctx context.Context, viewers, publishers []*session, loop *bare, rate float64) error {
	r := TailRound{Rate: rate}
	p := plan{phases: []phase{steady(b.o.warmup+b.o.duration, rate)}, warm: b.o.warmup, slot: time.Second, label: fmt.Sprintf("tail %.0f/s", rate)}
	turn := 0
	p.pick = func(time.Duration) *session { turn++; return publishers[turn%len(publishers)] }
	before, err := processTime(b.o.pids[0])
	if err != nil {
		return err
	}
	m, err := b.measure(ctx, p, viewers)
	if err != nil || m.counted.frames == 0 {
		return errors.Join(err, ctx.Err())
	}
	after, err := processTime(b.o.pids[0])
	if err != nil {
		return err
	}
	b.result.trial(b.o, m, p.slot)
	frames, deliveries := float64(m.counted.frames), float64(m.counted.events[kindDanmaku])
	r.Delivery, r.Frame = (after-before)/max(deliveries, 1), (after-before)/frames
	r.P50, r.P99 = m.latencies.quantile(toReceipt, 50).Seconds(), m.latencies.quantile(toReceipt, 99).Seconds()
	room := (len(viewers) + len(publishers) - 1) / len(publishers)
	passes := max(1, int(rate/2))
	if r.Bare, err = b.beside(loop, passes, time.Duration(1e9/rate), int(float64(m.counted.bytes)/frames)+frameHeader4, room); err != nil {
		return err
	}
	r.Message = ((after - before) - frames*r.Bare) / float64(len(m.trial.due))
	b.result.Tail = append(b.result.Tail, r)
	b.result.Values["message_cpu"] = max(b.result.Values["message_cpu"], r.Message)
	b.result.Values[fmt.Sprintf("delivery_cpu_%.0f", r.Rate)] = r.Delivery
	return nil
}

func (r *Result) tailTable(w io.Writer) {
	if len(r.Tail) == 0 {
		return
	}
	fmt.Fprint(w, "\nmessages/s\tCPU per delivery\tper frame\tbare write(2)\tper message beyond writes\tp50\tp99\t\n")
	f := inSeconds.format
	for _, t := range r.Tail {
		fmt.Fprintf(w, "%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t\n", t.Rate, f(t.Delivery), f(t.Frame), f(t.Bare), f(t.Message), f(t.P50), f(t.P99))
	}
}
