package limit

import (
	"math/bits"
	"time"
)

// trial is one decision under way, on the stack of Decide. It asks every rule
// first and changes nothing; when none refuses, it asks again, which under the
// subjects' locks gives the same answers, and spends.
type trial struct {
	gen   *generation
	lists *lists
	now   Instant
	class uint8

	// What the rules asked so far say together.
	verdict Verdict
	simple  bool  // every one of them allows in full, none is exempt or shadow
	scopes  uint8 // bit set of the scopes asked
	counted int64 // of Request.Cost

	// The rule that decides, and for an admission what it has left, in units
	// of which a token of the request's role costs unit.
	decider *rule
	left    int64
	unit    int64
	wait    time.Duration
}

// answer is what one rule says.
type answer struct {
	outcome outcome
	cost    int64 // tokens to spend
	left    int64 // units above the floor after that
	rate    *rate
	wait    time.Duration
}

// run asks, and spends if it may. It reports false, with nothing changed, when
// the rules were changed meanwhile.
func (t *trial) run(q *Request, subjects []*Subject) bool {
	for i, s := range subjects {
		s.mu.Lock()
		if st := s.state; (st == nil || st.gen != t.gen) && !s.bindLocked(t.gen, t.now) {
			unlock(subjects[:i+1])
			return false
		}
		t.ask(s, q)
	}
	switch {
	case t.verdict == Reject:
		t.counted = 0
		t.countRefusals(q, subjects)
	case t.scopes == 0:
	case t.simple:
		t.spend(q, subjects)
		t.tally().allowed(subjects, t.scopes)
	default:
		t.settle(q, subjects)
	}
	unlock(subjects)
	return true
}

func unlock(subjects []*Subject) {
	for _, s := range subjects {
		s.mu.Unlock()
	}
}

// ask asks the rules of one subject.
func (t *trial) ask(s *Subject, q *Request) {
	l := &t.lists.of[s.Scope]
	if len(l.rules) == 0 {
		return
	}
	t.scopes |= 1 << s.Scope
	st := s.state
	at := st.at(t.now, s.Scope)
	if l.grouped {
		t.askGroup(l, st.cells, at, q)
		return
	}
	for _, r := range l.rules {
		if !r.plain {
			t.note(r, r.ask(st.cells[r.cell:], at, t.class, q))
			continue
		}
		unit := r.main.unit[t.class]
		left := r.main.level(st.cells[r.cell], at) - unit
		if left < 0 {
			t.refused(r, r.main.wait(-left))
			continue
		}
		t.admitted(r, left, unit)
	}
}

// askGroup asks the first group of equally specific rules that matches.
func (t *trial) askGroup(l *list, cells []int64, at int64, q *Request) {
	t.simple = false
	for _, r := range l.group(t.class, q.Room) {
		if r.matches(t.class, q.Room) {
			t.note(r, r.ask(cells[r.cell:], at, t.class, q))
		}
	}
}

// note takes one rule's answer into the whole.
func (t *trial) note(r *rule, a answer) {
	if a.outcome != outcomeAllow || r.shadow {
		t.simple = false
	}
	if r.shadow {
		return
	}
	switch a.outcome {
	case outcomeReject:
		t.refused(r, a.wait)
	case outcomeDegrade:
		if t.verdict == Allow {
			t.verdict, t.decider = Degrade, r
			t.left, t.unit = a.left, a.rate.unit[t.class]
		}
		if r.fold {
			t.counted = min(t.counted, a.cost)
		}
	case outcomeAllow:
		t.admitted(r, a.left, a.rate.unit[t.class])
	}
}

func (t *trial) refused(r *rule, wait time.Duration) {
	if t.verdict != Reject || wait > t.wait {
		t.verdict, t.decider, t.wait = Reject, r, wait
	}
}

// admitted keeps the rule with the fewest tokens left: left/unit is compared
// without dividing.
func (t *trial) admitted(r *rule, left, unit int64) {
	if t.verdict != Allow {
		return
	}
	if t.decider != nil {
		hi, lo := bits.Mul64(uint64(left), uint64(t.unit))
		hiLeast, loLeast := bits.Mul64(uint64(t.left), uint64(unit))
		if hi > hiLeast || hi == hiLeast && lo >= loLeast {
			return
		}
	}
	t.decider, t.left, t.unit = r, left, unit
}

// spend takes what a request that every rule allows costs.
func (t *trial) spend(q *Request, subjects []*Subject) {
	for _, s := range subjects {
		st := s.state
		at := st.at(t.now, s.Scope)
		for _, r := range t.lists.of[s.Scope].rules {
			if r.plain {
				full := &st.cells[r.cell]
				*full = max(*full, r.main.num*at) + r.main.unit[t.class]
				continue
			}
			r.spend(st.cells[r.cell:], at, t.class, r.ask(st.cells[r.cell:], at, t.class, q))
		}
	}
}

// settle spends and counts rule by rule.
func (t *trial) settle(q *Request, subjects []*Subject) {
	for _, s := range subjects {
		at := s.state.at(t.now, s.Scope)
		for _, r := range t.lists.of[s.Scope].group(t.class, q.Room) {
			if !r.matches(t.class, q.Room) {
				continue
			}
			cells := s.state.cells[r.cell:]
			a := r.ask(cells, at, t.class, q)
			if r.fold && !r.shadow {
				a.cost = min(a.cost, t.counted)
			}
			r.spend(cells, at, t.class, a)
			t.tally().of(r).add(a.outcome)
		}
	}
}

// countRefusals counts a rejection at the rules that refuse.
func (t *trial) countRefusals(q *Request, subjects []*Subject) {
	for _, s := range subjects {
		at := s.state.at(t.now, s.Scope)
		for _, r := range t.lists.of[s.Scope].group(t.class, q.Room) {
			if !r.matches(t.class, q.Room) {
				continue
			}
			if a := r.ask(s.state.cells[r.cell:], at, t.class, q); a.outcome == outcomeReject || a.outcome == outcomeShadowReject {
				t.tally().of(r).add(a.outcome)
			}
		}
	}
}

func (t *trial) tally() *tally { return t.gen.tallies[t.lists.id] }

func (t *trial) decision() Decision {
	d := Decision{Verdict: t.verdict, Counted: t.counted}
	if t.decider == nil {
		return d
	}
	d.Scope, d.Rule = t.decider.scope, t.decider.name
	if t.verdict == Reject {
		d.RetryAfter = t.wait
		return d
	}
	d.Remaining = max(t.left, 0) / t.unit
	return d
}
