package model

import (
	"fmt"
	"math/rand/v2"
	"time"

	"liveroom/limit"
)

// Random draws a scenario: a bound, nodes, rooms, a load and what befalls them.
// The same seed draws the same.
func Random(seed uint64, length time.Duration) Scenario {
	r := newStream(seed, purposeScenario, 0).rand
	s := Scenario{
		Name:     fmt.Sprintf("random %d", seed),
		Seed:     seed,
		Bound:    pick(r, danmaku, crowded, likes, Bound{Burst: 20, Rate: 20, Per: time.Second}, Bound{Burst: 7, Rate: 100, Per: 7 * time.Second}),
		Nodes:    2 + r.IntN(7),
		Subjects: 1 + r.IntN(3),
		Servers:  1 + r.IntN(2),
		Length:   length,
		Wire:     Wire{Delay: time.Duration(r.IntN(3000)) * time.Microsecond, Jitter: time.Duration(1+r.IntN(2000)) * time.Microsecond},
	}
	if r.IntN(8) == 0 {
		s.Nodes = 20
	}
	if r.IntN(4) == 0 {
		s.Scope, s.Bound, s.Subjects = limit.ScopeUser, pick(r, person, Bound{Burst: 20, Rate: 20, Per: 30 * time.Second}), 8
	}
	if r.IntN(3) == 0 {
		s.Drift = int64(r.IntN(300))
	}
	s.NodesEver = s.Nodes + 2
	times := 0.3 + 4*r.Float64()*r.Float64()
	if r.IntN(6) == 0 && s.Bound.Rate < 1000 {
		times = 30
	}
	s.Load = pick(r, flat(s.Bound, s.Nodes, times), one(s.Bound, times), moving(s.Bound, s.Nodes, times),
		skewed(s.Bound, s.Nodes, times), pulse(s.Bound, s.Nodes))
	for _, chance := range []*float64{&s.Wire.Lost, &s.Wire.Unheard, &s.Wire.Reset, &s.Wire.Late, &s.Wire.Twice} {
		if r.IntN(3) == 0 {
			*chance = 0.05 * r.Float64() * r.Float64()
		}
	}
	s.Wire.StallMean = time.Duration(1+r.IntN(1000)) * time.Millisecond
	for range r.IntN(6) {
		s.Events = append(s.Events, s.mishap(r)...)
	}
	return s
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// mishap draws something that the bound must survive.
func (s *Scenario) mishap(r *rand.Rand) []Event {
	at := time.Duration(r.Int64N(int64(s.Length)))
	later := at + time.Duration(r.Int64N(int64(3*time.Second)))
	node, shard := r.IntN(s.Nodes), r.IntN(s.Servers)
	switch r.IntN(6) {
	case 0:
		by := time.Duration(r.Int64N(int64(4*time.Second))) - 2*time.Second
		if r.IntN(2) == 0 {
			by *= 3600
		}
		return []Event{{at, func(w *World) { w.Server(shard).Step(by) }}}
	case 1:
		return []Event{
			{at, func(w *World) { w.Node(node).Pause() }},
			{later, func(w *World) { w.Node(node).Resume() }}}
	case 2:
		return []Event{
			{at, func(w *World) { w.Node(node).Kill() }},
			{later, func(w *World) { w.revive(node) }}}
	case 3:
		return []Event{{at, func(w *World) { w.Node(node).Leave() }}, {later, func(w *World) { w.revive(node) }}}
	case 4:
		number := s.Nodes + r.IntN(2)
		return []Event{{at, func(w *World) { w.revive(number) }}}
	}
	lag := time.Duration(r.Int64N(int64(time.Second / 2)))
	by := time.Duration(r.Int64N(int64(time.Second))) - time.Second/2
	return []Event{{at, func(w *World) { w.Server(shard).FailOver(lag, by) }}}
}

// revive starts a node's next process when none of that number serves.
func (w *World) revive(number int) {
	if w.alive(number) == nil {
		w.Start(number)
	}
}
