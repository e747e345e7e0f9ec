package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// RampPoint is the server at one number of idle sessions.
type RampPoint struct {
	Sessions   int     `json:"sessions"`
	Memory     float64 `json:"memory_bytes"`    // resident, untouched, after -hold
	MemoryGC   float64 `json:"memory_gc_bytes"` // resident, after a collection; 0 when the server offers none
	Heap       float64 `json:"heap_bytes"`      // Go heap in use then
	Goroutines float64 `json:"goroutines"`
	CPU        float64 `json:"cpu"`             // of one core, idle
	After      bool    `json:"after,omitempty"` // everybody has left again
}

// ramp connects idle viewers in steps and looks at the server at each.
func ramp(ctx context.Context, b *bench) error {
	o := b.o
	if b.sampler.blind() {
		return errors.New("ramp looks at the server's memory: give -admin or -pid with -url")
	}
	if o.points < 2 {
		return errors.New("ramp needs -points of 2 or more to draw a line through")
	}
	c := b.crowd(o.viewers, true)
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	if err := b.rampPoint(ctx, 0, false); err != nil {
		return err
	}
	for i := 1; i <= o.points; i++ {
		want := o.viewers*i/o.points - c.size()
		b.progress.line(fmt.Sprintf("ramp: connecting %d more", want))
		if err := c.connect(ctx, want, o.connectRate); err != nil {
			return err
		}
		if err := b.rampPoint(ctx, len(c.live()), false); err != nil {
			return err
		}
	}
	b.connected(c, o.viewers)
	b.slopes()
	if len(c.live()) < o.viewers/2 {
		return fmt.Errorf("only %d of %d viewers came in (%s)", len(c.live()), o.viewers, b.result.Connections)
	}
	c.disperse(ctx, politely, 4*o.connectRate)
	if err := b.rampPoint(ctx, 0, true); err != nil {
		return err
	}
	first, last := b.result.Ramp[0], b.result.Ramp[len(b.result.Ramp)-1]
	b.result.Values["memory_left"] = last.Memory - first.Memory
	b.result.Values["goroutines_left"] = last.Goroutines - first.Goroutines
	return nil
}

// rampPoint rests and then looks.
func (b *bench) rampPoint(ctx context.Context, sessions int, after bool) error {
	b.progress.line(fmt.Sprintf("ramp: %d sessions, resting %s%s", sessions, b.o.hold, b.sampler.line()))
	before := b.sampler.spent(ctx)
	if err := waitFor(ctx, b.o.hold); err != nil {
		return err
	}
	idle := b.sampler.spent(ctx)
	x, err := b.sampler.read(ctx)
	if err != nil {
		return err
	}
	p := RampPoint{Sessions: sessions, Memory: x.Memory, Goroutines: x.Goroutines, After: after}
	p.CPU, _, _ = idle.since(before)
	if b.sampler.collectGarbage(ctx, min(gcRest, b.o.hold)) {
		if x, err = b.sampler.read(ctx); err != nil {
			return err
		}
		p.MemoryGC, p.Heap = x.Memory, x.Heap
	}
	b.result.Ramp = append(b.result.Ramp, p)
	return nil
}

// slopes draws the lines; the empty server is not on them, since its first sessions pay for what all share.
func (b *bench) slopes() {
	var n, memory, collected, heap, goroutines []float64
	for _, p := range b.result.Ramp[1:] {
		n = append(n, float64(p.Sessions))
		memory, collected = append(memory, p.Memory), append(collected, p.MemoryGC)
		heap, goroutines = append(heap, p.Heap), append(goroutines, p.Goroutines)
	}
	v := b.result.Values
	v["memory_per_session"], v["goroutines_per_session"] = slope(n, memory), slope(n, goroutines)
	if collected[0] > 0 {
		v["memory_per_session_gc"], v["heap_per_session"] = slope(n, collected), slope(n, heap)
	} else {
		b.result.note("the server offers no garbage collection (pprof on its admin address): only the untouched memory is known")
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

func (r *Result) rampTable(w io.Writer) {
	if len(r.Ramp) == 0 {
		return
	}
	fmt.Fprint(w, "\nsessions\tmemory\tafter GC\theap\tgoroutines\tidle CPU\t\n")
	for _, p := range r.Ramp {
		who := fmt.Sprint(p.Sessions)
		if p.After {
			who = "all left"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%.1f %%\t\n", who, formatBytes(p.Memory), formatBytes(p.MemoryGC), formatBytes(p.Heap), p.Goroutines, 100*p.CPU)
	}
	for _, row := range []struct{ name, label string }{
		{"memory_per_session", "slope"}, {"memory_per_session_gc", "slope after GC"}, {"heap_per_session", "slope of heap"},
	} {
		if v, ok := r.Values[row.name]; ok {
			fmt.Fprintf(w, "%s\t%.0f B/session\t\n", row.label, v)
		}
	}
	fmt.Fprintf(w, "goroutines\t%.3f /session\t\n", r.Values["goroutines_per_session"])
}

// rest waits as long as a server may rest before its memory is read.
func (b *bench) rest(ctx context.Context) error {
	return waitFor(ctx, b.o.hold)
}
