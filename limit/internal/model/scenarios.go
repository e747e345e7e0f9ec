package model

import (
	"math"
	"time"

	"liveroom/limit"
)

// flat is a load that is the same at all nodes, altogether times the rate of
// the bound at each subject.
func flat(b Bound, nodes int, times float64) func(time.Duration, int, int) float64 {
	each := times * b.perSecond() / float64(nodes)
	return func(time.Duration, int, int) float64 { return each }
}

// one gives a single node all of it.
func one(b Bound, times float64) func(time.Duration, int, int) float64 {
	return func(_ time.Duration, node, _ int) float64 {
		if node == 0 {
			return times * b.perSecond()
		}
		return 0
	}
}

// moving gives one node all of it, another each second.
func moving(b Bound, nodes int, times float64) func(time.Duration, int, int) float64 {
	return func(at time.Duration, node, _ int) float64 {
		if int(at/time.Second)%nodes == node {
			return times * b.perSecond()
		}
		return 0
	}
}

// skewed gives node i a share of 1/(i+1), as ranks of popularity are (Zipf).
func skewed(b Bound, nodes int, times float64) func(time.Duration, int, int) float64 {
	total := 0.0
	for i := range nodes {
		total += 1 / float64(i+1)
	}
	return func(_ time.Duration, node, subject int) float64 {
		return times * b.perSecond() / float64((node+subject)%nodes+1) / total
	}
}

// pulse is calm at a tenth of the rate and fifty times that for two seconds of
// each five.
func pulse(b Bound, nodes int) func(time.Duration, int, int) float64 {
	return func(at time.Duration, _, _ int) float64 {
		each := 0.1 * b.perSecond() / float64(nodes)
		if at%(5*time.Second) >= 3*time.Second {
			return 50 * each
		}
		return each
	}
}

func (b Bound) perSecond() float64 { return float64(b.Rate) * float64(time.Second) / float64(b.Per) }

// Bounds of the rules that ship: a room's danmaku by tier, a user's in a room.
var (
	danmaku = Bound{Burst: 200, Rate: 200, Per: time.Second}
	crowded = Bound{Burst: 80, Rate: 40, Per: time.Second}
	likes   = Bound{Burst: 2000, Rate: 1000, Per: time.Second}
	person  = Bound{Burst: 3, Rate: 1, Per: time.Second}
)

// Catalogue lists the scenarios, each length long where its events leave it free.
func Catalogue(length time.Duration) []Scenario {
	rooms := 24
	if length < 20*time.Second {
		rooms = 4
	}
	list := append(loads(rooms), faults(length)...)
	return append(list, users(length)...)
}

// loads are about a healthy store.
func loads(rooms int) []Scenario {
	full := Want{Utilisation: 0.98, Calls: 150}
	return []Scenario{
		{Name: "3 nodes, demand 1.2", Bound: danmaku, Nodes: 3, Load: flat(danmaku, 3, 1.2), Want: full},
		{Name: "3 nodes, demand 10", Bound: danmaku, Nodes: 3, Load: flat(danmaku, 3, 10), Want: full},
		{Name: "3 nodes, 1000/s, demand 1.2", Bound: likes, Nodes: 3, Load: flat(likes, 3, 1.2), Want: full},
		{Name: "3 nodes, one has all", Bound: danmaku, Nodes: 3, Load: one(danmaku, 1.2), Want: full},
		{Name: "3 nodes, hot one moves", Bound: danmaku, Nodes: 3, Load: moving(danmaku, 3, 1.2), Want: full},
		{Name: "3 nodes, pulse 50x", Bound: danmaku, Nodes: 3, Load: pulse(danmaku, 3), Want: full},
		{Name: "3 nodes, 40/s, demand 3", Bound: crowded, Nodes: 3, Load: flat(crowded, 3, 3), Want: Want{Calls: 150}},
		{Name: "20 nodes, demand 1.2", Bound: danmaku, Nodes: 20, Load: flat(danmaku, 20, 1.2), Want: Want{Utilisation: 0.98, NodeCalls: 50}},
		{Name: "20 nodes, skewed, demand 2", Bound: danmaku, Nodes: 20, Load: skewed(danmaku, 20, 2), Want: Want{Utilisation: 0.98, NodeCalls: 50}},
		{Name: "20 nodes, hot one moves", Bound: danmaku, Nodes: 20, Load: moving(danmaku, 20, 1.2), Want: Want{Utilisation: 0.98, NodeCalls: 50}},
		{Name: "20 nodes, pulse 50x", Bound: danmaku, Nodes: 20, Load: pulse(danmaku, 20), Want: Want{Utilisation: 0.98, NodeCalls: 50}},
		{Name: "8 nodes, many rooms, 2 shards", Bound: danmaku, Nodes: 8, Subjects: rooms, Servers: 2, Load: skewed(danmaku, 8, 1.2), Want: Want{Utilisation: 0.98, NodeCalls: 50}},
		{Name: "3 nodes, far store (5 ms)", Bound: danmaku, Nodes: 3, Load: flat(danmaku, 3, 1.2), Want: full,
			Wire: Wire{Delay: 4 * time.Millisecond, Jitter: time.Millisecond}},
		{Name: "3 nodes, clocks drift", Bound: danmaku, Nodes: 3, Drift: 200, Load: flat(danmaku, 3, 1.2), Want: full},
	}
}

