package limit

import "time"

// outage is what a lease does while its shard is away.
type outage struct {
	sharing bool  // the subject's cells are this node's part of the bucket
	spent   int64 // shares, since it began
	debt    int64 // shares, of outages that are over; the store is to know
}

// outLocked tells whether the rule goes by its policy: while its shard is away,
// and while what nodes spent meanwhile is not yet told.
func (p *lease) outLocked(now Instant) bool {
	return p.awayLocked() || p.opensLocked() || p.rule.shared.policy != policyClosed && p.lane.health.settles(now)
}

// opensLocked tells whether the rule is open from the first failure on, before
// it is known whether that is an outage.
func (p *lease) opensLocked() bool {
	return p.rule.shared.policy == policyOpen && p.lane.health.failing.Load() != 0
}

// tripAlone failures in a row of one key alone count as an outage for it.
const tripAlone = 8

func (p *lease) awayLocked() bool {
	if p.lane.health.away.Load() {
		p.lane = p.cluster.lane(p.key) // another shard may have the key by now
	}
	return p.lane.health.away.Load() || p.failures >= tripAlone || p.cluster.closing.Load()
}

// partsLocked is how many parts the bucket has: one for each node alive, and one
// more while the parts are put together again, for what is on its way.
func (p *lease) partsLocked() int64 {
	n := p.cluster.nodes.Load()
	if !p.awayLocked() {
		n++
	}
	return n
}

// beginLocked turns the subject's cells into this node's part: of nodes alive
// each has burst/nodes, and at most what the bucket is known to hold. The part
// is kept in the whole bucket's numbers, every cost times the nodes.
func (p *lease) beginLocked(s *Subject, now Instant) {
	if p.outage.sharing {
		return
	}
	p.outage.sharing, p.outage.spent = true, 0
	r, at := p.rule, s.atLocked(now)
	if r.shared.kind == KindSlots {
		return // each slot is told by its holder when to come back
	}
	cells := s.cells[r.cell:]
	units, nodes := r.meter.shares(cells), p.cluster.nodes.Load()
	known := units.size
	if r.shared.kind == KindBucket && p.got != 0 {
		// Others drew after that answer, as much as came since, or nearly.
		known = scale(max(p.levelLocked(now.Add(-2*p.cluster.cfg.Spacing)), 0), units.whole, r.shared.scale, 0)
	}
	level := scale(max(r.meter.level(cells, at), 0), nodes, 1, 0)
	setLevel(r.meter, cells, at, min(level, known, units.size))
}

// skew is how much later one node may notice than another that a shard is back.
// What its part has refilled since, the store has refilled as well.
const skew = probeAfter + 300*time.Millisecond

// oweLocked turns what was spent into a debt that the store is told of, at most
// what this node's part lacks or has lacked when the shard came back.
func (p *lease) oweLocked(now Instant) {
	s := p.owner
	if p.outage.spent == 0 || p.awayLocked() || s.gen == nil {
		return
	}
	r, at := p.rule, s.atLocked(now)
	lacks := p.outage.spent
	if p.outage.sharing && r.shared.kind == KindBucket {
		cells := s.cells[r.cell:]
		units := r.meter.shares(cells)
		lack := scale(max(units.size-r.meter.level(cells, at), 0), r.shared.scale, units.whole, 1)
		lack += scale(int64(skew/time.Microsecond), p.terms().Num, p.terms().Den, 1)
		lacks = min(lacks, (lack-1)/p.cluster.nodes.Load()+1)
	}
	p.outage.debt = min(p.outage.debt+lacks, p.terms().Size)
	p.outage.spent = 0
}

// tellDebts has every lease tell its debt, asked or not, once the shard is back.
func (l *lane) tellDebts() {
	l.mu.Lock()
	owing := l.owing
	l.owing = nil
	l.mu.Unlock()
	for p := range owing {
		p.owner.lock()
		p.planLocked(l.cluster.cfg.Clock())
		p.owner.mu.Unlock()
	}
}

func (l *lane) owes(p *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owing == nil {
		l.owing = map[*lease]struct{}{}
	}
	l.owing[p] = struct{}{}
}

