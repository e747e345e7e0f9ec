package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Quota is how a quota held over several nodes.
type Quota struct {
	Rate   int64        `json:"rate_per_second"`
	Burst  int64        `json:"burst"`
	Nodes  int          `json:"nodes"` // at the start
	Stages []QuotaStage `json:"stages"`
	User   *QuotaStage  `json:"user,omitempty"`
	Proof  Evidence     `json:"evidence"`
	Worst  Window       `json:"worst_window"`
	Failed float64      `json:"redis_calls_failed"`    // in the stages
	Away   float64      `json:"redis_seconds_without"` // all nodes together
	Calls  []RedisCalls `json:"redis_calls,omitempty"` // from the start on
	Levels []LevelPoint `json:"levels,omitempty"`      // of the exact bucket
	ByNode []NodeSeries `json:"by_node,omitempty"`
}

// QuotaStage is one stretch of the run. What was admitted belongs to the stage in which it was admitted, whenever it was
// due.
type QuotaStage struct {
	Name        string  `json:"name"`
	About       string  `json:"about"`
	At          float64 `json:"at_seconds"`
	Seconds     float64 `json:"seconds" col:"seconds,1"`
	Attempts    int64   `json:"attempts"`
	Demand      float64 `json:"demand_per_second" col:"demand/s,0"`
	Admitted    int64   `json:"admitted" col:"admitted"`
	Level       int64   `json:"level"`                           // of the exact bucket at the stage's begin
	Allowed     int64   `json:"allowed" col:"allowed"`           // level + rate × seconds
	Left        int64   `json:"left" col:"left"`                 // level at its end: what the bound would still have allowed
	Utilisation float64 `json:"utilisation" col:"utilisation,%"` // admitted / (rate × seconds + what was taken from the level), where demand was above the quota throughout; else 0
	Excess      int64   `json:"excess" col:"over"`               // of the worst window that ends in this stage
	RoomCalls   float64 `json:"room_calls_per_second" col:"room calls/s,1"`
	UserCalls   float64 `json:"user_calls_per_second" col:"user calls/s,1"`
	Scripts     float64 `json:"scripts_per_second" col:"Redis scripts/s,1"`
	Saturated   bool    `json:"saturated"`
	Calm        bool    `json:"calm"`
}

func (s QuotaStage) label() string { return s.Name }

// Evidence is what the check rests on: who told of the admitted danmaku.
type Evidence struct {
	Answered int64 `json:"answered"`      // by an answer to the sender
	Heard    int64 `json:"heard_only"`    // by what others were shown alone: the sender's node died before it answered
	Differ   int64 `json:"differ"`        // answer and event named different instants
	Refused  int64 `json:"refused_heard"` // shown to others although the sender was told no
}

// LevelPoint is the least level of the exact bucket in a step of time.
type LevelPoint struct {
	At    float64 `json:"at_seconds"`
	Level float64 `json:"level"` // messages
}

// NodeSeries is what one node admitted, second by second.
type NodeSeries struct {
	Node     string  `json:"node"`
	Admitted []int64 `json:"admitted"`
}

// sumUp puts the stages' figures together.
func (q *quotaRun) sumUp(m *measured, calls []RedisCalls) *Quota {
	o, v := q.o, q.result.Values
	x := &Quota{Rate: o.bound.rate, Burst: o.bound.burst, Nodes: len(o.urls), Calls: calls, Proof: evidence(m.trial),
		Levels: levels(o.bound, m), ByNode: q.byNode(m.trial)}
	x.Stages = sumUpStages(q.stages, o.bound, m, x.Calls)
	x.Worst = q.worst(m)
	if n := len(x.Calls); n > 0 {
		x.Failed, x.Away = x.Calls[n-1].Failed-x.Calls[0].Failed, x.Calls[n-1].Away-x.Calls[0].Away
	}
	if x.Away > 0 || x.Failed > 0 {
		q.result.note("%.0f calls to Redis failed or came too late, and nodes served %s without it: meanwhile each admits its share alone, "+
			"and the bound is not promised", x.Failed, inSeconds.format(x.Away))
	}
	admitted, allowed := 0.0, float64(o.bound.burst)
	for _, s := range x.Stages {
		if s.Saturated {
			lower(v, "utilisation_stage", s.Utilisation)
		}
		if !s.Calm {
			continue
		}
		admitted, allowed = admitted+float64(s.Admitted), allowed+float64(o.bound.rate)*s.Seconds
		if !q.sampler.blind() {
			v["redis_room_calls"] = max(v["redis_room_calls"], s.RoomCalls)
			v["redis_user_calls"] = max(v["redis_user_calls"], s.UserCalls)
		}
	}
	v["utilisation"] = admitted / allowed
	v["evidence_differs"] = float64(x.Proof.Differ + x.Proof.Refused)
	return x
}

// lower keeps the least.
func lower(v map[string]float64, name string, x float64) {
	if old, ok := v[name]; !ok || x < old {
		v[name] = x
	}
}

