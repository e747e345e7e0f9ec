package main

import (
	"fmt"
	"strings"
	"time"
)

// charts are the pictures of a result, those that have something to show.
func (r *Result) charts() []chart {
	var out []chart
	for _, c := range []chart{
		r.levelOverTime(), r.admittedByNode(), r.redisOverTime(),
		r.latencyOverTime(), r.latencyByPercentile(), r.flow(danmaku), r.flow(gift), r.flow(like), r.volumeOverTime(),
		r.rampMemory(), r.churnMemory(), turns("The others' p99, turn by turn", r.Slow), turns("The small room's p99, turn by turn", r.Fair), r.processorOverTime(), r.memoryOverTime(), r.goroutinesOverTime(),
	} {
		kept := c.series[:0]
		for _, s := range c.series {
			if hasValue(s.points) {
				kept = append(kept, s)
			}
		}
		if c.series = kept; len(kept) > 0 {
			if c.x.time {
				c.bands = r.Bands
			}
			out = append(out, c)
		}
	}
	return out
}

func hasValue(points []point) bool {
	for _, p := range points {
		if p.y > 0 {
			return len(points) > 1
		}
	}
	return false
}

func seconds(v float64) string { return time.Duration(v * 1e9).Round(time.Millisecond).String() }

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

var (
	timeAxis    = scale{format: seconds, time: true} // since the first attempt
	latencyAxis = scale{log: true, format: inSeconds.format}
	countAxis   = scale{format: formatCount}
	memoryAxis  = scale{format: formatBytes}
)

func (r *Result) overTime(of func(Slot) float64) []point {
	var out []point
	for _, s := range r.Timeline {
		out = append(out, point{s.At, of(s)})
	}
	return out
}

// perSecond divides counts by the length of their slots, which is not the planned one when this tool was held up.
func (r *Result) perSecond(of func(Slot) int64) []point {
	var out []point
	before := 0.0
	for _, s := range r.Timeline {
		out = append(out, point{s.At, float64(of(s)) / max(s.At-before, 1e-3)})
		before = s.At
	}
	return out
}

func (r *Result) latencyOverTime() chart {
	return chart{title: "Latency over time", note: "Danmaku, from the instant they were due to a viewer's read; gifts the same.", x: timeAxis, y: latencyAxis,
		series: []series{
			{"p50", 1, false, r.overTime(func(s Slot) float64 { return s.P50 })},
			{"p99", 2, false, r.overTime(func(s Slot) float64 { return s.P99 })},
			{"max", 5, true, r.overTime(func(s Slot) float64 { return s.Max })},
			{"gift p99", 4, false, r.overTime(func(s Slot) float64 { return s.GiftP99 })},
		}}
}

func (r *Result) latencyByPercentile() chart {
	c := chart{title: "Latency by percentile", note: "Each step to the right leaves a tenth of the values above.", y: latencyAxis,
		x: scale{log: true, min: 2, max: 10_000, format: nines, ticks: []float64{2, 10, 100, 1000, 10_000}}}
	for i, m := range []measure{toReceipt, toAdmission, toAck, giftReceipt, giftAck} {
		s := series{name: strings.ReplaceAll(m.String(), "_", " "), colour: i + 1}
		for _, step := range r.Latencies[m.String()].Curve {
			if above := 100 / (100 - step.Percentile); above >= c.x.min && above <= c.x.max*1.01 {
				s.points = append(s.points, point{above, step.Seconds})
			}
		}
		c.series = append(c.series, s)
	}
	return c
}

// nines names the percentile that leaves one in v above.
func nines(v float64) string { return fmt.Sprintf("%.6g %%", 100-100/v) }

func (r *Result) flow(c class) chart {
	rate := func(of func(Flow) int64) []point {
		return r.perSecond(func(s Slot) int64 { return of(s.Classes[c.String()]) })
	}
	out := chart{title: strings.ToUpper(c.String()[:1]) + c.String()[1:] + "s per second", x: timeAxis, y: countAxis,
		note: "Attempts by the instant they were due, and what became of them.",
		series: []series{
			{"attempts", 6, true, rate(func(f Flow) int64 { return f.Attempts })},
			{"admitted", 3, false, rate(func(f Flow) int64 { return f.Admitted })},
			{"degraded", 4, false, rate(func(f Flow) int64 { return f.Degraded })},
			{"refused", 2, false, rate(func(f Flow) int64 { return f.Refused })},
		}}
	if c == danmaku {
		out.title = "Danmaku per second"
		if b := r.Bound; b != nil && len(r.Timeline) > 1 {
			last := r.Timeline[len(r.Timeline)-1].At
			out.note += fmt.Sprintf(" The quota is %d a second and a burst of %d.", b.Rate, b.Burst)
			out.series = append(out.series, series{"quota", 5, true, []point{{r.Timeline[0].At, float64(b.Rate)}, {last, float64(b.Rate)}}})
		}
	}
	return out
}

func (r *Result) volumeOverTime() chart {
	return chart{title: "Deliveries and frames per second", note: "What all viewers together read.", x: timeAxis, y: countAxis,
		series: []series{
			{"deliveries", 1, false, r.perSecond(func(s Slot) int64 { return s.Deliveries })},
			{"frames", 3, false, r.perSecond(func(s Slot) int64 { return s.Frames })},
			{"announced as missed", 2, false, r.perSecond(func(s Slot) int64 { return s.Missed })},
		}}
}