// faults are about what befalls nodes, wires and servers.
func faults(length time.Duration) []Scenario {
	const second, lag = time.Second, 200 * time.Millisecond
	at := func(share float64) time.Duration {
		return time.Duration(math.Round(share * float64(length)))
	}
	steady := flat(danmaku, 3, 1.2)
	steps := []time.Duration{time.Hour, -time.Hour, 300 * time.Millisecond, -300 * time.Millisecond}
	var stepping []Event
	for i, by := range steps {
		stepping = append(stepping, Event{At: at(0.2 + 0.2*float64(i)), Do: func(w *World) {
			w.Server(0).Step(by)
		}})
	}
	return []Scenario{
		{Name: "lossy wire", Bound: danmaku, Nodes: 3, Load: steady,
			Wire: Wire{Delay: 300 * time.Microsecond, Jitter: 200 * time.Microsecond, Lost: 0.01, Unheard: 0.01, Reset: 0.01}},
		{Name: "late and doubled calls", Bound: danmaku, Nodes: 3, Load: pulse(danmaku, 3),
			Wire: Wire{Delay: 300 * time.Microsecond, Jitter: 500 * time.Microsecond, Late: 0.02, Twice: 0.05, StallMean: 300 * time.Millisecond}},
		{Name: "server clock steps", Bound: danmaku, Nodes: 3, Load: pulse(danmaku, 3), Events: stepping},
		{Name: "fail-over loses 200 ms", Bound: danmaku, Nodes: 3, Load: steady, Events: []Event{
			{At: at(0.5), Do: func(w *World) { w.Server(0).FailOver(lag, 300*time.Millisecond) }}}},
		{Name: "fail-over in a pulse", Bound: danmaku, Nodes: 3, Load: pulse(danmaku, 3), Events: []Event{
			{At: 3*second + 100*time.Millisecond, Do: func(w *World) { w.Server(0).FailOver(lag, -3*second) }}}},
		{Name: "empty restart", Bound: danmaku, Nodes: 3, Load: steady, Events: []Event{
			{At: at(0.5), Do: func(w *World) { w.Server(0).Wipe() }}}},
		{Name: "store hangs 2 s", Bound: danmaku, Nodes: 3, Load: steady, Events: []Event{
			{At: at(0.3), Do: func(w *World) { w.Server(0).Hang(true) }},
			{At: at(0.3) + 2*second, Do: func(w *World) { w.Server(0).Hang(false) }}}},
		{Name: "store down 2 s", Bound: danmaku, Nodes: 3, Load: steady, Events: []Event{
			{At: at(0.3), Do: func(w *World) { w.Server(0).Refuse(true) }},
			{At: at(0.3) + 2*second, Do: func(w *World) { w.Server(0).Wipe() }}}},
		{Name: "one node cut off 2 s", Bound: danmaku, Nodes: 3, Load: steady, Events: []Event{
			{At: at(0.3), Do: func(w *World) { w.Node(1).Cut(true) }},
			{At: at(0.3) + 2*second, Do: func(w *World) { w.Node(1).Cut(false) }}}},
		{Name: "nodes join, leave, pause, die", Bound: danmaku, Nodes: 5, NodesEver: 8, Load: flat(danmaku, 5, 1.5), Events: []Event{
			{At: at(0.1), Do: func(w *World) { w.Start(5) }},
			{At: at(0.2), Do: func(w *World) { w.Node(0).Pause() }},
			{At: at(0.3), Do: func(w *World) { w.Start(6) }},
			{At: at(0.4), Do: func(w *World) { w.Node(1).Leave() }},
			{At: at(0.45), Do: func(w *World) { w.Node(0).Resume() }},
			{At: at(0.5), Do: func(w *World) { w.Node(2).Kill() }},
			{At: at(0.6), Do: func(w *World) { w.Start(2) }},
			{At: at(0.7), Do: func(w *World) { w.Start(7) }},
			{At: at(0.8), Do: func(w *World) { w.Node(3).Pause() }},
			{At: at(0.85), Do: func(w *World) { w.Node(3).Resume() }}}},
	}
}

// users are about buckets that have a home.
func users(length time.Duration) []Scenario {
	at := func(share float64) time.Duration { return time.Duration(share * float64(length)) }
	return []Scenario{
		{Name: "50 users, each on one node", Scope: limit.ScopeUser, Bound: person, Nodes: 3, Subjects: 50,
			Speaks: func(node, subject int) bool { return subject%3 == node },
			Load:   flat(person, 1, 2), Want: Want{Utilisation: 0.98, Calls: 0.5}},
		{Name: "20 users, each on 3 nodes", Scope: limit.ScopeUser, Bound: person, Nodes: 3, Subjects: 20, Load: flat(person, 3, 3)},
		{Name: "20 users who move", Scope: limit.ScopeUser, Bound: person, Nodes: 3, Subjects: 20, Load: moving(person, 3, 4)},
		{Name: "users' home dies", Scope: limit.ScopeUser, Bound: person, Nodes: 3, Subjects: 20,
			Load: func(t time.Duration, node, _ int) float64 {
				if home := t < at(0.4); home == (node == 0) {
					return 2
				}
				return 0
			},
			Events: []Event{{At: at(0.4), Do: func(w *World) { w.Node(0).Kill() }}, {At: at(0.5), Do: func(w *World) { w.Start(0) }}}},
		{Name: "users' home pauses", Scope: limit.ScopeUser, Bound: person, Nodes: 3, Subjects: 20, Load: flat(person, 3, 3), Events: []Event{
			{At: at(0.3), Do: func(w *World) { w.Node(0).Pause() }}, {At: at(0.8), Do: func(w *World) { w.Node(0).Resume() }}}},
	}
}
