package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// The small room of the scenario fair: few people who talk now and then.
const (
	smallViewers = 20
	smallRate    = 20.0
)

// FairRound is one turn of the comparison.
type FairRound struct {
	Beside bool    `json:"beside"` // the huge room was busy
	P50    float64 `json:"p50_seconds"`
	P99    float64 `json:"p99_seconds"`
}

// fairExtra is the small room and the visitors of the huge one.
func fairExtra(o *options) int { return smallViewers + int(2*o.churn*fairVisit.Seconds()) }

// fairVisit is how long a visitor of the huge room stays.
const fairVisit = 2 * time.Second

// fair asks what a small room notices of a huge one on the same node: the same few words alone and beside it, in turns.
func fair(ctx context.Context, b *bench) error {
	o := b.o
	small, huge := b.crowd(smallViewers, true), b.crowd(o.viewers, false)
	small.rooms, huge.rooms = []string{small.rooms[0] + "-small"}, []string{huge.rooms[0] + "-huge"}
	defer func() { dismiss(context.WithoutCancel(ctx), []*crowd{small, huge}) }()
	if err := b.gather(ctx, small, smallViewers); err != nil {
		return err
	}
	if err := b.gather(ctx, huge, o.viewers); err != nil {
		return err
	}
	return b.around(ctx, func() error {
		var beside latencies
		for i := range o.rounds {
			if err := b.fairTurn(ctx, small, nil, phaseLabel("fair", i, "alone"), &latencies{}); err != nil {
				return err
			}
			if err := b.fairTurn(ctx, small, huge, phaseLabel("fair", i, "beside"), &beside); err != nil {
				return err
			}
			b.compareFair()
		}
		b.result.latencies(&beside)
		return nil
	})
}

// fairTurn measures the small room; huge is nil for a turn in which the huge one is silent.
func (b *bench) fairTurn(ctx context.Context, small, huge *crowd, label string, sum *latencies) error {
	o := b.o
	p := plan{phases: []phase{steady(o.warmup+o.duration, smallRate)}, warm: o.warmup, slot: time.Second, senders: smallViewers, label: label}
	if huge != nil {
		p.meanwhile = func(ctx context.Context, start time.Time) { b.crowded(ctx, huge, start) }
	}
	m, err := b.measure(ctx, p, small.live())
	if m == nil {
		return err
	}
	b.result.Fair = append(b.result.Fair, FairRound{Beside: huge != nil,
		P50: m.latencies.quantile(toReceipt, 50).Seconds(), P99: m.latencies.quantile(toReceipt, 99).Seconds()})
	if huge != nil {
		b.result.trial(o, m, p.slot)
	}
	m.latencies.moveTo(sum)
	return err
}

// crowded keeps the huge room busy, and people coming and going in it, until ctx ends. What they say and see is not
// measured: it is no part of the trial.
func (b *bench) crowded(ctx context.Context, huge *crowd, start time.Time) {
	var wg sync.WaitGroup
	defer wg.Wait()
	if b.o.churn > 0 {
		for i := range 2 {
			wg.Go(func() { b.visitors(ctx, huge.rooms, time.Duration(i)*fairVisit) })
		}
	}
	due, err := schedule([]phase{steady(b.o.warmup+b.o.duration, b.o.rate)}, nil)
	if err != nil {
		return // validate has seen the rate
	}
	t := newTrial(newTag(newRand(uint64(time.Now().UnixNano()))), due, make([]class, len(due)), 0)
	t.start = start
	_ = newSpeaker(t, huge.live(), b.o.gift, newRand(b.o.seed)).run(ctx) // ends early with ctx alone
}

// visitors come to rooms and go again, -churn of them a second, in turn with another shift.
func (b *bench) visitors(ctx context.Context, rooms []string, after time.Duration) {
	if waitFor(ctx, after) != nil {
		return
	}
	n := max(1, int(b.o.churn*fairVisit.Seconds()))
	for ctx.Err() == nil {
		c := b.crowd(n, false)
		c.rooms = rooms
		_ = c.connect(ctx, n, b.o.churn) // ends early with ctx alone
		c.disperse(context.WithoutCancel(ctx), politely, b.o.churn)
		b.connected(c, c.size())
	}
}

// compareFair takes the medians of both kinds.
func (b *bench) compareFair() {
	var alone, beside []float64
	for _, t := range b.result.Fair {
		if t.Beside {
			beside = append(beside, t.P99)
		} else {
			alone = append(alone, t.P99)
		}
	}
	if len(alone) > 0 && len(beside) > 0 {
		b.result.Values["fair_ratio"] = median(beside) / max(median(alone), 1e-6)
	}
}

func (r *Result) fairTable(w io.Writer) {
	if len(r.Fair) == 0 {
		return
	}
	fmt.Fprint(w, "\nturn\thuge room\tp50\tp99\t\n")
	for i, t := range r.Fair {
		huge := "silent"
		if t.Beside {
			huge = "busy"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t\n", i+1, huge, inSeconds.format(t.P50), inSeconds.format(t.P99))
	}
	fmt.Fprintf(w, "p99 beside / alone\t\t\t%.2f\t\n", r.Values["fair_ratio"])
}

func (r *Result) fairTurns() chart {
	alone, beside := series{"p99 alone", 1, false, nil}, series{"p99 beside a busy huge room", 2, false, nil}
	for i, t := range r.Fair {
		p := point{float64(i + 1), t.P99}
		if t.Beside {
			beside.points = append(beside.points, p)
		} else {
			alone.points = append(alone.points, p)
		}
	}
	return chart{title: "The small room's p99, turn by turn", x: countAxis, y: latencyAxis, series: []series{alone, beside}}
}
