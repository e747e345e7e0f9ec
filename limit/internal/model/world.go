package model

import (
	"context"
	"slices"
	"sync"
	"time"

	"liveroom/limit"
)

// World is one run of a scenario: servers, nodes, traffic, and the record of
// what was admitted. It lives in a synctest bubble, whose clock is the true one.
type World struct {
	scenario *Scenario
	start    time.Time
	servers  []*server
	central  *central
	rules    *limit.Rules
	busy     sync.WaitGroup // pipelines under way

	mu      sync.Mutex
	started int
	nodes   []*Node          // in the order of their start
	book    map[int]*account // by subject
	waits   []time.Duration
	// outages are when nodes took the store for away.
	outages []time.Duration
}

// account is what a subject was asked for and what was admitted.
type account struct {
	asked    []Admission // all messages, by when they came
	admitted []Admission // by when their tokens were taken
}

func (w *World) nodesNow() []*Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

// Node returns the i-th node that was started, from 0.
func (w *World) Node(i int) *Node { return w.nodesNow()[i] }

// Server returns the i-th server of the store, from 0.
func (w *World) Server(i int) *server { return w.servers[i] }

// record keeps what became of a message.
func (w *World) record(n *Node, subject int, cost int64, came time.Time, at time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.book[subject]
	if a == nil {
		a = &account{}
		w.book[subject] = a
	}
	a.asked = append(a.asked, Admission{At: came.Sub(w.start), Cost: cost, Node: n.number})
	if ok {
		a.admitted = append(a.admitted, Admission{At: at, Cost: cost, Node: n.number})
	}
	w.waits = append(w.waits, time.Since(came))
}

// Start starts a node and its traffic; number tells it from others, a node
// that was killed may be started again under its own.
func (w *World) Start(number int) *Node {
	s := w.scenario
	w.mu.Lock()
	nth := w.started
	w.started++
	w.mu.Unlock()
	n := &Node{number: number, nth: nth, world: w, origin: int64(nth+1) * 1_000_003_001}
	if s.Drift != 0 {
		n.drift = int64(nth%3-1) * s.Drift
	}
	n.link = &link{wire: s.Wire, node: n, rng: newStream(s.Seed, purposeLink, nth), busy: &w.busy}
	n.quota = s.Way.quota(n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = append(w.nodes, n)
	return n
}

// Run plays a scenario and returns what happened. It must be called in a
// synctest bubble, and leaves no goroutine behind.
func Run(s Scenario) *Result {
	s.setDefaults()
	w := &World{
		scenario: &s, start: time.Now(), rules: s.rules(),
		central: &central{bound: s.Bound, tallies: map[int]*tally{}},
		book:    map[int]*account{},
	}
	for i := range s.Servers {
		w.servers = append(w.servers, newServer("s"+string(rune('a'+i))))
	}
	for i := range s.Nodes {
		w.Start(i)
		time.Sleep(1_003 * time.Microsecond) // no two nodes tick together
	}
	var traffic sync.WaitGroup
	from := time.Since(w.start)
	for subject := range s.Subjects {
		for number := range s.NodesEver {
			if s.Speaks == nil || s.Speaks(number, subject) {
				traffic.Go(func() { w.speak(number, subject, from) })
			}
		}
	}
	for _, e := range s.Events {
		traffic.Go(func() {
			time.Sleep(from + e.At - time.Since(w.start))
			e.Do(w)
		})
	}
	traffic.Wait()
	for _, n := range w.nodesNow() {
		n.Resume()
	}
	for _, s := range w.servers {
		s.set(func(s *server) { s.refuses, s.silent = false, false })
	}
	var closing sync.WaitGroup
	for _, n := range w.nodesNow() {
		if n.serving() {
			closing.Go(n.Leave)
		} else if n.gone() {
			closing.Go(func() { n.quota.close(canceled()) })
		}
	}
	closing.Wait()
	w.busy.Wait()
	return w.result(from)
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
