package limit

import "time"

// ask writes into a what a rule with cluster: true says to a request. What
// cannot be told without asking the store is noted as a miss of t.
func (h *sharing) ask(t *trial, s *Subject, r *rule, at int64, q *Request, a *answer) {
	if r.exempts(t.class, q) {
		*a = answer{outcome: outcomeExempt}
		return
	}
	p := h.lease(s, r, r.shared.floorOf[q.Action])
	p.audience = int64(q.Audience)
	cost, floor := r.cost(q), r.floor[q.Action]
	cells := s.cells[r.cell:]
	switch {
	case p.claim.state == claimMine && p.homeLocked(t.now):
		p.homeAgainLocked(s, t.now)
		a.by, a.away = byCells, false
		grant(r.meter, cells, at, cost, floor, t.class, r.fold, a)
	case r.shared.kind == KindSlots:
		p.askSlot(t, s, at, a)
	default:
		p.askPool(t, s, at, cost, floor, a)
	}
	r.finish(cells, at, cost, t.class, a)
}

// homeAgainLocked keeps a claimed bucket claimed, and ends an outage's part.
func (p *lease) homeAgainLocked(s *Subject, now Instant) {
	if p.outage.sharing || p.outage.spent > 0 {
		p.outage = outage{} // its own cells say it all
	}
	if now >= p.claim.renew {
		p.claim.renew = now.Add(time.Minute)
		p.planLocked(now)
	}
}

// retryAway is the wait told while it is not yet known whether a shard that
// did not answer in time is away.
const retryAway = 50 * time.Millisecond

// askPool asks what is in hand.
func (p *lease) askPool(t *trial, s *Subject, at, cost, floor int64, a *answer) {
	sh := p.rule.shared
	unit, size := sh.unit[t.class], p.terms().Size
	whole := size - floor*sh.scale
	*a = answer{outcome: outcomeAllow, by: byHold, cost: cost, unit: unit}
	if cost > whole/unit {
		if !p.rule.fold {
			a.outcome, a.cost, a.wait = outcomeReject, 0, Never
			return
		}
		a.cost = whole / unit
	}
	need := a.cost * unit
	if t.first == t.now && t.verdict != Reject && !t.spending {
		p.demand.asked += need
	}
	hold := p.inHandLocked(t.now)
	p.outage.sharing = p.outage.sharing && p.outLocked(t.now)
	switch {
	case hold >= need:
	case p.outLocked(t.now):
		p.askOutLocked(s, t.now, at, t.class, cost, floor, a)
		return
	case t.now < p.dry.recheck && need-hold >= p.dry.least:
		p.lackLocked(a, hold, p.dry.until.Sub(t.now))
		a.away = p.dry.unknown
	case t.last:
		p.askLateLocked(t, s, at, cost, floor, a)
		return
	default:
		least := need
		if p.rule.fold {
			least = min(need, hold+unit)
		}
		t.miss(p, need, least)
		return
	}
	t.at = max(t.at, p.since)
	if a.outcome == outcomeAllow {
		a.left = hold - need + max(p.levelLocked(t.now)-floor*sh.scale, 0)
	}
	if a.cost < cost && a.outcome == outcomeAllow {
		a.outcome = outcomeDegrade
	}
}

// lackLocked answers for want of shares: it folds, or it refuses for a while.
func (p *lease) lackLocked(a *answer, hold int64, wait time.Duration) {
	if p.rule.fold {
		a.outcome, a.cost = outcomeDegrade, hold/a.unit
		return
	}
	a.outcome, a.cost, a.wait = outcomeReject, 0, max(wait, 1)
}

// askLateLocked answers when the budget is used up. As long as the shard is
// not known to be away a rule that shares waits for that: whatever it granted
// beyond the bucket would break the bound whenever an answer is late.
func (p *lease) askLateLocked(t *trial, s *Subject, at, cost, floor int64, a *answer) {
	if p.rule.shared.policy != policyShare {
		p.askOutLocked(s, t.now, at, t.class, cost, floor, a)
		return
	}
	t.at = max(t.at, p.since)
	p.lackLocked(a, p.hold, max(p.soonLocked().Sub(t.now), retryAway))
	a.away = true
}

// spend takes what an answer grants from where it comes.
func (h *sharing) spend(t *trial, s *Subject, r *rule, at int64, q *Request, a *answer) {
	cells := s.cells[r.cell:]
	if a.cost == 0 {
		return
	}
	if a.by == byCells || !r.fold && (a.outcome == outcomeDegrade || a.outcome == outcomeShadowDegrade) {
		r.spend(cells, at, a)
		return
	}
	p := h.lease(s, r, r.shared.floorOf[q.Action])
	switch a.by {
	case byHold:
		p.takeLocked(cells, at, a)
	case bySlot:
		h.keepSlot(t, s, p)
	default:
		p.spendOutLocked(s, at, a)
	}
}

// takeLocked spends shares in hand. The cells follow, so that an outage finds
// a level to begin from.
func (p *lease) takeLocked(cells []int64, at int64, a *answer) {
	r := p.rule
	shares := a.cost * a.unit
	p.hold -= shares
	p.spent += shares
	units := r.meter.shares(cells)
	r.meter.take(cells, at, min(shares*(units.whole/r.shared.scale), max(r.meter.level(cells, at), 0)))
	if p.hold <= p.low || p.tellsLocked() {
		p.planLocked(p.nextLocked())
	}
}

// tellsLocked tells whether so much was spent that the store should know, though
// nothing else is wanted: what it takes for held leaves no room to refill.
func (p *lease) tellsLocked() bool {
	return p.spent > p.terms().Size/8 && !p.rule.shared.claims && !p.rule.shared.single
}
