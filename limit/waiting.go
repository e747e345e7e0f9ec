package limit

import "time"

// miss is what a decision lacks in hand.
type miss struct {
	lease       *lease
	need, least int64
	slot        *slotCall // instead, for a rule that counts slots
}

// miss notes that a rule cannot answer before the store has.
func (t *trial) miss(p *lease, need, least int64) {
	t.misses = append(t.misses, miss{lease: p, need: need, least: least})
}

// decideShared decides where rules hold over all nodes; it has the subjects'
// locks and gives them up. What everything in memory would allow, and only
// that, waits for the store.
func (g *Gate) decideShared(gen *generation, l *lists, now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	c := g.cluster
	t := trial{tally: gen.tallies[l.id], lists: l, now: now, first: now, class: gen.rules.class(q.Role), simple: true, counted: q.Cost}
	for _, s := range subjects {
		if l.shared>>s.Scope&1 == 0 {
			continue
		}
		if s.sharing == nil {
			s.beginSharing(c, q)
		}
	}
	t.run(q, subjects, scopes)
	if t.misses == nil || t.verdict == Reject {
		t.decision(d)
		leave(q, subjects, d)
		return
	}
	g.decideWaiting(&t, now, q, subjects, scopes, d)
}

// decideWaiting asks again whenever the store has answered, until nothing is
// lacking or the budget is used up.
func (g *Gate) decideWaiting(t *trial, now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	c := g.cluster
	began := c.cfg.Clock()
	budget := c.budget()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	var slots []*slotCall
	for {
		waits := t.beginWait(&slots)
		unlock(subjects)
		over := false
		for _, w := range waits {
			for over = !wait(w, timer); over; over = !wait(w, timer) {
				budget = max(budget, c.budget()) // many may have come at once
				left := budget - c.cfg.Clock().Sub(began)
				if left <= 0 {
					break
				}
				timer.Reset(left)
			}
			if over {
				break
			}
		}
		again := c.cfg.Clock()
		gen := g.lock(again, subjects)
		l := gen.rules.lists(q)
		*t = trial{
			tally: gen.tallies[l.id], lists: l, now: again, first: now, class: gen.rules.class(q.Role), simple: true, counted: q.Cost,
			slots: slots, last: over || again.Sub(began) >= budget,
		}
		for _, s := range subjects {
			if l.shared>>s.Scope&1 == 1 && s.sharing == nil {
				s.beginSharing(c, q)
			}
		}
		t.run(q, subjects, scopes)
		if t.misses == nil || t.verdict == Reject || t.last {
			break
		}
	}
	t.decision(d)
	leave(q, subjects, d)
	for _, s := range slots {
		s.abandon()
	}
}

// beginWait says what is waited for while the locks are held.
func (t *trial) beginWait(slots *[]*slotCall) []<-chan struct{} {
	waits := make([]<-chan struct{}, 0, len(t.misses))
	for _, m := range t.misses {
		if m.slot != nil {
			*slots = append(*slots, m.slot)
			m.slot.begin()
			waits = append(waits, m.slot.done)
			continue
		}
		waits = append(waits, m.lease.waitLocked(m.need, m.least))
	}
	return waits
}

// wait waits for an answer and reports false when the time is over first.
func wait(answered <-chan struct{}, timer *time.Timer) bool {
	select {
	case <-answered:
		return true
	default:
	}
	select {
	case <-answered:
		return true
	case <-timer.C:
		timer.Reset(0) // for those after this one
		return false
	}
}
