package model

import (
	"fmt"
	"math/rand/v2"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// Random draws a scenario: a bound, nodes, rooms, a load and what befalls them.
// The same seed draws the same.
func Random(seed uint64, length time.Duration) Scenario {
	r := newStream(seed, purposeScenario, 0).rand
	s := Scenario{
		Name:     fmt.Sprintf("random %d", seed),
		Seed:     seed,
		Scope:    limit.ScopeRoom,
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
			*chance = 0.02 * r.Float64() * r.Float64()
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
	event := func(at time.Duration, do func(*World), what string, args ...any) Event {
		return Event{At: at, Do: do, What: fmt.Sprintf(what, args...)}
	}
	switch r.IntN(6) {
	case 0:
		by := time.Duration(r.Int64N(int64(4*time.Second))) - 2*time.Second
		if r.IntN(2) == 0 {
			by *= 3600
		}
		s.Want.Extra += s.Bound.minted(by)
		return []Event{event(at, func(w *World) { w.Server(shard).Step(by) }, "server %d steps by %v", shard, by)}
	case 1:
		return []Event{
			event(at, func(w *World) { w.Node(node).Pause() }, "node %d stops", node),
			event(later, func(w *World) { w.Node(node).Resume() }, "node %d goes on", node)}
	case 2:
		return []Event{
			event(at, func(w *World) { w.Node(node).Kill() }, "node %d dies", node),
			event(later, func(w *World) { w.revive(node) }, "node %d is back", node)}
	case 3:
		return []Event{
			event(at, func(w *World) { w.Node(node).Leave() }, "node %d leaves", node),
			event(later, func(w *World) { w.revive(node) }, "node %d is back", node)}
	case 4:
		number := s.Nodes + r.IntN(2)
		return []Event{event(at, func(w *World) { w.revive(number) }, "node %d joins", number)}
	}
	lag := time.Duration(r.Int64N(int64(time.Second / 2)))
	by := time.Duration(r.Int64N(int64(time.Second))) - time.Second/2
	s.Want.Extra += s.Bound.minted(by)
	return []Event{event(at, func(w *World) { w.Server(shard).FailOver(lag, by) }, "server %d fails over, losing %v, clock %v", shard, lag, by)}
}

// minted is what a step of the server's clock is documented to give: nothing
// when it goes back; its time's worth when it is too small to be told from a
// late call; and when it is large, keys expire, so that who comes first before
// the next beat, and had no part in the key, finds it new.
func (b Bound) minted(step time.Duration) int64 {
	switch {
	case step <= 0:
		return 0
	case step <= cluster.Tolerance:
		return (b.inflow(step, 1<<62) + int64(b.Per) - 1) / int64(b.Per)
	}
	return b.Burst
}

// revive starts a node's next process when none of that number serves.
func (w *World) revive(number int) {
	if w.alive(number) == nil {
		w.Start(number)
	}
}
