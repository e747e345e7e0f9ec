package limit

import "liveroom/internal/lock"

// Subject holds the buckets of one thing: a connection, a user, a user in a
// room, a room, a network. Embed it as a field of what it limits, so that it
// is found without a lookup and dies with its owner. The zero value with Scope
// set is ready: its buckets are at their initial level.
//
// A Subject belongs to one Gate, learns its rules at the first decision and
// follows the Gate's later sets with its levels kept. It is safe for
// concurrent use and must not be copied. It takes 56 bytes in its owner and,
// from the first decision until Full finds it at rest, 8 bytes and 8 more for
// each bucket elsewhere.
type Subject struct {
	// Scope is set before first use and fixed from then on.
	Scope Scope

	// mu is held for the length of a decision.
	mu lock.Mutex[lock.Subject]
	// here counts who is there, whatever the rules: see presence.
	here int32
	gen  *generation // the rules that the cells are of; nil before first use
	// cells begin with the epoch, an Instant; then each rule has its own.
	cells []int64
	// sharing is nil until a rule with cluster: true is asked.
	sharing *sharing
}

// epochCell is the cell that holds the epoch.
const epochCell = 0

// lock takes the subject's lock; several are taken in the order of their scopes.
func (s *Subject) lock() { s.mu.LockAt(int(s.Scope)) }

// Full tells whether every bucket is full at now, so that the owner may be
// forgotten: a new Subject in its place would decide the same. A full one
// gives its cells back, so asking is also how an owner that stays saves memory.
func (s *Subject) Full(now Instant) bool {
	s.lock()
	defer s.mu.Unlock()
	if s.gen == nil {
		return true
	}
	s.catchUpLocked()
	set := &s.gen.rules.scopes[s.Scope]
	t := s.atLocked(now)
	for _, r := range set.rules {
		if !r.full(s.cells[r.cell:], t) {
			return false
		}
	}
	if !s.sharing.restLocked(now) {
		return false
	}
	s.sharing.each(Part.Drop)
	s.sharing = nil
	if set.anew {
		s.gen, s.cells = nil, nil
	}
	return true
}

// Reset brings every bucket to its initial level, as an operator does who
// lifts a limit by hand.
// Where nodes share a bucket, it is filled for all of them, as far as
// none holds it; that has no effect while the store is away.
func (s *Subject) Reset() {
	s.lock()
	defer s.mu.Unlock()
	s.sharing.each(Part.Fill)
	s.gen, s.cells = nil, nil
}

// bindLocked brings the cells to gen. It reports false when the subject has
// already followed a later one.
func (s *Subject) bindLocked(gen *generation, now Instant) bool {
	if s.gen == nil {
		s.gen, s.cells = gen, gen.rules.scopes[s.Scope].newCells(now)
		if s.sharing != nil && s.sharing.rules != gen.rules {
			s.sharing.followLocked(s, gen.rules) // Reset came before the change
		}
		return true
	}
	if s.gen.number > gen.number {
		return false
	}
	for s.gen != gen {
		s.followLocked(s.gen.next.Load())
	}
	return true
}

// catchUpLocked follows every change of the rules there was.
func (s *Subject) catchUpLocked() {
	for next := s.gen.next.Load(); next != nil; next = s.gen.next.Load() {
		s.followLocked(next)
	}
}

// followLocked takes the cells over to the next rule set at the instant that
// one came into force. A rule of the same name keeps its level.
func (s *Subject) followLocked(next *generation) {
	if s.sharing != nil {
		s.sharing.followLocked(s, next.rules)
	}
	set := &next.rules.scopes[s.Scope]
	t := max(s.atLocked(next.since), 0)
	fresh := set.newCells(Instant(s.cells[epochCell] + t))
	for _, r := range set.rules {
		if was, ok := s.gen.rules.byName[r.name]; ok && was.scope == s.Scope {
			r.takeOver(fresh[r.cell:], was, s.cells[was.cell:], t)
		}
	}
	s.gen, s.cells = next, fresh
}

// atLocked returns the nanoseconds from the epoch to now, within the reach of
// the scope's meters. It moves the epoch when now has left it behind; a reading
// that far in the past counts as the reach's beginning.
func (s *Subject) atLocked(now Instant) int64 {
	t, inSpan := ticks(Instant(s.cells[epochCell]), now, s.gen.rules.scopes[s.Scope].reach)
	if !inSpan {
		s.advanceLocked(now)
		return 0
	}
	return t
}

// advanceLocked moves the epoch to now.
func (s *Subject) advanceLocked(now Instant) {
	ahead := uint64(now) - uint64(s.cells[epochCell])
	for _, r := range s.gen.rules.scopes[s.Scope].rules {
		r.shift(s.cells[r.cell:], ahead)
	}
	s.cells[epochCell] = int64(now)
}

// newCells returns the cells of a subject that nobody has asked before.
func (set *scopeRules) newCells(now Instant) []int64 {
	cells := make([]int64, set.cells)
	cells[epochCell] = int64(now)
	for _, r := range set.rules {
		r.start(cells[r.cell:], now)
	}
	return cells
}
