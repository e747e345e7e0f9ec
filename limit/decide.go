package limit

import (
	"math/bits"
	"time"
)

// Decide asks every rule that applies to q for the subjects given, at most one
// of each scope, and spends from all of them or from none. now is a reading
// of the Gate's clock. It does not allocate.
func (g *Gate) Decide(now Instant, q *Request, subjects ...*Subject) (d Decision) {
	if q.Cost < 0 {
		d.Verdict = Invalid
		return
	}
	scopes := uint16(0)
	for _, s := range subjects {
		bit := uint16(1) << s.Scope
		if scopes >= bit {
			g.decideSorted(now, q, subjects, &d)
			return
		}
		scopes |= bit
	}
	g.decide(now, q, subjects, scopes, &d)
	return
}

// decideSorted brings the subjects into the order of their locks.
func (g *Gate) decideSorted(now Instant, q *Request, subjects []*Subject, d *Decision) {
	var byScope, sorted [scopeCount]*Subject
	scopes := uint16(0)
	for _, s := range subjects {
		if byScope[s.Scope] != nil {
			panic("limit: two subjects of scope " + s.Scope.String() + " in one decision")
		}
		byScope[s.Scope] = s
		scopes |= 1 << s.Scope
	}
	n := 0
	for _, s := range byScope {
		if s != nil {
			sorted[n] = s
			n++
		}
	}
	g.decide(now, q, sorted[:n], scopes, d)
}

// decide locks the subjects, which are in the order of their scopes. The
// answer is written in place: copying a Decision would cost more than a bucket.
func (g *Gate) decide(now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	gen := g.lock(now, subjects)
	d.At = now
	l := gen.rules.lists(q)
	switch {
	case l.shared&gen.shared&scopes != 0:
		g.decideShared(gen, l, now, q, subjects, scopes, d)
	case l.special&scopes == 0:
		gen.decidePlain(l, now, gen.rules.class(q.Role), subjects, scopes, d)
		if d.Verdict == Allow {
			d.Counted = q.Cost
		}
		leave(q, subjects, d)
	default:
		var t trial
		t.begin(g, gen, l, now, q)
		t.run(q, subjects, scopes)
		t.decision(d)
		leave(q, subjects, d)
	}
	if o := g.observer.Load(); o != nil {
		tell(*o, now, q, subjects, scopes, d)
	}
}

// lock takes the locks of subjects, in the order of their scopes, and brings
// them to the rules in force.
func (g *Gate) lock(now Instant, subjects []*Subject) *generation {
	gen := g.current.Load()
	for i := 0; i < len(subjects); i++ {
		s := subjects[i]
		s.lock()
		if s.gen != gen && !s.bindLocked(gen, now) {
			unlock(subjects[:i+1])
			gen, i = g.current.Load(), -1
		}
	}
	return gen
}

// leave ends a decision: what it admitted and stays is counted in.
func leave(q *Request, subjects []*Subject, d *Decision) {
	if q.Action.Lasts() && d.Verdict != Reject {
		enterLocked(q.Action, subjects)
	}
	unlock(subjects)
}

func unlock(subjects []*Subject) {
	for _, s := range subjects {
		s.mu.Unlock()
	}
}

// enterLocked counts in what a decision admitted. The subjects are locked.
func enterLocked(a Action, subjects []*Subject) {
	for _, s := range subjects {
		if s.Scope.brings() == a {
			s.here++
		}
	}
}

// decidePlain is trial for the usual case: plain rules alone, which refuse or
// allow and look at nothing in the request. It saves a third of the time.
func (gen *generation) decidePlain(l *lists, now Instant, class uint8, subjects []*Subject, scopes uint16, d *Decision) {
	var decider *rule
	var left, unit int64
	var wait time.Duration
	tally := gen.tallies[l.id]
	for _, s := range subjects {
		at := s.atLocked(now)
		for i, r := range l.of[s.Scope].rules {
			u := r.main.unit[class]
			rest := r.main.levelOf(s.cells[r.cell], at) - u
			switch {
			case rest < 0:
				tally.counters[s.Scope][i].add(outcomeReject)
				if w := r.main.waitFor(-rest); w > wait {
					decider, wait = r, w
				}
			case wait == 0 && (decider == nil || less(rest, u, left, unit)):
				decider, left, unit = r, rest, u
			}
		}
	}
	if decider == nil {
		return
	}
	d.Scope, d.Rule = decider.scope, decider.name
	if wait > 0 {
		d.Verdict, d.RetryAfter = Reject, wait
		return
	}
	d.Remaining = left / unit
	for _, s := range subjects {
		at := s.atLocked(now)
		for _, r := range l.of[s.Scope].rules {
			full := &s.cells[r.cell]
			*full = max(*full, r.main.num*at) + r.main.unit[class]
		}
	}
	tally.allowed(subjects[0], scopes)
}

// less tells whether a/b < c/d without dividing; none is below 0.
func less(a, b, c, d int64) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(d))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(b))
	return hi < hi2 || hi == hi2 && lo < lo2
}

// lists returns the rules asked for q. A route without rules of its own is
// asked by the rules for api as a whole.
func (r *Rules) lists(q *Request) *lists {
	if q.Route != "" && q.Action == API {
		if own, ok := r.routes[q.Route]; ok {
			return own
		}
	}
	return r.actions[q.Action]
}

// class returns the class of a role.
func (r *Rules) class(role string) uint8 {
	for i, name := range r.classes {
		if name == role {
			return uint8(i)
		}
	}
	return 0
}

// group returns the bounds of the rank that applies, in which those rules
// count that match.
func (l *list) group(class uint8, traits uint64, room string) (from, to int) {
	if !l.grouped {
		return 0, len(l.rules)
	}
	for i, r := range l.rules {
		if r.matches(class, traits, room) {
			end := i + 1
			for end < len(l.rules) && l.rules[end].rank == r.rank {
				end++
			}
			return i, end
		}
	}
	return 0, 0
}