func (r *Result) rampMemory() chart {
	untouched, freed := series{"untouched", 2, false, nil}, series{"freed", 1, false, nil}
	for _, p := range r.Ramp {
		if p.After {
			continue
		}
		untouched.points = append(untouched.points, point{float64(p.Sessions), p.Memory})
		freed.points = append(freed.points, point{float64(p.Sessions), p.Freed})
	}
	return chart{title: "Resident memory by idle sessions", x: countAxis, y: memoryAxis, series: []series{untouched, freed},
		note: fmt.Sprintf("Slope, without the empty server: %s per session untouched, %s freed.",
			formatBytes(r.Values["memory_per_session"]), formatBytes(r.Values["memory_per_session_freed"]))}
}

func (r *Result) churnMemory() chart {
	heap, memory := series{"heap in use", 1, false, nil}, series{"resident", 2, false, nil}
	for i, c := range r.Churn {
		heap.points = append(heap.points, point{float64(i + 1), c.Heap})
		memory.points = append(memory.points, point{float64(i + 1), c.Memory})
	}
	return chart{title: "Memory after each round", note: "Everybody of the round has left, a third of them politely.", x: countAxis, y: memoryAxis, series: []series{heap, memory}}
}

func turns(title string, all []Turn) chart {
	alone, disturbed := series{"p99 alone", 1, false, nil}, series{"p99 with neighbours", 2, false, nil}
	for i, t := range all {
		p := point{float64(i + 1), t.P99}
		if t.disturbed() {
			disturbed.points = append(disturbed.points, p)
		} else {
			alone.points = append(alone.points, p)
		}
	}
	return chart{title: title, x: countAxis, y: latencyAxis, series: []series{alone, disturbed}}
}

// serverOverTime counts time from the first attempt, as all charts do; what lies before is connecting.
func (r *Result) serverOverTime(of func(ServerSample) float64) []point {
	var out []point
	for _, s := range r.Server {
		out = append(out, point{s.At - r.Began, of(s)})
	}
	return out
}

func (r *Result) processorOverTime() chart {
	return chart{title: "Processor", note: "Share of one core.", x: timeAxis, y: scale{format: percent},
		series: []series{
			{"server", 1, false, r.serverOverTime(func(s ServerSample) float64 { return s.CPU })},
			{"this tool", 4, false, r.serverOverTime(func(s ServerSample) float64 { return s.LoadCPU })},
			{"everything else", 6, true, r.serverOverTime(func(s ServerSample) float64 { return s.OtherCPU })},
		}}
}

func (r *Result) memoryOverTime() chart {
	return chart{title: "Memory of the server", x: timeAxis, y: memoryAxis, series: []series{
		{"resident", 2, false, r.serverOverTime(func(s ServerSample) float64 { return s.Memory })},
		{"heap in use", 1, false, r.serverOverTime(func(s ServerSample) float64 { return s.Heap })},
	}}
}

func (r *Result) goroutinesOverTime() chart {
	return chart{title: "Goroutines and sessions of the server", x: timeAxis, y: countAxis, series: []series{
		{"goroutines", 1, false, r.serverOverTime(func(s ServerSample) float64 { return s.Goroutines })},
		{"sessions", 3, false, r.serverOverTime(func(s ServerSample) float64 { return s.Sessions })},
	}}
}

// levelOverTime shows the proof: where the exact bucket stands after all admissions of all nodes.
func (r *Result) levelOverTime() chart {
	c := chart{title: "The exact bucket, drained by every admission of all nodes", x: timeAxis, y: countAxis,
		note: "Full at the start. Below zero the bound is broken; at zero nothing is left unused."}
	if r.Quota == nil {
		return c
	}
	level := series{name: "level, the least of each step", colour: 1}
	for _, p := range r.Quota.Levels {
		level.points = append(level.points, point{p.At, p.Level})
	}
	c.series = append(c.series, level)
	return c
}

// nodeColours are those of the page, in the order of the nodes; more nodes begin again.
const nodeColours = 5

func (r *Result) admittedByNode() chart {
	c := chart{title: "Admitted per second, node by node", note: "The room's quota is one for all of them.", x: timeAxis, y: countAxis}
	if r.Quota == nil {
		return c
	}
	var sum []point
	for i, n := range r.Quota.ByNode {
		s := series{name: n.Node, colour: i%nodeColours + 1}
		for second, admitted := range n.Admitted {
			at := float64(second) + 1
			s.points = append(s.points, point{at, float64(admitted)})
			if second == len(sum) {
				sum = append(sum, point{x: at})
			}
			sum[second].y += float64(admitted)
		}
		c.series = append(c.series, s)
	}
	if len(sum) > 1 {
		rate := float64(r.Quota.Rate)
		c.series = append(c.series, series{"all", 6, false, sum}, series{"quota", 5, true, []point{{0, rate}, {sum[len(sum)-1].x, rate}}})
	}
	return c
}

func (r *Result) redisOverTime() chart {
	c := chart{title: "Calls to Redis per second", note: "As the nodes count them, and as Redis itself counts the scripts it runs.", x: timeAxis, y: countAxis}
	if r.Quota == nil || len(r.Quota.Calls) == 0 {
		return c
	}
	room, user, scripts := series{"for the room", 1, false, nil}, series{"for users", 3, false, nil}, series{"scripts that Redis ran", 2, true, nil}
	before := r.Quota.Calls[0]
	for _, x := range r.Quota.Calls[1:] {
		span := max(x.At-before.At, 1e-3)
		room.points = append(room.points, point{x.At, max(0, x.Room-before.Room) / span})
		user.points = append(user.points, point{x.At, max(0, x.User-before.User) / span})
		scripts.points = append(scripts.points, point{x.At, max(0, x.Scripts-before.Scripts) / span})
		before = x
	}
	c.series = append(c.series, room, user, scripts)
	return c
}
