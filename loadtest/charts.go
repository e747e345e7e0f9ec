package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	timeAxis    = scale{format: func(v float64) string { return time.Duration(v * 1e9).Round(time.Millisecond).String() }, time: true} // since the first attempt
	latencyAxis = scale{log: true, format: inSeconds.format}
	countAxis   = scale{format: formatCount}
	memoryAxis  = scale{format: formatBytes}
	shareAxis   = scale{format: func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }}
	// ninesAxis names the percentile that leaves one in so many above.
	ninesAxis = scale{log: true, min: 2, max: 10_000, format: func(v float64) string { return fmt.Sprintf("%.6g %%", 100-100/v) },
		ticks: []float64{2, 10, 100, 1000, 10_000}}
)

// over are the points that rows make.
func over[T any](rows []T, at func(i int, row T) point) (out []point) {
	for i, row := range rows {
		out = append(out, at(i, row))
	}
	return out
}

// charts are the pictures of a result, those that have something to show.
func (r *Result) charts() (out []chart) {
	for _, c := range slices.Concat(r.quotaCharts(), r.trialCharts(), r.roundCharts(), r.serverCharts()) {
		c.Series = slices.DeleteFunc(c.Series, func(s series) bool {
			return len(s.points) < 2 || !slices.ContainsFunc(s.points, func(p point) bool { return p.y > 0 })
		})
		if len(c.Series) == 0 {
			continue
		}
		if c.x.time {
			c.bands = r.Bands
		}
		out = append(out, c.fitted())
	}
	return out
}

// trialCharts are of what viewers and senders saw.
func (r *Result) trialCharts() []chart {
	slot := func(of func(Slot) float64) []point {
		return over(r.Timeline, func(_ int, s Slot) point { return point{s.At, of(s)} })
	}
	out := []chart{
		{Title: "Latency over time", Note: "Danmaku, from the instant they were due to a viewer's read; gifts the same.", x: timeAxis, y: latencyAxis, Series: []series{
			{"p50", 1, false, slot(func(s Slot) float64 { return s.P50 })},
			{"p99", 2, false, slot(func(s Slot) float64 { return s.P99 })},
			{"max", 5, true, slot(func(s Slot) float64 { return s.Max })},
			{"gift p99", 4, false, slot(func(s Slot) float64 { return s.GiftP99 })},
		}},
		{Title: "Latency by percentile", Note: "Each step to the right leaves a tenth of the values above.", x: ninesAxis, y: latencyAxis},
	}
	for i, m := range []measure{toReceipt, toAdmission, toAck, giftReceipt, giftAck} {
		s := series{Name: strings.ReplaceAll(m.String(), "_", " "), Colour: i + 1}
		for _, step := range r.Latencies[m.String()].Curve {
			if above := 100 / (100 - step.Percentile); above >= ninesAxis.min && above <= ninesAxis.max*1.01 {
				s.points = append(s.points, point{above, step.Seconds})
			}
		}
		out[1].Series = append(out[1].Series, s)
	}
	return append(out, r.flow(danmaku), r.flow(gift), r.flow(like),
		chart{Title: "Deliveries and frames per second", Note: "What all viewers together read.", x: timeAxis, y: countAxis, Series: []series{
			{"deliveries", 1, false, r.perSecond(func(s Slot) int64 { return s.Deliveries })},
			{"frames", 3, false, r.perSecond(func(s Slot) int64 { return s.Frames })},
			{"announced as missed", 2, false, r.perSecond(func(s Slot) int64 { return s.Missed })},
		}})
}

// perSecond divides counts by the length of their slots, which is not the planned one when this tool was held up.
func (r *Result) perSecond(of func(Slot) int64) []point {
	before := 0.0
	return over(r.Timeline, func(_ int, s Slot) point {
		width := max(s.At-before, 1e-3)
		before = s.At
		return point{s.At, float64(of(s)) / width}
	})
}

func (r *Result) flow(c class) chart {
	rate := func(of func(Flow) int64) []point {
		return r.perSecond(func(s Slot) int64 { return of(s.Classes[c.String()]) })
	}
	out := chart{Title: map[class]string{danmaku: "Danmaku", gift: "Gifts", like: "Likes"}[c] + " per second", x: timeAxis, y: countAxis,
		Note: "Attempts by the instant they were due, and what became of them.", Series: []series{
			{"attempts", 6, true, rate(func(f Flow) int64 { return f.Attempts })},
			{"admitted", 3, false, rate(func(f Flow) int64 { return f.Admitted })},
			{"degraded", 4, false, rate(func(f Flow) int64 { return f.Degraded })},
			{"refused", 2, false, rate(func(f Flow) int64 { return f.Refused })},
		}}
	if b := r.Bound; b != nil && c == danmaku && len(r.Timeline) > 1 {
		out.Note += fmt.Sprintf(" The quota is %d a second and a burst of %d.", b.Rate, b.Burst)
		out.Series = append(out.Series, level("quota", b.Rate, r.Timeline[0].At, r.Timeline[len(r.Timeline)-1].At))
	}
	return out
}

// level is a bound as a line.
func level(name string, v int64, from, to float64) series {
	return series{name, 5, true, []point{{from, float64(v)}, {to, float64(v)}}}
}

