package limit

import (
	"fmt"
	"slices"
	"time"
)

// The ranges of a Limit.
const (
	maxRate  = 1_000_000_000
	minPer   = Duration(time.Millisecond)
	maxPer   = Duration(366 * 24 * time.Hour)
	maxBurst = 1_000_000_000_000
	maxTimes = 1000
	// maxNum keeps a reach of a second at least.
	maxNum = maxSpanUnits / int64(time.Second)
	// maxSlots bounds what one subject keeps for a concurrency rule.
	maxSlots = 1000
)

// The names of the algorithms.
const (
	tokenBucketName   = "token_bucket"
	leakyBucketName   = "leaky_bucket"
	fixedWindowName   = "fixed_window"
	slidingWindowName = "sliding_window"
	slidingLogName    = "sliding_log"
	concurrencyName   = "concurrency"
)

var algorithmNames = []string{tokenBucketName, leakyBucketName, fixedWindowName, slidingWindowName, slidingLogName, concurrencyName}

// multipliers returns, by class of role, how many times the limit it has.
func (r *rule) multipliers(at func(string) string, classes []string, faults *Faults) []int64 {
	times := make([]int64, len(classes))
	for i := range times {
		times[i] = 1
	}
	for _, role := range sortedKeys(r.spec.Multiply) {
		n := r.spec.Multiply[role]
		if n < 1 || n > maxTimes {
			faults.add(at("multiply."+role), "want 1 to %d, have %d", maxTimes, n)
			continue
		}
		if i := slices.Index(classes, role); i >= 0 {
			times[i] = n
		}
	}
	return times
}

// compileMeter checks the numbers by the algorithm and fills in their defaults.
func (r *rule) compileMeter(path string, times []int64, faults *Faults) {
	at := func(key string) string { return join(path, key) }
	spec := r.spec
	if spec.Algorithm == "" {
		spec.Algorithm = tokenBucketName
	}
	if spec.Initial != nil && (spec.Algorithm != tokenBucketName || *spec.Initial < 0 || *spec.Initial > maxBurst) {
		faults.add(at("initial"), "want 0 to %d, for a token bucket, have %d", int64(maxBurst), *spec.Initial)
	}
	if len(spec.Tiers) > 0 && spec.Algorithm != tokenBucketName {
		faults.add(at("tiers"), "only a token bucket has tiers")
	}
	if spec.Degrade != nil {
		second := *spec.Degrade
		m := compileLimit(&second, at("degrade"), times, faults)
		r.second, spec.Degrade = &m, &second
	}
	switch spec.Algorithm {
	case leakyBucketName:
		r.compileQueue(path, times, faults)
	case fixedWindowName, slidingWindowName, slidingLogName:
		r.compileWindow(path, times, faults)
	case concurrencyName:
		r.compileSlots(path, at, times, faults)
	default:
		if spec.Algorithm != tokenBucketName {
			faults.add(at("algorithm"), "want one of %v, have %q", algorithmNames, spec.Algorithm)
		}
		r.compileBucket(path, times, faults)
	}
}

func (r *rule) compileBucket(path string, times []int64, faults *Faults) {
	if len(r.spec.Tiers) > 0 {
		r.compileTiers(path, times, faults)
		return
	}
	m := compileLimit(&r.spec.Limit, path, times, faults)
	m.begin(r.spec.Initial)
	r.meter = &m
}

// begin sets what a new bucket lacks.
func (r *rate) begin(initial *int64) {
	if initial != nil && r.whole > 0 && *initial < r.size/r.whole {
		r.absent = r.size - *initial*r.whole
	}
}

func (r *rule) compileTiers(path string, times []int64, faults *Faults) {
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
	r.meter, r.tiers = &m, &m
}

func (r *rule) compileQueue(path string, times []int64, faults *Faults) {
	if r.spec.Rate == 0 {
		faults.add(join(path, "rate"), "a leaky bucket needs a rate of 1 or more")
	}
	r.queue = &leaky{compileLimit(&r.spec.Limit, path, times, faults)}
	r.meter = r.queue
}

