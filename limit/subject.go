package limit

import "sync"

// Subject holds the buckets of one thing: a connection, a user, a user in a
// room, a room, a network. Embed it as a field of what it limits, so that it
// is found without a lookup and dies with its owner. The zero value with Scope
// set is ready: its buckets are at their initial level.
//
// A Subject belongs to one Gate, learns its rules at the first decision and
// follows the Gate's later sets with its levels kept. It is safe for
// concurrent use and must not be copied. Its state is one int64 for most
// buckets, allocated at first use.
type Subject struct {
	// Scope is set before first use and fixed from then on.
	Scope Scope

	// mu is held for the length of a decision. Order: by Scope, ascending.
	mu    sync.Mutex
	state *state
}

// state is what a subject keeps once it was asked.
type state struct {
	gen   *generation
	epoch Instant
	cells []int64
}

// Full tells whether every bucket is full at now, so that the owner may be
// forgotten: a new Subject in its place would decide the same.
func (s *Subject) Full(now Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	if st == nil {
		return true
	}
	for next := st.gen.next.Load(); next != nil; next = st.gen.next.Load() {
		st.follow(next, s.Scope)
	}
	t := st.at(now, s.Scope)
	for _, r := range st.gen.rules.scopes[s.Scope].rules {
		if !r.fullAt(st.cells[r.cell:], t) {
			return false
		}
	}
	return true
}

// Reset fills every bucket, as an operator does who lifts a limit by hand.
func (s *Subject) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = nil
}

// bindLocked brings the state to gen. It reports false when the subject has
// already followed a later one.
func (s *Subject) bindLocked(gen *generation, now Instant) bool {
	st := s.state
	if st == nil {
		s.state = newState(gen, now, s.Scope)
		return true
	}
	if st.gen.number > gen.number {
		return false
	}
	for st.gen != gen {
		st.follow(st.gen.next.Load(), s.Scope)
	}
	return true
}

func newState(gen *generation, now Instant, scope Scope) *state {
	set := &gen.rules.scopes[scope]
	st := &state{gen: gen, epoch: now, cells: make([]int64, set.cells)}
	for _, r := range set.rules {
		r.start(st.cells[r.cell:])
	}
	return st
}

// follow takes the state over to the next rule set at the instant that one
// came into force. A rule of the same name keeps its level.
func (st *state) follow(next *generation, scope Scope) {
	old, set := st.gen, &next.rules.scopes[scope]
	fresh := newState(next, next.since, scope)
	t := st.at(next.since, scope)
	for _, r := range set.rules {
		if was, ok := old.rules.byName[r.name]; ok && was.scope == scope {
			r.takeOver(fresh.cells[r.cell:], was, st.cells[was.cell:], t)
		}
	}
	*st = *fresh
}

// at returns the nanoseconds from the epoch to now, within the span of the
// scope's rates. It moves the epoch when now has left it behind; a reading
// that far in the past counts as the span's beginning.
func (st *state) at(now Instant, scope Scope) int64 {
	set := &st.gen.rules.scopes[scope]
	t, inSpan := ticks(st.epoch, now, set.span)
	if !inSpan {
		st.advance(now, set)
		return 0
	}
	return t
}

// advance moves the epoch to now.
func (st *state) advance(now Instant, set *scopeRules) {
	ahead := uint64(now) - uint64(st.epoch)
	for _, r := range set.rules {
		r.shift(st.cells[r.cell:], ahead)
	}
	st.epoch = now
}
