package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// watchers are the sessions that stay through a churn and see whether it disturbs them.
const watchers = 100

// ChurnRound is the server after one round of viewers has gone.
type ChurnRound struct {
	Memory     float64 `json:"memory_bytes"`
	Heap       float64 `json:"heap_bytes"` // in use, after a collection
	Goroutines float64 `json:"goroutines"`
	Sessions   float64 `json:"sessions"` // as the server counts them
	Failed     int64   `json:"failed"`
}

// churn lets rounds of viewers come and go, a third politely, a third without a word, a third by reset, while some
// watch the room's chat.
func churn(ctx context.Context, b *bench) error {
	o := b.o
	if b.sampler.blind() {
		return errors.New("churn looks at the server's memory: give -admin or -pid with -url")
	}
	stay := b.crowd(watchers, true)
	defer stay.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.gather(ctx, stay, watchers); err != nil {
		return err
	}
	first, err := b.sampler.read(ctx)
	if err != nil {
		return err
	}
	lasts := o.scenario.lasts(o) * 2
	chat, stop := context.WithCancel(ctx)
	defer stop()
	p := plan{phases: []phase{steady(lasts, o.rate)}, slot: time.Second, senders: o.senders, label: "churn"}
	err = b.around(ctx, func() error {
		var m *measured
		done := make(chan error, 1)
		go func() {
			var err error
			m, err = b.measure(chat, p, stay.live())
			done <- err
		}()
		err := b.rounds(ctx)
		stop()
		if merr := <-done; !errors.Is(merr, context.Canceled) {
			err = errors.Join(err, merr)
		}
		if m != nil {
			b.result.trial(o, m, p.slot)
		}
		return err
	})
	b.growth(first)
	return err
}

func (b *bench) rounds(ctx context.Context) error {
	o := b.o
	rude := func(i int) farewell { return farewell(i % 3) }
	for i := range o.rounds {
		c := b.crowd(o.viewers, false)
		err := c.connect(ctx, o.viewers, o.connectRate)
		b.connected(c, o.viewers)
		c.disperse(context.WithoutCancel(ctx), rude, o.connectRate)
		if err != nil {
			return err
		}
		if err := b.rest(ctx); err != nil {
			return err
		}
		b.sampler.free(ctx, min(freeRest, b.o.hold))
		x, err := b.sampler.read(ctx)
		if err != nil {
			return err
		}
		b.result.Churn = append(b.result.Churn, ChurnRound{x.Memory, x.Heap, x.Goroutines, x.Sessions, c.failed.Load()})
		b.progress.line(fmt.Sprintf("churn: round %d of %d gone, %.0f sessions left, %.0f goroutines, heap %s",
			i+1, o.rounds, x.Sessions, x.Goroutines, formatBytes(x.Heap)))
	}
	return nil
}

// growth compares the last round with the second, since the first one fills pools and tables.
func (b *bench) growth(first ServerSample) {
	rounds := b.result.Churn
	if len(rounds) == 0 {
		return
	}
	v, last := b.result.Values, rounds[len(rounds)-1]
	v["memory_left"] = last.Memory - first.Memory
	v["goroutines_left"] = last.Goroutines - first.Goroutines
	if len(rounds) > 2 {
		second := rounds[1]
		v["heap_growth"] = last.Heap/max(second.Heap, 1) - 1
		v["goroutine_growth"] = last.Goroutines/max(second.Goroutines, 1) - 1
	}
}

func (r *Result) churnTable(w io.Writer) {
	if len(r.Churn) == 0 {
		return
	}
	fmt.Fprint(w, "\nround\tsessions left\tgoroutines\theap\tmemory\tfailed\t\n")
	for i, c := range r.Churn {
		if i < 3 || i >= len(r.Churn)-2 || (i+1)%10 == 0 {
			fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%s\t%s\t%d\t\n", i+1, c.Sessions, c.Goroutines, formatBytes(c.Heap), formatBytes(c.Memory), c.Failed)
		}
	}
}