// roundCharts are of the rounds that scenarios consist of.
func (r *Result) roundCharts() []chart {
	ramp := slices.DeleteFunc(slices.Clone(r.Ramp), func(p RampPoint) bool { return p.After })
	turns := func(title string, turns []Turn) chart {
		alone, disturbed := series{Name: "p99 alone", Colour: 1}, series{Name: "p99 with neighbours", Colour: 2}
		for i, t := range turns {
			s := &alone
			if t.disturbed() {
				s = &disturbed
			}
			s.points = append(s.points, point{float64(i + 1), t.P99})
		}
		return chart{Title: title, x: countAxis, y: latencyAxis, Series: []series{alone, disturbed}}
	}
	return []chart{
		{Title: "Resident memory by idle sessions", x: countAxis, y: memoryAxis, Note: fmt.Sprintf("Slope, without the empty server: %s per session untouched, %s freed.",
			formatBytes(r.Values["memory_per_session"]), formatBytes(r.Values["memory_per_session_freed"])), Series: []series{
			{"untouched", 2, false, over(ramp, func(_ int, p RampPoint) point { return point{float64(p.Sessions), p.Memory} })},
			{"freed", 1, false, over(ramp, func(_ int, p RampPoint) point { return point{float64(p.Sessions), p.Freed} })},
		}},
		{Title: "Memory after each round", Note: "Everybody of the round has left, a third of them politely.", x: countAxis, y: memoryAxis, Series: []series{
			{"heap in use", 1, false, over(r.Churn, func(i int, c ChurnRound) point { return point{float64(i + 1), c.Heap} })},
			{"resident", 2, false, over(r.Churn, func(i int, c ChurnRound) point { return point{float64(i + 1), c.Memory} })},
		}},
		turns("The others' p99, turn by turn", r.Slow), turns("The small room's p99, turn by turn", r.Fair),
	}
}

// serverCharts count time from the first attempt, as all charts do; what lies before is connecting.
func (r *Result) serverCharts() []chart {
	sample := func(of func(ServerSample) float64) []point {
		return over(r.Server, func(_ int, s ServerSample) point { return point{s.At - r.Began, of(s)} })
	}
	return []chart{
		{Title: "Processor", Note: "Share of one core.", x: timeAxis, y: shareAxis, Series: []series{
			{"server", 1, false, sample(func(s ServerSample) float64 { return s.CPU })},
			{"this tool", 4, false, sample(func(s ServerSample) float64 { return s.LoadCPU })},
			{"everything else", 6, true, sample(func(s ServerSample) float64 { return s.OtherCPU })},
		}},
		{Title: "Memory of the server", x: timeAxis, y: memoryAxis, Series: []series{
			{"resident", 2, false, sample(func(s ServerSample) float64 { return s.Memory })},
			{"heap in use", 1, false, sample(func(s ServerSample) float64 { return s.Heap })},
		}},
		{Title: "Goroutines and sessions of the server", x: timeAxis, y: countAxis, Series: []series{
			{"goroutines", 1, false, sample(func(s ServerSample) float64 { return s.Goroutines })},
			{"sessions", 3, false, sample(func(s ServerSample) float64 { return s.Sessions })},
		}},
	}
}

// quotaCharts show the proof, where the exact bucket stands after all admissions of all nodes, and what it costs.
func (r *Result) quotaCharts() []chart {
	q := r.Quota
	if q == nil {
		return nil
	}
	nodes := chart{Title: "Admitted per second, node by node", Note: "The room's quota is one for all of them.", x: timeAxis, y: countAxis}
	var sum []point
	for i, n := range q.ByNode {
		const colours = 5 // more nodes begin again
		nodes.Series = append(nodes.Series, series{n.Node, i%colours + 1, false, over(n.Admitted, func(second int, admitted int64) point {
			if second == len(sum) {
				sum = append(sum, point{x: float64(second) + 1})
			}
			sum[second].y += float64(admitted)
			return point{float64(second) + 1, float64(admitted)}
		})})
	}
	if len(sum) > 1 {
		nodes.Series = append(nodes.Series, series{"all", 6, false, sum}, level("quota", q.Rate, 0, sum[len(sum)-1].x))
	}
	calls := func(of func(RedisCalls) float64) (out []point) {
		for i := 1; i < len(q.Calls); i++ {
			a, b := q.Calls[i-1], q.Calls[i]
			out = append(out, point{b.At, max(0, of(b)-of(a)) / max(b.At-a.At, 1e-3)})
		}
		return out
	}
	return []chart{
		{Title: "The exact bucket, drained by every admission of all nodes", x: timeAxis, y: countAxis,
			Note: "Full at the start. Below zero the bound is broken; at zero nothing is left unused.", Series: []series{
				{"level, the least of each step", 1, false, over(q.Levels, func(_ int, p LevelPoint) point { return point{p.At, p.Level} })}}},
		nodes,
		{Title: "Calls to Redis per second", Note: "As the nodes count them, and as Redis itself counts the scripts it runs.", x: timeAxis, y: countAxis, Series: []series{
			{"for the room", 1, false, calls(func(c RedisCalls) float64 { return c.Room })},
			{"for users", 3, false, calls(func(c RedisCalls) float64 { return c.User })},
			{"scripts that Redis ran", 2, true, calls(func(c RedisCalls) float64 { return c.Scripts })},
		}},
	}
}
