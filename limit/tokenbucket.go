package limit

import (
	"math"
	"time"
)

// The cells of a token bucket: its state; then the state of its second bucket,
// when it has one; then, when it has tiers, which one is in force and since
// when the audience has asked for another.

// tierHold is how long an audience must stay beyond a bound, and
// tierMargin how far beyond in percent, before a room changes tier.
const (
	tierHold   = 10 * time.Second
	tierMargin = 10
)

const (
	noTier  = -1
	settled = math.MinInt64 // no other tier is asked for
)

func (r *rule) cells() int {
	n := 1
	if r.second != nil {
		n++
	}
	if r.tiers != nil {
		n += 2
	}
	return n
}

// tierCell is where the tier's two cells begin.
func (r *rule) tierCell() int {
	if r.second != nil {
		return 2
	}
	return 1
}

// start fills the cells of a new bucket.
func (r *rule) start(c []int64) {
	c[0] = r.fresh(&r.main, 0)
	if r.second != nil {
		c[1] = longFull
	}
	if r.tiers != nil {
		c[r.tierCell()], c[r.tierCell()+1] = noTier, settled
	}
}

// fresh returns the state at t of a new bucket with the numbers of m.
func (r *rule) fresh(m *rate, t int64) int64 {
	if missing := m.size - r.initial*m.den; r.initial >= 0 && missing > 0 {
		return m.num*t + missing
	}
	return longFull
}

// rate returns the numbers in force.
func (r *rule) rate(c []int64) *rate {
	if r.tiers == nil {
		return &r.main
	}
	return &r.tiers[max(c[r.tierCell()], 0)].rate
}

func (r *rule) fullAt(c []int64, t int64) bool {
	if c[0] > r.rate(c).num*t {
		return false
	}
	return r.second == nil || c[1] <= r.second.num*t
}

// shift moves the cells to an epoch that lies ahead nanoseconds later.
func (r *rule) shift(c []int64, ahead uint64) {
	c[0] = r.rate(c).shift(c[0], ahead)
	if r.second != nil {
		c[1] = r.second.shift(c[1], ahead)
	}
	if r.tiers != nil {
		if asked := &c[r.tierCell()+1]; *asked != settled {
			*asked -= int64(min(ahead, maxSpanUnits))
		}
	}
}

// takeOver fills the cells, whose epoch lies at t of the old ones, with the
// levels of the rule of the same name in the set before.
func (r *rule) takeOver(c []int64, was *rule, old []int64, t int64) {
	if r.tiers != nil {
		r.keepTier(c, was, old, t)
	}
	c[0] = handOver(r.rate(c), was.rate(old), old[0], t)
	if r.second != nil && was.second != nil {
		c[1] = handOver(r.second, was.second, old[1], t)
	}
}

func handOver(to, from *rate, full, t int64) int64 {
	if to.num == from.num && to.den == from.den && to.size == from.size {
		if full <= longFull+max(from.num*t, 0) {
			return longFull
		}
		return full - from.num*t
	}
	return to.carry(from, from.level(full, t))
}

func (r *rule) keepTier(c []int64, was *rule, old []int64, t int64) {
	if was.tiers == nil {
		c[r.tierCell()] = 0
		return
	}
	at := min(old[was.tierCell()], int64(len(r.tiers)-1))
	c[r.tierCell()] = at
	if asked := old[was.tierCell()+1]; asked != settled {
		c[r.tierCell()+1] = asked - t
	}
}

// follow chooses the tier for an audience. The choice is kept with the bucket;
// it changes when the audience has been tierMargin beyond a bound for
// tierHold, and takes the level along.
func (r *rule) follow(c []int64, audience, t int64) {
	at, asked := &c[r.tierCell()], &c[r.tierCell()+1]
	want := r.tierFor(audience)
	switch {
	case *at == noTier:
		*at, c[0] = want, r.fresh(&r.tiers[want].rate, t)
	case !r.beyond(*at, audience):
		*asked = settled
	case *asked == settled:
		*asked = t
	case t-*asked >= int64(tierHold):
		r.changeTier(c, want, t)
		*asked = settled
	}
}

func (r *rule) tierFor(audience int64) int64 {
	for i := range r.tiers {
		if below := r.tiers[i].below; below == 0 || audience < below {
			return int64(i)
		}
	}
	return int64(len(r.tiers) - 1)
}

// beyond tells whether the audience has left the tier by the margin.
func (r *rule) beyond(at, audience int64) bool {
	if upper := r.tiers[at].below; upper != 0 && audience-upper >= upper*tierMargin/100 {
		return true
	}
	return at > 0 && audience < r.tiers[at-1].below-r.tiers[at-1].below*tierMargin/100
}

func (r *rule) changeTier(c []int64, to, t int64) {
	from := r.rate(c)
	c[r.tierCell()] = to
	now := r.rate(c)
	if c[0] = handOver(now, from, c[0], t); c[0] != longFull {
		c[0] += now.num * t
	}
}

// ask tells what the rule says to a request at t, and changes no level.
func (r *rule) ask(c []int64, at int64, class uint8, q *Request) answer {
	if r.exempts(class, q) {
		return answer{outcome: outcomeExempt}
	}
	if r.tiers != nil {
		r.follow(c, int64(q.Audience), at)
	}
	a := r.askBuckets(c, at, class, q)
	if r.shadow {
		a.outcome = a.outcome.shadow()
	}
	return a
}

func (r *rule) askBuckets(c []int64, at int64, class uint8, q *Request) answer {
	m, cost, floor := r.rate(c), r.cost(q), r.floor[q.Action]
	if r.fold {
		return m.part(c[0], at, cost, floor, class)
	}
	a := m.whole(c[0], at, cost, floor, class)
	if a.outcome != outcomeReject || r.second == nil {
		return a
	}
	b := r.second.whole(c[1], at, cost, 0, class)
	if b.outcome == outcomeAllow {
		b.outcome = outcomeDegrade
	}
	b.wait = min(a.wait, b.wait)
	return b
}

// whole grants all of the cost above the floor, or nothing.
func (r *rate) whole(full, at, cost, floor int64, class uint8) answer {
	if cost == 0 {
		return answer{rate: r, left: r.level(full, at) - floor*r.den}
	}
	if cost > r.most[class] {
		return answer{outcome: outcomeReject, wait: Never}
	}
	need := cost*r.unit[class] + floor*r.den
	if left := r.level(full, at) - need; left >= 0 {
		return answer{cost: cost, left: left, rate: r}
	} else if need <= r.size {
		return answer{outcome: outcomeReject, wait: r.wait(-left)}
	}
	return answer{outcome: outcomeReject, wait: Never}
}

// part grants as much of the cost as there is above the floor.
func (r *rate) part(full, at, cost, floor int64, class uint8) answer {
	unit := r.unit[class]
	level := max(r.level(full, at)-floor*r.den, 0)
	a := answer{cost: min(cost, level/unit), rate: r}
	a.left = level - a.cost*unit
	if a.cost < cost {
		a.outcome = outcomeDegrade
	}
	return a
}

// spend takes what an answer grants.
func (r *rule) spend(c []int64, at int64, class uint8, a answer) {
	if a.cost == 0 {
		return
	}
	full := &c[0]
	if !r.fold && (a.outcome == outcomeDegrade || a.outcome == outcomeShadowDegrade) {
		full = &c[1]
	}
	*full = max(*full, a.rate.num*at) + a.cost*a.rate.unit[class]
}
