package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// JoinRound is one turn of the server and one of the bare upgrade loop: the same viewers by the same client.
type JoinRound struct {
	Server float64 `json:"server_joins_per_second"`
	Bare   float64 `json:"bare_joins_per_second"`
	CPU    float64 `json:"server_seconds_per_join"` // processor time
}

// asFast is a connect rate that waits for nothing: what is measured is how fast the other side is.
const asFast = 1e9

// joins asks how many viewers a second come in when all of them come at once, from dial to welcome, in turns with a
// process that upgrades, reads a hello and answers a fixed welcome: no server is faster than that with this client.
func joins(ctx context.Context, b *bench) error {
	o := b.o
	if len(o.pids) != 1 {
		return errors.New("joins looks at one node: give -spawn 1, or -pid with -url")
	}
	loop, address, err := startUpgrader(ctx, o.serverCPUs)
	if loop != nil {
		defer loop.kill() // it holds nothing that must be put away
	}
	if err != nil {
		return err
	}
	bare := *b.dial
	if bare.targets, err = parseTargets([]string{address}); err != nil {
		return err
	}
	return b.around(ctx, func() error {
		for i := range o.rounds + 1 {
			b.progress.line(fmt.Sprintf("joins: round %d of %d, %d viewers", i, o.rounds, o.viewers))
			var r JoinRound
			if r.Bare, err = b.storm(ctx, &bare); err != nil {
				return err
			}
			before, err := processTime(o.pids[0])
			if err != nil {
				return err
			}
			if r.Server, err = b.storm(ctx, b.dial); err != nil {
				return err
			}
			after, err := processTime(o.pids[0])
			if err != nil {
				return err
			}
			if r.CPU = (after - before) / float64(o.viewers); i > 0 { // the first warms up
				b.result.Joins = append(b.result.Joins, r)
			}
		}
		b.compareJoins()
		return nil
	})
}

// storm lets all viewers come at once by way of d and go again, and returns how many came in per second.
func (b *bench) storm(ctx context.Context, d *dialer) (float64, error) {
	c := b.crowd(b.o.viewers, false)
	c.dial = d
	defer c.disperse(context.WithoutCancel(ctx), politely, 0)
	start := time.Now()
	err := c.connect(ctx, b.o.viewers, asFast)
	took := time.Since(start)
	b.connected(c, b.o.viewers)
	if err != nil {
		return 0, err
	}
	if n := len(c.live()); n < b.o.viewers {
		closes, _ := b.readers.tables()
		b.result.note("%d of %d viewers came in at once (close codes %v)", n, b.o.viewers, closes)
	}
	return float64(c.joined.Load()) / took.Seconds(), nil
}

// compareJoins takes the medians.
func (b *bench) compareJoins() {
	var server, bare, ratio, cpu []float64
	for _, r := range b.result.Joins {
		server, bare, ratio, cpu = append(server, r.Server), append(bare, r.Bare), append(ratio, r.Server/math.Max(r.Bare, 1)), append(cpu, r.CPU)
	}
	v := b.result.Values
	v["joins_per_second"], v["joins_per_second_bare"], v["joins_ratio"], v["join_cpu"] = median(server), median(bare), median(ratio), median(cpu)
}

func (r *Result) joinsTable(w io.Writer) {
	if len(r.Joins) == 0 {
		return
	}
	fmt.Fprint(w, "\nround\tjoins/s\tbare upgrade loop\tratio\tserver CPU per join\t\n")
	for i, j := range r.Joins {
		fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.3f\t%s\t\n", i+1, j.Server, j.Bare, j.Server/math.Max(j.Bare, 1), inSeconds.format(j.CPU))
	}
	v := r.Values
	fmt.Fprintf(w, "median\t%.0f\t%.0f\t%.3f\t%s\t\n", v["joins_per_second"], v["joins_per_second_bare"], v["joins_ratio"], inSeconds.format(v["join_cpu"]))
}
