package limit

import "time"

// trial is one decision under way, on the stack of decide, which holds the
// subjects' locks. It asks every rule first and changes no level; when none
// refuses, it asks again, which gives the same answers, and spends.
type trial struct {
	lists *lists
	tally *tally
	now   Instant
	class uint8

	// What the rules asked so far say together.
	verdict Verdict
	simple  bool  // each of them allows in full, none is exempt or shadow
	counted int64 // of Request.Cost

	// The rule that decides, and for an admission what it has left, in units
	// of which a token of the request's role costs unit.
	decider *rule
	left    int64
	unit    int64
	wait    time.Duration
	delay   time.Duration // that a queue imposes
}

func (t *trial) run(q *Request, subjects []*Subject, scopes uint8) {
	var a answer
	for _, s := range subjects {
		l := &t.lists.of[s.Scope]
		cells, at := s.cells, s.atLocked(t.now)
		from, to := l.group(t.class, q.Room)
		if l.grouped {
			t.simple = false
		}
		for i := from; i < to; i++ {
			if r := l.rules[i]; !l.grouped || r.matches(t.class, q.Room) {
				r.ask(cells[r.cell:], at, t.class, q, &a)
				t.note(r, t.tally.counters[s.Scope][i], &a)
			}
		}
	}
	if t.verdict != Reject {
		t.spend(q, subjects)
		if t.simple {
			t.tally.allowed(subjects[0], scopes)
		}
	}
}

// note takes one rule's answer into the whole. What holds however the others
// answer is counted here: a refusal, which decides, and what was not asked.
func (t *trial) note(r *rule, c *counter, a *answer) {
	t.simple = t.simple && a.outcome == outcomeAllow && !r.shadow
	switch {
	case a.outcome >= outcomeReject && a.outcome != outcomeShadowDegrade:
		c.add(a.outcome)
		if a.outcome == outcomeReject && (t.verdict != Reject || a.wait > t.wait) {
			t.verdict, t.decider, t.wait = Reject, r, a.wait
		}
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
	for _, s := range subjects {
		l := &t.lists.of[s.Scope]
		cells, at := s.cells, s.atLocked(t.now)
		from, to := l.group(t.class, q.Room)
		for i := from; i < to; i++ {
			r := l.rules[i]
			if l.grouped && !r.matches(t.class, q.Room) {
				continue
			}
			r.ask(cells[r.cell:], at, t.class, q, &a)
			if r.fold && !r.shadow {
				a.cost = min(a.cost, t.counted)
			}
			if r.paces(&a) {
				t.delay = max(t.delay, r.queue.delay(cells[r.cell:], at))
			}
			r.spend(cells[r.cell:], at, &a)
			if !t.simple && (a.outcome <= outcomeDegrade || a.outcome == outcomeShadowDegrade) {
				t.tally.counters[s.Scope][i].add(a.outcome)
			}
		}
	}
}

func (t *trial) decision(d *Decision) {
	d.Verdict, d.Delay = t.verdict, t.delay
	if t.decider != nil {
		d.Scope, d.Rule = t.decider.scope, t.decider.name
	}
	switch {
	case t.verdict == Reject:
		d.RetryAfter = t.wait
	case t.decider == nil:
		d.Counted = t.counted
	default:
		d.Counted, d.Remaining = t.counted, t.left/t.unit
	}
}
