package limit

import (
	"slices"
	"time"
)

// algorithm is a way to count that rules can name: one line of the table, one
// type that is its meter, one file.
type algorithm struct {
	name string
	// compile checks the numbers of a rule, fills in their defaults and returns
	// what counts by them, also when there are faults. times says, by class of
	// role, how many times the limit it has.
	compile func(r *rule, path string, times []int64, faults *Faults) meter
}

// The names of the algorithms, as rules write them.
const (
	tokenBucketName   = "token_bucket"
	leakyBucketName   = "leaky_bucket"
	fixedWindowName   = "fixed_window"
	slidingWindowName = "sliding_window"
	slidingLogName    = "sliding_log"
	concurrencyName   = "concurrency"
)

var algorithms = [...]algorithm{
	{tokenBucketName, compileBucket},
	{leakyBucketName, compileQueue},
	{fixedWindowName, compileFixedWindow},
	{slidingWindowName, compileSlidingWindow},
	{slidingLogName, compileSlidingLog},
	{concurrencyName, compileSlots},
}

// algorithmOf returns the algorithm of a name; ok is false, and it is the token
// bucket, when there is none.
func algorithmOf(name string) (a algorithm, ok bool) {
	i := slices.IndexFunc(algorithms[:], func(a algorithm) bool { return a.name == name })
	return algorithms[max(i, 0)], i >= 0
}

func algorithmNames() (names []string) {
	for _, a := range algorithms {
		names = append(names, a.name)
	}
	return names
}

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

// keeper is a meter that can go on with what another of its kind has counted,
// when only their limits differ. keep reports whether it did.
type keeper interface {
	keep(c []int64, was meter, old []int64) bool
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

// setter is a meter that can be brought to any level; others are only ever lowered.
type setter interface {
	set(c []int64, at, level int64)
}

// setLevel brings cells to a level, at most the size.
func setLevel(m meter, c []int64, at, level int64) {
	if s, ok := m.(setter); ok {
		s.set(c, at, level)
	} else if above := m.level(c, at) - level; above > 0 {
		m.take(c, at, above)
	}
}
