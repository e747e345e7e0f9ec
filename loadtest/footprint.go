package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// RampPoint is the server at one number of idle sessions, met twice.
type RampPoint struct {
	Sessions   int     `json:"sessions"`
	Memory     float64 `json:"memory_bytes" col:"memory,B"`      // resident, untouched, after -hold
	Freed      float64 `json:"memory_freed_bytes" col:"freed,B"` // resident, in the second pass, after it was told to give back what it can
	Heap       float64 `json:"heap_bytes" col:"heap then,B"`     // Go heap in use then
	Goroutines float64 `json:"goroutines" col:"goroutines,0"`
	CPU        float64 `json:"cpu" col:"idle CPU,%"` // of one core, idle
	After      bool    `json:"after,omitempty"`      // everybody has left again, -hold and afterRest ago
}

func (p RampPoint) label() string {
	if p.After {
		return "all left"
	}
	return fmt.Sprint(p.Sessions)
}

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
		b.result.note("the server offers no way to free memory (POST /debug/free on its admin address): only the untouched memory is known")
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
		b.result.note("the second pass met the server that the first had grown: what is freed is too little per session")
		return nil
	}
	b.fleet.nodes[0].stop()
	n, err := b.fleet.launch(ctx, nodeName(1))
	if err != nil {
		return err
	}
	if b.dial.targets, err = parseTargets([]string{n.url}); err != nil {
		return err
	}
	b.sampler.watchOnly(n.admin, n.cmd.Process.Pid)
	return nil
}

func lastsRamp(o *options) time.Duration {
	connecting := time.Duration(float64(o.viewers) / o.connectRate * float64(time.Second))
	return connecting + 2*time.Duration(o.points+2)*(o.hold+freeRest) + 2*afterRest
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
	defer dismiss(ctx, c)
	at := 0
	look := func(after bool) error {
		err := b.rampPoint(ctx, at, len(c.live()), free, after)
		at++
		return err
	}
	if err := look(false); err != nil {
		return err
	}
	for _, size := range rampSizes(o) {
		b.progress.line(fmt.Sprintf("ramp: connecting %d more", size-len(c.live())))
		if err := c.fill(ctx, size, o.connectRate); err != nil {
			return err
		}
		if err := look(false); err != nil {
			return err
		}
	}
	b.connected(c, o.viewers)
	if len(c.live()) < o.viewers/2 {
		return fmt.Errorf("only %d of %d viewers came in (%s)", len(c.live()), o.viewers, b.result.Connections)
	}
	c.disperse(ctx, politely, 4*o.connectRate)
	if !free && o.hold > 0 {
		b.progress.line(fmt.Sprintf("ramp: all have left, %s until the last look", afterRest))
		if err := waitFor(ctx, afterRest); err != nil {
			return err
		}
	}
	return look(true)
}

// rampPoint rests and then looks, for the i-th time of a pass.
func (b *bench) rampPoint(ctx context.Context, i, sessions int, free, after bool) error {
	b.progress.line(fmt.Sprintf("ramp: %d sessions, resting %s%s", sessions, b.o.hold, b.sampler.line()))
	before := b.sampler.spent(ctx)
	if err := waitFor(ctx, b.o.hold); err != nil {
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
	p := RampPoint{Sessions: sessions, Memory: x.Memory, Goroutines: x.Goroutines, After: after}
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

// ChurnRound is the server after one round of viewers has gone.
type ChurnRound struct {
	Sessions   float64 `json:"sessions" col:"sessions left,0"` // as the server counts them
	Goroutines float64 `json:"goroutines" col:"goroutines,0"`
	Heap       float64 `json:"heap_bytes" col:"heap,B"` // in use, after a collection
	Memory     float64 `json:"memory_bytes" col:"memory,B"`
	Failed     int64   `json:"failed" col:"failed"`
}

// churn lets rounds of viewers come and go, a third politely, a third without a word, a third by reset, while some
// watch the room's chat.
func churn(ctx context.Context, b *bench) error {
	o := b.o
	if b.sampler.blind() {
		return errors.New("churn looks at the server's memory: give -admin or -pid with -url")
	}
	stay := b.crowd(watchers, true)
	defer dismiss(ctx, stay)
	if err := b.gather(ctx, stay, watchers); err != nil {
		return err
	}
	first, err := b.sampler.read(ctx)
	if err != nil {
		return err
	}
	chat, stop := context.WithCancel(ctx)
	defer stop()
	p := plan{phases: []phase{steady(o.deadline(), o.rate)}, slot: time.Second, senders: o.senders, label: "churn"}
	err = b.around(ctx, func() (err error) {
		p.meanwhile = func(ctx context.Context, _ time.Time) { err = b.rounds(ctx); stop() }
		_, spoken := b.mainTrial(chat, p, stay.live())
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
		err := c.connect(ctx, o.viewers, o.connectRate)
		b.connected(c, o.viewers)
		c.disperse(context.WithoutCancel(ctx), rudely, o.connectRate)
		if err != nil {
			return err
		}
		if err := waitFor(ctx, b.o.hold); err != nil {
			return err
		}
		b.sampler.free(ctx, min(freeRest, b.o.hold))
		x, err := b.sampler.read(ctx)
		if err != nil {
			return err
		}
		b.result.Churn = append(b.result.Churn, ChurnRound{x.Sessions, x.Goroutines, x.Heap, x.Memory, c.failed.Load()})
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
