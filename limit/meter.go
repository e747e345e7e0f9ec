package limit

import "time"

// meter is an algorithm with its numbers: how a rule counts. It is immutable;
// what it knows of one subject lies in that subject's cells. It counts in
// units of which a token has a whole number, so that a role's share of a token
// is exact. Times are nanoseconds since the subject's epoch, at is within
// reach of it. What fills the cells keeps the rule; level, wait and full only
// read them.
type meter interface {
	// width is the number of cells.
	width() int
	// reach is how far from the epoch, in nanoseconds, the meter can count.
	reach() int64
	shares(c []int64) *unitShares
	// start fills the cells of a subject that is new at its epoch.
	start(c []int64, epoch Instant)
	// level is the units to be had; below 0 only for readings from before
	// what was taken last.
	level(c []int64, at int64) int64
	// wait is the exact time until need units can be had if nobody else
	// comes; need is more than the level and at most the size.
	wait(c []int64, at, need int64) time.Duration
	take(c []int64, at, units int64)
	// hold fills started cells such that level units can be had at the epoch.
	hold(c []int64, level int64)
	full(c []int64, at int64) bool
	// shift moves the cells to an epoch that lies ahead nanoseconds later.
	shift(c []int64, ahead uint64)
	// same tells whether other counts alike, so that its cells can be kept.
	same(other meter) bool
	// terms are the numbers of the rule's buckets over all nodes, by tier; what
	// has no such form is a fault.
	terms(of *rule, path string, faults *Faults) []Terms
}

// unitShares is how a meter's units divide.
type unitShares struct {
	whole int64 // units of a token
	size  int64 // units when nothing is taken
	// By role class: the units that a token costs, and the largest cost that
	// can ever be granted. A role with five times the limit pays a fifth.
	unit []int64
	most []int64
}

// newShares divides burst tokens of whole units each; every multiplier divides
// whole. The caller has checked that the product is in range.
func newShares(burst, whole int64, multiply []int64) unitShares {
	s := unitShares{whole: whole, size: burst * whole}
	for _, m := range multiply {
		s.unit = append(s.unit, whole/m)
		s.most = append(s.most, s.size/(whole/m))
	}
	return s
}

// commonMultiple returns the least common multiple of the multipliers, and
// false when it is over maxUnits.
func commonMultiple(multiply []int64) (int64, bool) {
	share := int64(1)
	for _, m := range multiply {
		f := m / gcd(m, share)
		if share > maxUnits/f {
			return 0, false
		}
		share *= f
	}
	return share, true
}

// answer is what one rule says.
type answer struct {
	outcome outcome
	from    Source
	away    bool  // refused because the store of shared quotas is away
	cost    int64 // tokens to spend
	unit    int64 // units that each of them costs
	left    int64 // units above the floor after that
	wait    time.Duration
}

// keep makes a copy field by field: one in wider steps would wait for the bytes just written.
func (a *answer) keep(b *answer) {
	a.outcome, a.from, a.away, a.cost, a.unit, a.left, a.wait = b.outcome, b.from, b.away, b.cost, b.unit, b.left, b.wait
}

// ask writes into a what the rule says to a request at that time, and changes
// no level. (An answer returned by value would cost more than the bucket.)
func (r *rule) ask(c []int64, at int64, class uint8, q *Request, a *answer) {
	if r.plain {
		r.main.one(c[0], at, class, a)
		return
	}
	if r.spares && r.exempts(class, q) {
		*a = answer{outcome: outcomeExempt}
		return
	}
	if r.tiers != nil {
		r.tiers.adapt(c, int64(q.Audience), at)
	}
	cost, floor := r.cost(q), r.floor[q.Action]
	a.away = false
	grant(r.meter, c, at, cost, floor, class, r.fold, a)
	r.finish(c, at, cost, class, a)
}

// finish turns to the degrade bucket after a refusal, and hides what a rule in
// shadow would do.
func (r *rule) finish(c []int64, at, cost int64, class uint8, a *answer) {
	if a.outcome == outcomeReject && r.second != nil {
		wait := a.wait
		grant(r.second, c[r.meter.width():], at, cost, 0, class, false, a)
		if a.outcome == outcomeAllow {
			a.outcome, a.away = outcomeDegrade, false
		}
		a.wait = min(a.wait, wait)
	}
	if r.shadow {
		a.outcome = a.outcome.shadow()
	}
}

