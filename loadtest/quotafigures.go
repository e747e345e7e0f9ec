package main

import (
	"slices"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/report"
)

// sumUp puts the stages' figures together.
func (q *quotaRun) sumUp(m *measured) *report.Quota {
	o, v := q.o, q.result.Values
	x := &report.Quota{Rate: o.bound.rate, Burst: o.bound.burst, Nodes: len(o.urls), Proof: evidence(m.trial), Worst: q.worst(m),
		Stages: sumUpStages(q.stages, o.bound, m, q.calls)}
	first, last := q.calls[0], q.calls[len(q.calls)-1]
	x.Failed, x.Away = last.failed-first.failed, last.away-first.away
	if x.Away > 0 || x.Failed > 0 {
		q.result.Note("%.0f calls to Redis failed or came too late, and nodes served %s without it: meanwhile each admits its share alone, "+
			"and the bound is not promised", x.Failed, report.InSeconds.Format(x.Away))
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

// sumUpStages walks once through the stamps with the exact bucket, full at the start. Calls are those at the stages' begins and
// at the end; a run that was cut short has fewer.
func sumUpStages(stages []stage, b bound, m *measured, calls []redisCalls) []report.QuotaStage {
	start := m.trial.Start.UnixMilli()
	k, stamps := newBucket(b, start), m.stamps
	var out []report.QuotaStage
	for i, s := range stages {
		x := report.QuotaStage{Name: s.name, About: s.about, At: s.begins.Seconds(), Seconds: s.phase.Lasts.Seconds(), Saturated: s.saturated, Calm: s.calm,
			Attempts: attemptsBetween(m.trial.Due, int64(s.begins), int64(s.begins+s.phase.Lasts))}
		x.Demand = float64(x.Attempts) / x.Seconds
		end := start + (s.begins + s.phase.Lasts).Milliseconds()
		k.advance(max(k.last, start+s.begins.Milliseconds()))
		x.Level = max(0, min(messages(k.level), b.burst))
		for ; len(stamps) > 0 && stamps[0] < end; stamps = stamps[1:] {
			x.Excess = max(x.Excess, -messages(k.take(max(k.last, stamps[0]))))
			x.Admitted++
		}
		x.Allowed = x.Level + b.rate*s.phase.Lasts.Milliseconds()/1000
		k.advance(max(k.last, end))
		x.Left = min(messages(k.level), b.burst)
		if s.saturated {
			x.Utilisation = float64(x.Admitted) / max(float64(b.rate)*x.Seconds+float64(max(0, x.Level-x.Left)), 1)
		}
		if i+1 < len(calls) {
			x.RoomCalls, x.UserCalls = calls[i].rates(calls[i+1])
		}
		out = append(out, x)
	}
	return out
}

// attemptsBetween counts those due from one offset to another.
func attemptsBetween(due client.Arrivals, from, to int64) int64 {
	lo, _ := slices.BinarySearch(due, from)
	hi, _ := slices.BinarySearch(due, to)
	return int64(hi - lo)
}

func evidence(t *client.Trial) (e report.Evidence) {
	for k := range t.Due {
		ts, ok := t.Admission(k)
		if !ok {
			continue
		}
		heard := t.Heard[k].Load()
		switch client.Outcome(t.Outcome[k].Load()) {
		case client.Admitted, client.Duplicate:
			e.Answered++
			if heard != 0 && heard != ts {
				e.Differ++
			}
		case client.Limited, client.Busy, client.Rejected, client.Degraded:
			e.Refused++
		default:
			e.Heard++
		}
	}
	return e
}

// worst describes the window that comes closest to the bound, or exceeds it.
func (q *quotaRun) worst(m *measured) report.Window {
	b, t := q.o.bound, m.trial
	start := t.Start.UnixMilli()
	from, to := b.worst(m.stamps)
	w := report.Window{From: from - start, To: to - start, Allowed: b.within(to - from), ByNode: map[string]int64{}}
	for k := range t.Due {
		if ts, ok := t.Admission(k); ok && ts >= from && ts <= to {
			w.Admitted++
			if s := t.Sender[k]; s != nil {
				w.ByNode[s.Node]++
			}
		}
	}
	return w
}
