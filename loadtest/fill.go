package main

import (
	"context"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

func newResult(o *options) *report.Result {
	return &report.Result{Scenario: o.scenario.name, About: o.scenario.about, Command: command(), Started: time.Now().UTC(),
		Values: map[string]float64{}, Latencies: map[string]client.Distribution{}, Classes: map[string]client.Flow{},
		Objectives: slices.Clone(o.objectives), Closes: map[string]int64{}, Connections: client.Connections{Failures: map[string]int{}, Nodes: map[string]int{}}}
}

// command is how this run was called, without the secret.
func command() []string {
	args := slices.Clone(os.Args[1:])
	for i, a := range args {
		name, _, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case name != "secret":
		case inline:
			args[i] = "-secret=…"
		case i+1 < len(args):
			args[i+1] = "…"
		}
	}
	return append([]string{"loadtest"}, args...)
}

// connected adds how a crowd came in.
func (b *bench) connected(c *client.Crowd, wanted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := &b.result.Connections
	x.Wanted += wanted
	c.AddTo(x)
}

// around measures the processor time of what f does.
func (b *bench) around(ctx context.Context, f func() error) error {
	b.from = b.sampler.spent(ctx)
	err := f()
	b.to = b.sampler.spent(context.WithoutCancel(ctx))
	return err
}

// record takes over a measured trial as the run's main one.
func (b *bench) record(m *measured, slot time.Duration) {
	r, v := b.result, b.result.Values
	r.Classes, r.Delivery, r.Timeline, r.SlotSeconds = m.classes, &m.delivery, m.slots, slot.Seconds()
	r.Delivery.Missed = m.counted.Missed
	r.Began = m.trial.Start.Sub(b.sampler.began).Seconds()
	r.AddLatencies(&m.latencies)
	b.volumes(m)
	d := r.Delivery
	v["gift_loss"], v["danmaku_loss"], v["missed"] = float64(d.GiftLost), float64(d.Lost), float64(d.Missed)
	v["duplicates"], v["leaked"] = float64(d.Twice+d.GiftDup), float64(d.Leaked)
	if d.Orders >= 0 {
		v["other_orders"] = float64(d.Orders)
	}
	if d.Expected > 0 {
		v["delivered"] = float64(d.Expected-d.Lost) / float64(d.Expected)
	}
	var all client.Flow
	for _, c := range r.Classes {
		all.Refused, all.Unanswered = all.Refused+c.Refused, all.Unanswered+c.Unanswered
	}
	v["refused"], v["unanswered"] = float64(all.Refused), float64(all.Unanswered)
	if x := b.o.bound.check(m.stamps); x != nil {
		r.Bound, v["quota_excess"] = x, float64(x.Excess)
	}
	if b.o.room == "" && m.likesCounted > 0 { // a fresh room begins at zero
		v["like_error"] = math.Abs(float64(m.likesShown - m.likesCounted))
	}
}

func (b *bench) volumes(m *measured) {
	v, seconds, deliveries, frames := b.result.Values, max(m.took.Seconds(), 1e-3), float64(m.counted.Deliveries()), float64(m.counted.Frames)
	b.frames += frames
	v["deliveries_per_second"], v["frames_per_second"] = deliveries/seconds, frames/seconds
	if frames == 0 || deliveries == 0 {
		return
	}
	v["messages_per_frame"] = float64(m.counted.Events) / frames
	v["bytes_per_delivery"] = float64(m.counted.Bytes) / deliveries
	if m.counted.Saved != 0 {
		v["deflated_to"] = float64(m.counted.Bytes) / float64(m.counted.Bytes+m.counted.Saved)
	}
}

// finish adds what belongs to the whole run.
func (b *bench) finish(began time.Time) {
	r, v := b.result, b.result.Values
	r.Seconds = time.Since(began).Seconds()
	r.Server = b.sampler.series()
	closes, reasons := b.readers.Tables()
	maps.Copy(r.Closes, closes)
	r.Reasons = reasons
	v["closes"] = 0
	for _, n := range r.Closes {
		v["closes"] += float64(n)
	}
	all := b.readers.Totals()
	v["connect_failures"] = float64(r.Connections.Failed + r.Connections.Silent + r.Connections.Closed)
	v["answered_twice"], v["unreadable"], v["like_falls"] = float64(all.AnsweredTwice), v["unreadable"]+float64(all.Unreadable), float64(all.LikeFalls)
	if all.Skew > 0 {
		r.Note("%d events came more than 2 ms before their ts: the clocks of server and load differ, do not use the latency since admission", all.Skew)
	}
	var rest client.Latencies
	b.readers.Drain(&rest)
	if _, ok := r.Latencies[client.Join.String()]; !ok {
		r.AddLatencies(&client.Latencies{client.Join: rest[client.Join]})
	}
	b.memory()
	if !b.to.at.IsZero() && !b.from.at.IsZero() {
		b.usage()
	}
	if lag := v["send_lag_p99"]; lag > 0.005 {
		r.Note("this tool sent late (p99 %s): it, or its machine, was short of processor time, and that is part of every latency", report.InSeconds.Format(lag))
	}
}

// usage adds the processor time of the measured part.
func (b *bench) usage() {
	r, v := b.result, b.result.Values
	server, self, other := b.to.since(b.from)
	v["load_cpu"] = self
	if b.sampler.blind() {
		return
	}
	v["server_cpu"] = server
	if b.frames > 0 {
		v["cpu_per_frame"] = server * b.to.at.Sub(b.from.at).Seconds() / b.frames
	}
	if b.to.machine > 0 {
		if v["other_cpu"] = other; other > 0.15 {
			r.Note("other processes of this machine used %.0f %% of a core meanwhile: latencies are worse than the server's own", 100*other)
		}
	}
}

// memory compares the server's most with what it had when the first attempt was due.
func (b *bench) memory() {
	r, most, before := b.result, 0.0, 0.0
	for _, x := range r.Server {
		r.Values["server_memory"] = max(r.Values["server_memory"], x.Memory)
		if x.At <= r.Began {
			before = x.Memory
		} else {
			most = max(most, x.Memory)
		}
	}
	if r.Delivery != nil && before > 0 && most > 0 {
		r.Values["memory_growth"] = max(0, most-before)
	}
}
