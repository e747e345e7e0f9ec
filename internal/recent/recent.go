// Package recent keeps what a node's limits decided over the last ten minutes, and whom they refused most, so that
// whoever opens the operator's page sees what led to the moment.
//
// The one idea: counters are read once a step, and what each grew by goes into a ring. Steps are counted back from the
// newest, never by a clock, so that several nodes' rings can be laid over one another (see [Merge]).
//
// Concurrency: a [Ring] and a [Top] are safe for concurrent use; neither starts a goroutine.
package recent

import (
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

const (
	// Step is how long one place of the ring is: Ring.Take is called as often.
	Step = 5 * time.Second
	// Steps is how many of them are kept.
	Steps = int(Window / Step)
	// Window is how far back a node remembers.
	Window = 10 * time.Minute
)

// Traffic is a ring as it is told; slices end with the newest step, and are as long as there were steps.
type Traffic struct {
	StepMS  int64              `json:"step_ms"`
	Nodes   int                `json:"nodes"` // whose it is
	Series  []Series           `json:"series"`
	Figures map[string][]int64 `json:"figures"` // by name
	Changes []Change           `json:"changes"` // of the rules in force, oldest first
	Top     []Refused          `json:"top"`     // who was refused most, at most [TopUsers]
}

// Series is what one rule made of one action's requests: how many met the outcome in each step.
type Series struct {
	Rule    string  `json:"rule"`
	Scope   string  `json:"scope"`
	Action  string  `json:"action"`
	Outcome string  `json:"outcome"`
	N       []int64 `json:"n"`
}

// Change is a set of rules that came into force.
type Change struct {
	AgeMS   int64  `json:"age_ms"`
	Version uint64 `json:"version"`
	Kind    string `json:"kind"`
}

// Reading is what a node's counters say at one instant.
type Reading struct {
	Counts  []limit.Count
	Totals  map[string]int64 // figures that only grow
	Gauges  map[string]int64 // figures as they are
	Version uint64
	Kind    string // of that version
}

type key struct{ rule, scope, action, outcome string }

type change struct {
	step    int
	version uint64
	kind    string
}

// Ring keeps the last [Steps] steps.
type Ring struct {
	mu      lock.Mutex[lock.Leaf]
	taken   int // readings so far; the first one only begins the second's step
	last    map[key]int64
	totals  map[string]int64
	series  map[key][]int64 // rings of Steps places, by step
	figures map[string][]int64
	changes []change
	version uint64
}

// NewRing returns a Ring without a step.
func NewRing() *Ring {
	return &Ring{series: map[key][]int64{}, figures: map[string][]int64{}}
}

// Take ends a step with a reading.
func (r *Ring) Take(now Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.taken % Steps
	last := make(map[key]int64, len(now.Counts))
	for _, ring := range r.series {
		ring[at] = 0
	}
	for _, c := range now.Counts {
		k := key{c.Rule, c.Scope, c.Action, c.Outcome}
		last[k] = c.N
		if n := growth(r.last[k], c.N); n > 0 && r.taken > 0 {
			place(r.series, k)[at] = n
		}
	}
	for name, total := range now.Totals {
		place(r.figures, name)[at] = growth(r.totals[name], total)
	}
	for name, value := range now.Gauges {
		place(r.figures, name)[at] = value
	}
	for k, ring := range r.series {
		if !slices.ContainsFunc(ring, func(n int64) bool { return n != 0 }) {
			delete(r.series, k)
		}
	}
	if r.taken > 0 && now.Version != r.version {
		r.changes = append(r.changes, change{r.taken, now.Version, now.Kind})
	}
	r.changes = slices.DeleteFunc(r.changes, func(c change) bool { return c.step <= r.taken-Steps })
	r.last, r.totals, r.version = last, now.Totals, now.Version
	r.taken++
}

// growth is what a counter rose by; one that fell began anew.
func growth(before, now int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

func place[K comparable](rings map[K][]int64, k K) []int64 {
	if rings[k] == nil {
		rings[k] = make([]int64, Steps)
	}
	return rings[k]
}

// Traffic tells what is kept.
func (r *Ring) Traffic() Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Traffic{StepMS: Step.Milliseconds(), Nodes: 1, Series: []Series{}, Figures: map[string][]int64{}, Changes: []Change{}}
	for k, ring := range r.series {
		t.Series = append(t.Series, Series{k.rule, k.scope, k.action, k.outcome, r.unroll(ring)})
	}
	for name, ring := range r.figures {
		t.Figures[name] = r.unroll(ring)
	}
	for _, c := range r.changes {
		t.Changes = append(t.Changes, Change{int64(r.taken-1-c.step) * Step.Milliseconds(), c.version, c.kind})
	}
	return t
}

// unroll returns a ring's steps, oldest first. The very first reading is no step.
func (r *Ring) unroll(ring []int64) []int64 {
	n := min(max(r.taken-1, 0), Steps)
	out := make([]int64, n)
	for i := range out {
		out[i] = ring[(r.taken-n+i)%Steps]
	}
	return out
}