// sumUpStages walks once through the stamps with the exact bucket, full at the start.
func sumUpStages(stages []stage, b bound, m *measured, calls []RedisCalls) []QuotaStage {
	start := m.trial.start.UnixMilli()
	k, stamps := newBucket(b, start), m.figures.stamps
	var out []QuotaStage
	for _, s := range stages {
		x := QuotaStage{Name: s.name, About: s.about, At: s.begins.Seconds(), Seconds: s.phase.lasts.Seconds(), Saturated: s.saturated, Calm: s.calm,
			Attempts: attemptsBetween(m.trial.due, int64(s.begins), int64(s.begins+s.phase.lasts))}
		x.Demand = float64(x.Attempts) / x.Seconds
		k.advance(max(k.last, start+s.begins.Milliseconds()))
		x.Level = max(0, min(messages(k.level), b.burst))
		for end := start + (s.begins + s.phase.lasts).Milliseconds(); len(stamps) > 0 && stamps[0] < end; stamps = stamps[1:] {
			x.Excess = max(x.Excess, -messages(k.take(max(k.last, stamps[0]))))
			x.Admitted++
		}
		x.Allowed = x.Level + b.rate*s.phase.lasts.Milliseconds()/1000
		end := start + (s.begins + s.phase.lasts).Milliseconds()
		k.advance(max(k.last, end))
		x.Left = min(messages(k.level), b.burst)
		if s.saturated {
			x.Utilisation = float64(x.Admitted) / max(float64(b.rate)*x.Seconds+float64(max(0, x.Level-x.Left)), 1)
		}
		c := callRates(calls, x.At, x.At+x.Seconds)
		x.RoomCalls, x.UserCalls, x.Scripts = c.Room, c.User, c.Scripts
		out = append(out, x)
	}
	return out
}

// attemptsBetween counts those due from one offset to another.
func attemptsBetween(due arrivals, from, to int64) int64 {
	lo, _ := slices.BinarySearch(due, from)
	hi, _ := slices.BinarySearch(due, to)
	return int64(hi - lo)
}

func evidence(t *trial) (e Evidence) {
	for k := range t.due {
		ts, ok := t.admission(k)
		if !ok {
			continue
		}
		heard := t.heard[k].Load()
		switch outcome(t.outcome[k].Load()) {
		case admitted, duplicate:
			e.Answered++
			if heard != 0 && heard != ts {
				e.Differ++
			}
		case limited, busy, rejected, degraded:
			e.Refused++
		default:
			e.Heard++
		}
	}
	return e
}

// levels is the exact bucket's least level, step by step: as many steps as a chart draws.
func levels(b bound, m *measured) []LevelPoint {
	stamps, start := m.figures.stamps, m.trial.start.UnixMilli()
	if len(stamps) == 0 {
		return nil
	}
	k, step := newBucket(b, start), max(20, (stamps[len(stamps)-1]-start)/(maxPoints-1))
	var out []LevelPoint
	for at := start; len(stamps) > 0; at += step {
		k.advance(max(k.last, at))
		least := k.level
		for ; len(stamps) > 0 && stamps[0] < at+step; stamps = stamps[1:] {
			least = min(least, k.take(max(k.last, stamps[0])))
		}
		out = append(out, LevelPoint{float64(at-start) / 1000, float64(least) / milli})
	}
	return out
}

// worst describes the window that comes closest to the bound, or exceeds it.
func (q *quotaRun) worst(m *measured) Window {
	b, t := q.o.bound, m.trial
	start := t.start.UnixMilli()
	from, to := b.worst(m.figures.stamps)
	w := Window{From: from - start, To: to - start, Allowed: b.within(to - from), ByNode: map[string]int64{}}
	for k := range t.due {
		if ts, ok := t.admission(k); ok && ts >= from && ts <= to {
			w.Admitted++
			if s := t.sender[k]; s != nil {
				w.ByNode[s.node]++
			}
		}
	}
	return w
}

// byNode counts what each node admitted, by the sender's node.
func (q *quotaRun) byNode(t *trial) []NodeSeries {
	start := t.start.UnixMilli()
	rows := map[string][]int64{}
	for k := range t.due {
		ts, ok := t.admission(k)
		if !ok || t.sender[k] == nil {
			continue
		}
		name, second := t.sender[k].node, max(0, int(ts-start)/1000)
		for len(rows[name]) <= second {
			rows[name] = append(rows[name], 0)
		}
		rows[name][second]++
	}
	var out []NodeSeries
	for name, row := range rows {
		out = append(out, NodeSeries{name, row})
	}
	slices.SortFunc(out, func(a, b NodeSeries) int { return strings.Compare(a.Node, b.Node) })
	return out
}

func (r *Result) quotaLines(w io.Writer) {
	q := r.Quota
	if q == nil {
		return
	}
	e := q.Proof
	fmt.Fprintf(w, "\nThe exact bucket: full at the start, drained by every admission of all nodes in the order of ts, and never below zero if no window\n"+
		"[a, b] of the run admits burst + rate·(b−a+1 ms): stamps are cut to milliseconds, so that the true window is shorter than that.\n")
	fmt.Fprintf(w, "evidence: %d admissions known by their answer, %d only by what others were shown; %d with two instants, %d shown although refused\n",
		e.Answered, e.Heard, e.Differ, e.Refused)
	if b := r.Bound; b != nil {
		verdict := "the bound held in every window"
		if b.Excess > 0 {
			verdict = fmt.Sprintf("THE BOUND WAS BROKEN by %d in the worst window", b.Excess)
		}
		if q.User != nil && q.User.Excess > 0 {
			verdict += fmt.Sprintf("; ONE USER'S by %d", q.User.Excess)
		}
		fmt.Fprintf(w, "%s: %d admitted of %d allowed from first to last (%.1f %%)\n", verdict, b.Admitted, b.Allowed, 100*b.Used)
		fmt.Fprintf(w, "closest window: %d ms to %d ms, %d admitted, %d allowed; by node %v\n", q.Worst.From, q.Worst.To, q.Worst.Admitted, q.Worst.Allowed, q.Worst.ByNode)
	}
}
