package limit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// tiered is a token bucket whose numbers follow the audience. The tier in force
// is kept with the bucket, not chosen anew by each caller: it changes when the
// audience has been tierMargin percent beyond a bound for tierHold without a
// break, and then takes the level along.
//
// Its cells: the bucket's, the tier in force, and since when the audience has
// asked for another.
type tiered []tier

type tier struct {
	below int64 // audience at which the next begins; 0 for the last
	rate  rate
}

const (
	tierHold   = 10 * time.Second
	tierMargin = 10
)

const (
	tierCell  = 1
	askedCell = 2

	noTier  = -1            // nobody has asked yet
	settled = math.MinInt64 // no other tier is asked for
)

var _ meter = (*tiered)(nil)

func (r *rule) compileTiers(path string, times []int64, faults *Faults) meter {
	at := func(key string) string { return join(path, key) }
	if r.spec.Limit != (Limit{}) {
		faults.add(at("rate"), "a rule has either rate, per and burst, or tiers")
	}
	specs := slices.Clone(r.spec.Tiers)
	r.spec.Tiers = specs
	m := make(tiered, len(specs))
	for i := range specs {
		here := at(fmt.Sprintf("tiers[%d]", i))
		last := i == len(specs)-1
		switch below := specs[i].Below; {
		case last && below != 0:
			faults.add(here+".below", "the last tier has no upper bound, have %d", below)
		case !last && below < 10:
			faults.add(here+".below", "want 10 or more, have %d", below)
		case i > 0 && !last && below <= specs[i-1].Below:
			faults.add(here+".below", "want more than the tier before, have %d", below)
		}
		m[i] = tier{below: specs[i].Below, rate: compileLimit(&specs[i].Limit, here, times, faults)}
		m[i].rate.begin(r.spec.Initial)
	}
	r.tiers = &m
	return &m
}

// rate returns the numbers in force.
func (m *tiered) rate(c []int64) *rate { return &(*m)[max(c[tierCell], 0)].rate }

func (m *tiered) width() int                                   { return 3 }
func (m *tiered) shares(c []int64) *unitShares                 { return m.rate(c).shares(c) }
func (m *tiered) level(c []int64, at int64) int64              { return m.rate(c).level(c, at) }
func (m *tiered) wait(c []int64, at, need int64) time.Duration { return m.rate(c).wait(c, at, need) }
func (m *tiered) take(c []int64, at, units int64)              { m.rate(c).take(c, at, units) }
func (m *tiered) hold(c []int64, level int64)                  { m.rate(c).hold(c, level) }
func (m *tiered) full(c []int64, at int64) bool                { return m.rate(c).full(c, at) }

func (m *tiered) set(c []int64, at, level int64) { m.rate(c).set(c, at, level) }

func (m *tiered) reach() int64 {
	least := (*m)[0].rate.span
	for i := range *m {
		least = min(least, (*m)[i].rate.span)
	}
	return least
}

func (m *tiered) start(c []int64, epoch Instant) {
	c[tierCell], c[askedCell] = noTier, settled
	m.rate(c).start(c, epoch)
}

func (m *tiered) shift(c []int64, ahead uint64) {
	m.rate(c).shift(c, ahead)
	if c[askedCell] != settled {
		c[askedCell] -= int64(min(ahead, maxSpanUnits))
	}
}

func (m *tiered) same(other meter) bool {
	o, ok := other.(*tiered)
	if !ok || len(*m) != len(*o) {
		return false
	}
	for i := range *m {
		if (*m)[i].below != (*o)[i].below || !(*m)[i].rate.same(&(*o)[i].rate) {
			return false
		}
	}
	return true
}

// keepTier chooses the tier for a bucket that comes from other numbers: the
// one it had, so that a reload does not skip the hysteresis.
func (m *tiered) keepTier(c []int64, was meter, old []int64, at int64) {
	c[tierCell] = 0
	if _, ok := was.(*tiered); ok {
		c[tierCell] = min(old[tierCell], int64(len(*m)-1))
		if old[askedCell] != settled {
			c[askedCell] = old[askedCell] - at
		}
	}
}

// adapt chooses the tier for an audience.
func (m *tiered) adapt(c []int64, audience, at int64) {
	switch {
	case c[tierCell] == noTier:
		c[tierCell] = m.tierFor(audience)
		m.rate(c).start(c, 0)
		m.rate(c).back(c, at)
	case !m.beyond(c[tierCell], audience):
		c[askedCell] = settled
	case c[askedCell] == settled:
		c[askedCell] = at
	case at-c[askedCell] >= int64(tierHold):
		m.change(c, m.tierFor(audience), at)
		c[askedCell] = settled
	}
}

func (m *tiered) tierFor(audience int64) int64 {
	for i, t := range *m {
		if t.below == 0 || audience < t.below {
			return int64(i)
		}
	}
	return int64(len(*m) - 1)
}

// beyond tells whether the audience has left the tier by the margin.
func (m *tiered) beyond(at, audience int64) bool {
	if upper := (*m)[at].below; upper != 0 && audience-upper >= upper*tierMargin/100 {
		return true
	}
	if at == 0 {
		return false
	}
	lower := (*m)[at-1].below
	return audience < lower-lower*tierMargin/100
}

func (m *tiered) change(c []int64, to, at int64) {
	from := m.rate(c)
	level := from.level(c, at)
	c[tierCell] = to
	now := m.rate(c)
	now.hold(c, levelAfter(&now.unitShares, &from.unitShares, level))
	now.back(c, at)
}

func (m *tiered) terms(of *rule, path string, faults *Faults) []Terms {
	var terms []Terms
	for i := range *m {
		terms = append(terms, of.quota.bucket(&of.spec.Tiers[i].Limit, &(*m)[i].rate, join(path, fmt.Sprintf("tiers[%d]", i)), faults))
	}
	return terms
}
