package limit

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
