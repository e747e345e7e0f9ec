package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// afterRest is how long a server may take, untouched, to give back what a crowd that has left had needed.
const afterRest = 30 * time.Second

// sessionFloor is the memory that an idle session may cost, user, buckets, seat and queue included.
func sessionFloor() string {
	if runtime.GOOS == "linux" {
		return "6KB"
	}
	return "11KB" // no epoll set to park readers in
}

// ramp connects idle viewers in steps and looks at the server at each: once untouched, and once more, since a collection
// disturbs what comes after it, telling a new server to give back what it can before each look.
func ramp(ctx context.Context, b *bench) error {
	o := b.o
	if b.sampler.blind() {
		return errors.New("ramp looks at the server's memory: give -admin or -pid with -url")
	}
	if o.points < 2 {
		return errors.New("ramp needs -points of 2 or more to draw a line through")
	}
	defer b.slopes()
	if err := b.rampPass(ctx, false); err != nil {
		return err
	}
	if !b.sampler.free(ctx, 0) {
		b.result.Note("the server offers no way to free memory (POST /debug/free on its admin address): only the untouched memory is known")
		return nil
	}
	if err := b.renew(ctx); err != nil {
		return err
	}
	return b.rampPass(ctx, true)
}

// renew puts a new server in the place of the one that the first pass has used: its tables and pools have grown, and what
// comes back to them costs less than it does a new one.
func (b *bench) renew(ctx context.Context) error {
	if b.fleet == nil || len(b.fleet.nodes) != 1 {
		b.result.Note("the second pass met the server that the first had grown: what is freed is too little per session")
		return nil
	}
	b.fleet.nodes[0].Stop()
	n, err := b.fleet.launch(ctx, nodeName(1))
	if err != nil {
		return err
	}
	if b.dial.Targets, err = client.ParseTargets([]string{n.url}); err != nil {
		return err
	}
	b.sampler.watch(n.admin, n.Cmd.Process.Pid, true)
	return nil
}

// rampSizes are evenly spaced from -from, or a share of them where those are not so many, to -viewers.
func rampSizes(o *options) []int {
	first := o.from
	if first <= 0 || first >= o.viewers {
		first = o.viewers / o.points
	}
	var out []int
	for i := range o.points {
		out = append(out, first+(o.viewers-first)*i/(o.points-1))
	}
	return out
}

// rampPass connects everybody, looking at each size, and lets them leave.
func (b *bench) rampPass(ctx context.Context, free bool) error {
	o := b.o
	c := b.crowd(o.viewers, true)
	defer client.Dismiss(ctx, c)
	at := 0
	look := func(after bool) error {
		err := b.rampPoint(ctx, at, len(c.Live()), free, after)
		at++
		return err
	}
	if err := look(false); err != nil {
		return err
	}
	for _, size := range rampSizes(o) {
		b.progress.line(fmt.Sprintf("ramp: connecting %d more", size-len(c.Live())))
		if err := c.Fill(ctx, size, o.connectRate); err != nil {
			return err
		}
		if err := look(false); err != nil {
			return err
		}
	}
	b.connected(c, o.viewers)
	if len(c.Live()) < o.viewers/2 {
		return fmt.Errorf("only %d of %d viewers came in (%s)", len(c.Live()), o.viewers, b.result.Connections)
	}
	c.Disperse(ctx, client.Politely, 4*o.connectRate)
	if !free && o.hold > 0 {
		b.progress.line(fmt.Sprintf("ramp: all have left, %s until the last look", afterRest))
		if err := client.WaitFor(ctx, afterRest); err != nil {
			return err
		}
	}
	return look(true)
}

// rampPoint rests and then looks, for the i-th time of a pass.
func (b *bench) rampPoint(ctx context.Context, i, sessions int, free, after bool) error {
	b.progress.line(fmt.Sprintf("ramp: %d sessions, resting %s%s", sessions, b.o.hold, b.sampler.line()))
	before := b.sampler.spent(ctx)
	if err := client.WaitFor(ctx, b.o.hold); err != nil {
		return err
	}
	idle := b.sampler.spent(ctx)
	if free {
		b.sampler.free(ctx, min(freeRest, b.o.hold))
	}
	x, err := b.sampler.read(ctx)
	if err != nil {
		return err
	}
	if free {
		if i < len(b.result.Ramp) {
			p := &b.result.Ramp[i]
			p.Freed, p.Heap = x.Memory, x.Heap
		}
		return nil
	}
	p := report.RampPoint{Sessions: sessions, Memory: x.Memory, Goroutines: x.Goroutines, After: after}
	p.CPU, _, _ = idle.since(before)
	b.result.Ramp = append(b.result.Ramp, p)
	return nil
}

