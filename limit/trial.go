package limit

import "time"

// trial is one decision under way, on the stack of decide, which holds the
// subjects' locks. It asks every rule first and changes no level; when none
// refuses, it asks again, which gives the same answers, and spends.
type trial struct {
	sharer Sharer
	lists  *lists
	tally  *tally
	now    Instant
	class  uint8
	traits uint64

	// Of rules with cluster: true. A decision that had to wait asks again: first
	// is the instant it was asked at, at the receipt of the latest grant used.
	first    Instant
	at       Instant
	last     bool // there is no time left to wait
	spending bool
	misses   []miss
	tickets  []ticket
	saved    [savedAnswers]answer // what the first of them said, in their order, not to be asked twice
	asked    int                  // so far

	// What the rules asked so far say together.
	verdict Verdict
	simple  bool  // each of them allows in full, none is exempt or shadow
	aside   bool  // some do not count in the verdict: exempt, or refusing in shadow
	away    bool  // the decider refuses because the store is away
	counted int64 // of Request.Cost

	// The rule that decides, and for an admission what it has left, in units
	// of which a token of the request's role costs unit.
	decider *rule
	left    int64
	unit    int64
	wait    time.Duration
	delay   time.Duration // that a queue imposes
}

// begin prepares a new trial by a set of rules. (One returned by value would
// cost as much as a bucket.)
func (t *trial) begin(g *Gate, gen *generation, l *lists, now Instant, q *Request) {
	t.sharer, t.tally, t.lists = g.sharer, gen.tallies[l.id], l
	t.now, t.first = now, now
	t.class, t.simple, t.counted = gen.rules.class(q.Role), true, q.Cost
	t.traits = gen.rules.where.hold(q.Traits)
}

func (t *trial) run(q *Request, subjects []*Subject, scopes uint16) {
	var a answer
	for _, s := range subjects {
		l := &t.lists.of[s.Scope]
		at := s.atLocked(t.now)
		from, to := l.group(t.class, t.traits, q.Room)
		if l.grouped {
			t.simple = false
		}
		for i := from; i < to; i++ {
			if r := l.rules[i]; !l.grouped || r.matches(t.class, t.traits, q.Room) {
				t.ask(s, r, at, q, &a)
				t.note(r, t.tally.counters[s.Scope][i], &a)
			}
		}
	}
	switch {
	case t.verdict == Reject:
		if t.aside {
			t.countAside(q, subjects)
		}
	case t.misses == nil:
		t.spend(q, subjects)
		if t.simple {
			t.tally.allowed(subjects[0], scopes)
		}
	}
}

// ask writes into a what one rule says.
func (t *trial) ask(s *Subject, r *rule, at int64, q *Request, a *answer) {
	if s.sharing != nil && r.quota != nil {
		t.askShared(s, r, at, q, a)
		return
	}
	if r.here {
		s.cells[r.cell] = int64(s.here)
	}
	r.ask(s.cells[r.cell:], at, t.class, q, a)
}

// note takes one rule's answer into the whole. A refusal, which decides, is
// counted here.
func (t *trial) note(r *rule, c *counter, a *answer) {
	t.simple = t.simple && a.outcome == outcomeAllow && !r.shadow
	switch {
	case a.outcome == outcomeReject:
		c.add(a.outcome)
		if t.verdict != Reject || a.wait > t.wait {
			t.verdict, t.decider, t.wait, t.away = Reject, r, a.wait, a.away
		}
	case a.outcome == outcomeExempt || a.outcome == outcomeShadowReject:
		t.aside = true
	case r.shadow || t.verdict == Reject:
	case a.outcome == outcomeDegrade:
		folds := r.fold && a.cost < t.counted
		if folds {
			t.counted = a.cost
		}
		if t.verdict == Allow || folds {
			t.verdict = Degrade
			t.decide(r, a)
		}
	case t.verdict == Allow && (t.decider == nil || less(a.left, a.unit, t.left, t.unit)):
		t.decide(r, a)
	}
}

func (t *trial) decide(r *rule, a *answer) {
	t.decider, t.left, t.unit = r, a.left, a.unit
}

// spend takes what the request costs, and counts rule by rule unless the
// request is simple.
func (t *trial) spend(q *Request, subjects []*Subject) {
	var a answer
	t.spending, t.asked = true, 0
	for _, s := range subjects {
		l := &t.lists.of[s.Scope]
		cells, at := s.cells, s.atLocked(t.now)
		from, to := l.group(t.class, t.traits, q.Room)
		for i := from; i < to; i++ {
			r := l.rules[i]
			if l.grouped && !r.matches(t.class, t.traits, q.Room) {
				continue
			}
			t.ask(s, r, at, q, &a)
			if r.fold && !r.shadow {
				a.cost = min(a.cost, t.counted)
			}
			if r.paces(&a) {
				t.delay = max(t.delay, r.queue.delay(cells[r.cell:], at))
			}
			if s.sharing != nil && r.quota != nil {
				t.spendShared(s, r, at, q, &a)
			} else {
				r.spend(cells[r.cell:], at, &a)
			}
			if !t.simple {
				t.tally.counters[s.Scope][i].add(a.outcome)
			}
		}
	}
}

// countAside counts for a rejected request what some rules said aside.
func (t *trial) countAside(q *Request, subjects []*Subject) {
	var a answer
	t.spending, t.asked = true, 0
	for _, s := range subjects {
		l := &t.lists.of[s.Scope]
		at := s.atLocked(t.now)
		from, to := l.group(t.class, t.traits, q.Room)
		for i := from; i < to; i++ {
			if r := l.rules[i]; !l.grouped || r.matches(t.class, t.traits, q.Room) {
				if t.ask(s, r, at, q, &a); a.outcome == outcomeExempt || a.outcome == outcomeShadowReject {
					t.tally.counters[s.Scope][i].add(a.outcome)
				}
			}
		}
	}
}

func (t *trial) decision(d *Decision) {
	d.Verdict, d.Delay, d.At = t.verdict, t.delay, max(t.now, t.at)
	if t.decider != nil {
		d.Scope, d.Rule = t.decider.scope, t.decider.name
	}
	switch {
	case t.verdict == Reject:
		d.RetryAfter, d.Unavailable = t.wait, t.away
	case t.decider == nil:
		d.Counted = t.counted
	default:
		d.Counted, d.Remaining = t.counted, t.left/t.unit
	}
}