// askOutLocked answers by the rule's policy.
func (p *lease) askOutLocked(s *Subject, now Instant, at int64, class uint8, cost, floor int64, a *answer) {
	r := p.rule
	cells := s.cells[r.cell:]
	if r.tiers != nil {
		r.tiers.adapt(cells, p.audience, at)
	}
	unit := r.meter.shares(cells).unit[class]
	*a = answer{outcome: outcomeAllow, cost: cost, unit: unit, by: byPolicy}
	if p.cluster.closing.Load() {
		// What this node spent now, the store would never hear of.
		a.by = byHold
		p.lackLocked(a, p.hold, retryAway)
		a.away = true
		return
	}
	p.probeLocked()
	switch r.shared.policy {
	case policyClosed:
		a.outcome, a.cost, a.wait, a.away = outcomeReject, 0, probeAfter+defaultBudget, true
		return
	case policyOpen:
		if down := Instant(p.lane.health.down.Load()); (p.awayLocked() || p.opensLocked()) && (down == 0 || now.Sub(down) < r.shared.grace) {
			a.by = byGrace
			return
		}
	}
	p.beginLocked(s, now)
	part(r, cells, at, cost, floor, p.partsLocked(), a)
}

// probeLocked plans a call where nothing else would: only this lease's calls
// failed, or it has not called since its shard is back.
func (p *lease) probeLocked() {
	if p.failures >= tripAfter && !p.flying && !p.lane.health.away.Load() && p.rule.shared.kind != KindSlots {
		p.planLocked(p.sent.Add(probeAfter))
	}
}

// probesLocked tells whether a decision may find out by itself whether the
// calls of a rule that counts slots still fail.
func (p *lease) probesLocked(now Instant) bool {
	if p.failures < tripAfter || p.lane.health.away.Load() || p.cluster.closing.Load() || now.Sub(p.sent) < probeAfter {
		return false
	}
	p.sent = now
	return true
}

// part asks this node's part of a bucket: every cost times the nodes, but at
// least one token whenever nothing was taken.
func part(r *rule, cells []int64, at, cost, floor, nodes int64, a *answer) {
	units := r.meter.shares(cells)
	if r.shared.kind == KindSlots {
		partOfSlots(r, cells, at, nodes, a)
		return
	}
	whole := units.size - floor*units.whole
	level := r.meter.level(cells, at) - floor*units.whole
	each := scale(a.unit, nodes, 1, 0)
	if r.fold {
		fits := max(level, 0) / each
		if fits == 0 && level >= whole {
			fits = 1
		}
		if a.cost = min(cost, fits); a.cost < cost {
			a.outcome = outcomeDegrade
		}
		return
	}
	if cost == 0 {
		return
	}
	if cost > whole/a.unit {
		a.outcome, a.cost, a.wait = outcomeReject, 0, Never
		return
	}
	need := min(scale(cost, each, 1, 0), whole)
	if level < need {
		a.outcome, a.cost, a.wait = outcomeReject, 0, r.meter.wait(cells, at, need+floor*units.whole)
		return
	}
	a.left = (level - need) / nodes
}

// partOfSlots leaves this node its part of the slots, one at least.
func partOfSlots(r *rule, cells []int64, at, nodes int64, a *answer) {
	size, free := r.meter.shares(cells).size, r.meter.level(cells, at)
	if busy := size - free; busy > 0 && (busy+1)*nodes > size {
		a.outcome, a.cost, a.wait = outcomeReject, 0, r.meter.wait(cells, at, free+1)
	}
}

// spendOutLocked takes what askOutLocked granted from the cells.
func (p *lease) spendOutLocked(s *Subject, at int64, a *answer) {
	r := p.rule
	cells := s.cells[r.cell:]
	units := r.meter.shares(cells)
	if p.outage.spent == 0 {
		if p.lane.owes(p); !p.awayLocked() {
			p.planLocked(p.nextLocked())
		}
	}
	p.outage.spent = min(p.outage.spent+scale(a.cost*a.unit, r.shared.scale, units.whole, 1), maxShares)
	take := a.cost * a.unit
	switch {
	case a.by == byGrace:
		take = min(take, max(r.meter.level(cells, at), 0))
	case r.shared.kind != KindSlots:
		take = scale(take, p.partsLocked(), 1, 0)
	}
	r.meter.take(cells, at, take)
}

// setLevel brings a bucket's cells to a level, at most the size; those of a
// window are only ever lowered.
func setLevel(m meter, c []int64, at, level int64) {
	switch m := m.(type) {
	case *tiered:
		setLevel(m.rate(c), c, at, level)
	case *leaky:
		setLevel(&m.rate, c, at, level)
	case *rate:
		m.hold(c, min(level, m.size))
		m.back(c, at)
	default:
		if above := m.level(c, at) - level; above > 0 {
			m.take(c, at, above)
		}
	}
}