// slopes draws the lines; the empty server is not on them, since its first sessions pay for what all share.
func (b *bench) slopes() {
	var n, memory, freed, heap, goroutines []float64
	for i, p := range b.result.Ramp {
		if i == 0 || p.After {
			continue
		}
		n = append(n, float64(p.Sessions))
		memory, freed = append(memory, p.Memory), append(freed, p.Freed)
		heap, goroutines = append(heap, p.Heap), append(goroutines, p.Goroutines)
	}
	if len(n) < 2 {
		return
	}
	v := b.result.Values
	v["memory_per_session"], v["goroutines_per_session"] = slope(n, memory), slope(n, goroutines)
	if freed[len(freed)-1] > 0 {
		v["memory_per_session_freed"], v["heap_per_session"] = slope(n, freed), slope(n, heap)
	}
	first, last := b.result.Ramp[0], b.result.Ramp[len(b.result.Ramp)-1]
	if !last.After {
		return
	}
	v["memory_left"], v["goroutines_left"] = last.Memory-first.Memory, last.Goroutines-first.Goroutines
	if last.Freed > 0 {
		v["memory_left_freed"] = last.Freed - first.Freed
	}
}

// slope is that of the line of least squares.
func slope(x, y []float64) float64 {
	var mx, my float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(x))
	}
	var xy, xx float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// watchers are the sessions that stay through a churn and see whether it disturbs them.
const watchers = 100

// churn lets rounds of viewers come and go, a third politely, a third without a word, a third by reset, while some
// watch the room's chat.
func churn(ctx context.Context, b *bench) error {
	o := b.o
	if b.sampler.blind() {
		return errors.New("churn looks at the server's memory: give -admin or -pid with -url")
	}
	stay := b.crowd(watchers, true)
	defer client.Dismiss(ctx, stay)
	if err := b.gather(ctx, stay, watchers); err != nil {
		return err
	}
	first, err := b.sampler.read(ctx)
	if err != nil {
		return err
	}
	chat, stop := context.WithCancel(ctx)
	defer stop()
	p := plan{phases: []client.Phase{client.Steady(o.deadline(), o.rate)}, slot: time.Second, senders: o.senders, label: "churn"}
	err = b.around(ctx, func() (err error) {
		p.meanwhile = func(ctx context.Context, _ time.Time) { err = b.rounds(ctx); stop() }
		_, spoken := b.mainTrial(chat, p, stay.Live())
		if errors.Is(spoken, context.Canceled) {
			return err
		}
		return errors.Join(err, spoken)
	})
	b.growth(first)
	return err
}

func (b *bench) rounds(ctx context.Context) error {
	o := b.o
	for i := range o.rounds {
		c := b.crowd(o.viewers, false)
		err := c.Connect(ctx, o.viewers, o.connectRate)
		b.connected(c, o.viewers)
		c.Disperse(context.WithoutCancel(ctx), client.Rudely, o.connectRate)
		if err != nil {
			return err
		}
		if err := client.WaitFor(ctx, b.o.hold); err != nil {
			return err
		}
		b.sampler.free(ctx, min(freeRest, b.o.hold))
		x, err := b.sampler.read(ctx)
		if err != nil {
			return err
		}
		b.result.Churn = append(b.result.Churn, report.ChurnRound{Sessions: x.Sessions, Goroutines: x.Goroutines, Heap: x.Heap, Memory: x.Memory, Failed: c.Failed.Load()})
		b.progress.line(fmt.Sprintf("churn: round %d of %d gone, %.0f sessions left, %.0f goroutines, heap %s",
			i+1, o.rounds, x.Sessions, x.Goroutines, report.FormatBytes(x.Heap)))
	}
	return nil
}

// growth compares the last round with the second, since the first one fills pools and tables.
func (b *bench) growth(first look) {
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