// grant grants all of the cost above the floor or nothing, or, when it folds,
// as much of it as there is.
func grant(m meter, c []int64, at, cost, floor int64, class uint8, fold bool, a *answer) {
	s := m.shares(c)
	unit, reserve := s.unit[class], floor*s.whole
	level := m.level(c, at) - reserve
	a.outcome, a.cost, a.unit, a.left, a.wait = outcomeAllow, cost, unit, 0, 0
	switch {
	case fold:
		if a.cost = min(cost, max(level, 0)/unit); a.cost < cost {
			a.outcome = outcomeDegrade
		}
	case cost > s.most[class] || cost*unit > s.size-reserve:
		a.outcome, a.cost, a.wait = outcomeReject, 0, Never
		return
	case cost > 0 && cost*unit > level:
		a.outcome, a.cost, a.wait = outcomeReject, 0, m.wait(c, at, cost*unit+reserve)
		return
	}
	a.left = max(level-a.cost*unit, 0)
}

// spend takes what an answer grants, from the bucket that granted it.
func (r *rule) spend(c []int64, at int64, a *answer) {
	units := a.cost * a.unit
	switch {
	case units == 0:
	case !r.fold && (a.outcome == outcomeDegrade || a.outcome == outcomeShadowDegrade):
		r.second.take(c[r.meter.width():], at, units)
	default:
		r.meter.take(c, at, units)
	}
}

// width is the number of the rule's cells: its meter's, then its second's.
func (r *rule) width() int {
	if r.second != nil {
		return r.meter.width() + r.second.width()
	}
	return r.meter.width()
}

func (r *rule) reach() int64 {
	if r.second != nil {
		return min(r.meter.reach(), r.second.reach())
	}
	return r.meter.reach()
}

func (r *rule) start(c []int64, epoch Instant) {
	r.meter.start(c, epoch)
	if r.second != nil {
		r.second.start(c[r.meter.width():], epoch)
	}
}

func (r *rule) full(c []int64, at int64) bool {
	return r.meter.full(c, at) && (r.second == nil || r.second.full(c[r.meter.width():], at))
}

func (r *rule) shift(c []int64, ahead uint64) {
	r.meter.shift(c, ahead)
	if r.second != nil {
		r.second.shift(c[r.meter.width():], ahead)
	}
}

// takeOver fills started cells, whose epoch lies at of the old ones, with the
// levels of the rule of the same name in the set before.
func (r *rule) takeOver(c []int64, was *rule, old []int64, at int64) {
	takeOver(r.meter, c, was.meter, old, at)
	if r.second != nil && was.second != nil {
		takeOver(r.second, c[r.meter.width():], was.second, old[was.meter.width():], at)
	}
}

// takeOver keeps the cells of a meter that counts alike, of another the tokens
// that were used, rounded up to a unit.
func takeOver(m meter, c []int64, was meter, old []int64, at int64) {
	if m.same(was) {
		copy(c, old[:was.width()])
		m.shift(c, uint64(at))
		return
	}
	if k, ok := m.(keeper); ok && k.keep(c, was, old) {
		m.shift(c, uint64(at))
		return
	}
	if tiers, ok := m.(*tiered); ok {
		tiers.keepTier(c, was, old, at)
	}
	m.hold(c, levelAfter(m.shares(c), was.shares(old), was.level(old, at)))
}

// keeper is a meter that can go on with what another of its kind has counted,
// when only their limits differ. keep reports whether it did.
type keeper interface {
	keep(c []int64, was meter, old []int64) bool
}

// levelAfter is the level of a bucket whose numbers change: the new limit less
// what was used. What was used beyond the new limit is forgiven; a debt is not.
func levelAfter(to, from *unitShares, level int64) int64 {
	used := scale(from.size-level, to.whole, from.whole, 1)
	debt := int64(0)
	if level < 0 {
		debt = scale(-level, to.whole, from.whole, 1)
	}
	return max(to.size-used, -debt)
}
