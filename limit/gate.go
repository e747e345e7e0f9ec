package limit

import (
	"sync/atomic"

	"liveroom/internal/lock"
)

// Gate decides by the rules in force. It is safe for concurrent use; a
// decision takes the locks of the subjects it is given and no other.
type Gate struct {
	clock   Clock
	current atomic.Pointer[generation]
	// sharer is nil while this node is the only one; fixed before first use.
	sharer Sharer
	// observer is nil while nobody looks on.
	observer atomic.Pointer[Observer]

	// mu orders changes of the rules and guards the counters' directory.
	mu       lock.Mutex[lock.Gate]
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
	// shared is all ones when other nodes are to be asked, else 0.
	shared uint16
	next   atomic.Pointer[generation]
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
// than the one in force. What was used stays used: every bucket goes on with
// its new limit less that, at this instant.
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
		shared:  old.shared,
	}
	old.next.Store(next)
	g.current.Store(next)
	return true
}

// Release gives back the slots that concurrency rules gave q at the instant
// taken, which was passed to Decide with the same request and subjects; a socket
// or a member has left then. Call it exactly once for each decision that was not
// a rejection, deferred, so that a panic gives them back as well. It changes
// nothing where no rule for the action counts slots.
func (g *Gate) Release(taken Instant, q *Request, subjects ...*Subject) {
	for _, s := range subjects {
		s.release(taken, g, q)
	}
}

func (s *Subject) release(taken Instant, g *Gate, q *Request) {
	s.lock()
	defer s.mu.Unlock()
	s.exitLocked(q.Action)
	if s.gen == nil {
		return
	}
	s.catchUpLocked()
	rules := s.gen.rules
	at := int64(taken) - s.cells[epochCell]
	for _, r := range rules.lists(q).of[s.Scope].rules {
		if m, ok := r.meter.(*slots); ok {
			m.release(s.cells[r.cell:], at, r.cost(q))
			if s.sharing != nil && r.quota != nil {
				if p, ok := s.sharing.parts[r.quota.first].(SlotPart); ok {
					p.Release(taken, g.clock())
				}
			}
		}
	}
}
