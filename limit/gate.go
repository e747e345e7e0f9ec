package limit

import (
	"sync"
	"sync/atomic"
)

// Gate decides by the rules in force. It is safe for concurrent use; a
// decision takes the locks of the subjects it is given and no other.
type Gate struct {
	clock   Clock
	current atomic.Pointer[generation]

	// mu orders changes of the rules and guards the counters' directory.
	mu       sync.Mutex
	counters map[counterKey]*counter
	tallies  map[string]*tally
}

// generation is a rule set in force. Each knows the next, so that a subject
// asked seldom follows every change in its order, and none is kept longer than
// the last subject that is still at it.
type generation struct {
	number  uint64
	rules   *Rules
	since   Instant
	tallies []*tally // by lists.id
	next    atomic.Pointer[generation]
}

// NewGate returns a Gate with rules in force since the clock's present.
func NewGate(rules *Rules, clock Clock) *Gate {
	g := &Gate{clock: clock, counters: map[counterKey]*counter{}, tallies: map[string]*tally{}}
	g.current.Store(&generation{rules: rules, since: clock(), tallies: g.talliesFor(rules)})
	return g
}

// Rules returns the set in force.
func (g *Gate) Rules() *Rules { return g.current.Load().rules }

// Now reads the Gate's clock.
func (g *Gate) Now() Instant { return g.clock() }

// Swap puts rules in force and reports true, unless their version is older
// than the one in force. Levels are kept: every bucket goes on with what it
// holds at this instant, at most the new burst.
func (g *Gate) Swap(rules *Rules) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.current.Load()
	if rules.version < old.rules.version {
		return false
	}
	next := &generation{
		number:  old.number + 1,
		rules:   rules,
		since:   g.clock(),
		tallies: g.talliesFor(rules),
	}
	old.next.Store(next)
	g.current.Store(next)
	return true
}

// Decide asks every rule that applies to q for the subjects given, at most one
// of each scope, and spends from all of them or from none. now is a reading
// of the Gate's clock. It does not allocate.
func (g *Gate) Decide(now Instant, q *Request, subjects ...*Subject) Decision {
	if q.Cost < 0 {
		return Decision{Verdict: Invalid}
	}
	for i := 1; i < len(subjects); i++ {
		if subjects[i-1].Scope >= subjects[i].Scope {
			return g.decideSorted(now, q, subjects)
		}
	}
	return g.decide(now, q, subjects)
}

func (g *Gate) decide(now Instant, q *Request, subjects []*Subject) Decision {
	for {
		gen := g.current.Load()
		t := trial{gen: gen, now: now, counted: q.Cost, simple: true}
		t.class = gen.rules.class(q.Role)
		t.lists = gen.rules.lists(q)
		if t.run(q, subjects) {
			return t.decision()
		}
	}
}

// decideSorted brings the subjects into the order of their locks.
func (g *Gate) decideSorted(now Instant, q *Request, subjects []*Subject) Decision {
	var byScope [scopeCount]*Subject
	for _, s := range subjects {
		if byScope[s.Scope] != nil {
			panic("limit: two subjects of scope " + s.Scope.String() + " in one decision")
		}
		byScope[s.Scope] = s
	}
	var sorted [scopeCount]*Subject
	n := 0
	for _, s := range byScope {
		if s != nil {
			sorted[n] = s
			n++
		}
	}
	return g.decide(now, q, sorted[:n])
}