// compileWindow takes rate tokens per window of per.
func (r *rule) compileWindow(path string, times []int64, faults *Faults) {
	l := &r.spec.Limit
	if l.Burst != 0 && l.Burst != l.Rate {
		faults.add(join(path, "burst"), "a window grants its rate; leave burst out, have %d", l.Burst)
	}
	if l.Rate == 0 {
		faults.add(join(path, "rate"), "want 1 or more")
	}
	l.Burst = max(l.Rate, 1)
	checkLimit(l, path, faults)
	whole, ok := commonMultiple(times)
	if !ok || l.Burst > maxUnits/whole {
		faults.add(join(path, "multiply"), "these multipliers cannot be counted exactly in 64 bits")
		whole, times = 1, []int64{1}
	}
	units := newShares(l.Burst, whole, times)
	window := fixedWindow{unitShares: units, length: max(int64(l.Per), 1)}
	switch r.spec.Algorithm {
	case fixedWindowName:
		r.meter = &window
	case slidingWindowName:
		r.meter = &slidingWindow{window}
	case slidingLogName:
		places := units.size / slices.Min(units.unit)
		if places > maxPlaces {
			faults.add(join(path, "rate"), "a log remembers at most %d grants, have %d with the multipliers; take sliding_window", maxPlaces, places)
			places = 1
		}
		r.meter = &slidingLog{unitShares: units, length: window.length, places: places}
	}
}

// compileSlots takes burst slots, each held for per at the longest; those of
// sockets and members as long as they are there.
func (r *rule) compileSlots(path string, at func(string) string, times []int64, faults *Faults) {
	l := &r.spec.Limit
	if l.Rate != 0 {
		faults.add(at("rate"), "slots have no rate; burst is their number, per the longest hold")
	}
	if len(r.spec.Multiply) > 0 {
		faults.add(at("multiply"), "slots are not multiplied; write a rule for the role")
	}
	checkLimit(l, path, faults)
	for i := range times {
		times[i] = 1
	}
	if slices.ContainsFunc(r.spec.Action, lasting) {
		if len(r.spec.Action) > 1 || r.byRequest || r.fold {
			faults.add(at("action"), "a rule that bounds who is there is for connect or join alone, costs 1 each and knows no fold")
		}
		if want := r.scope.brings().String(); !slices.Contains(r.spec.Action, want) {
			faults.add(at("scope"), "a %s counts who is there by %s, not by %s", r.scope, want, r.spec.Action[0])
		}
		r.meter, r.here = &presence{newShares(min(max(l.Burst, 1), maxBurst), 1, times), time.Duration(l.Per)}, true
		return
	}
	if l.Burst > maxSlots {
		faults.add(at("burst"), "want at most %d slots, have %d", maxSlots, l.Burst)
	}
	n := min(max(l.Burst, 1), maxSlots)
	r.meter = &slots{unitShares: newShares(n, 1, times), longest: int64(l.Per)}
}

func lasting(action string) bool {
	a, ok := ParseAction(action)
	return ok && a.Lasts()
}

// checkLimit checks the ranges of a limit and fills in its default.
func checkLimit(l *Limit, path string, faults *Faults) bool {
	before := len(*faults)
	if l.Per == 0 {
		l.Per = Duration(time.Second)
	}
	if l.Rate < 0 || l.Rate > maxRate {
		faults.add(join(path, "rate"), "want 0 to %d, have %d", maxRate, l.Rate)
	}
	if l.Per < minPer || l.Per > maxPer {
		faults.add(join(path, "per"), "want %s to %s, have %s", minPer, maxPer, l.Per)
	}
	if l.Burst < 1 || l.Burst > maxBurst {
		faults.add(join(path, "burst"), "want 1 to %d, have %d", int64(maxBurst), l.Burst)
	}
	return len(*faults) == before
}

// compileLimit checks a token bucket's limit and compiles it.
func compileLimit(l *Limit, path string, times []int64, faults *Faults) rate {
	if !checkLimit(l, path, faults) {
		return rate{unitShares: newShares(1, 1, times[:0])}
	}
	m, ok := newRate(l.Rate, time.Duration(l.Per), l.Burst, times)
	if !ok || m.num > maxNum {
		faults.add(join(path, "burst"), "%d per %s with burst %d and these multipliers cannot be counted exactly in 64 bits; take a rounder rate, a shorter per or a smaller burst", l.Rate, l.Per, l.Burst)
	}
	return m
}

// leastBurst returns the smallest burst the rule can have, in tokens.
func (r *rule) leastBurst() int64 {
	if r.tiers == nil {
		s := r.meter.shares(nil)
		return s.size / max(s.whole, 1)
	}
	least := int64(maxBurst)
	for _, t := range *r.tiers {
		least = min(least, t.rate.size/max(t.rate.whole, 1))
	}
	return least
}
