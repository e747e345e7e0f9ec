package limit

import (
	"fmt"
	"maps"
	"net/netip"
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
	// maxNum keeps a span of a second at least.
	maxNum = maxSpanUnits / int64(time.Second)
)

const tokenBucket = "token_bucket"

// compileRule checks one rule and compiles it as far as it is right.
func compileRule(spec Rule, path string, classes []string, faults *Faults) *rule {
	r := &rule{name: spec.Name, spec: &spec, room: spec.Room, fold: spec.Fold, shadow: spec.Shadow, initial: -1}
	at := func(key string) string { return join(path, key) }
	checkName(spec.Name, at("name"), faults)
	checkActions(spec.Action, at("action"), faults)
	scope, ok := ParseScope(spec.Scope)
	if !ok {
		faults.add(at("scope"), "want one of %v, have %q", scopeNames, spec.Scope)
	}
	r.scope = scope
	if spec.Algorithm == "" {
		spec.Algorithm = tokenBucket
	}
	if spec.Algorithm != tokenBucket {
		faults.add(at("algorithm"), "want %s, have %q", tokenBucket, spec.Algorithm)
	}
	r.compileRank(classes)
	r.compileCost(at, faults)
	r.compileLimits(path, at, classes, faults)
	r.compileFloor(at, faults)
	r.compileExempt(at, classes, faults)
	r.compileOutage(at, faults)
	r.plain = !r.byRequest && !r.fold && !r.shadow && r.floor == [actionCount]int64{} &&
		r.tiers == nil && r.second == nil && r.exempt == 0 && r.users == nil && r.networks == nil
	return r
}

func checkName(name, path string, faults *Faults) {
	ok := len(name) >= 1 && len(name) <= 64
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		faults.add(path, "want 1 to 64 of a-z, 0-9, - and _, have %.70q", name)
	}
}

func checkActions(actions StringList, path string, faults *Faults) {
	if len(actions) == 0 {
		faults.add(path, "want at least one action")
	}
	for i, name := range actions {
		if _, _, ok := parseAction(name); !ok {
			faults.add(path, "want some of %v or api:<route template>, have %q", actionNames, name)
		}
		if slices.Contains(actions[:i], name) {
			faults.add(path, "%q stands twice", name)
		}
	}
}

func (r *rule) compileRank(classes []string) {
	r.rank.priority = r.spec.Priority
	r.roles = ^uint64(0)
	if len(r.spec.Role) > 0 {
		r.rank.specific++
		r.roles = classBits(r.spec.Role, classes)
	}
	switch {
	case r.room == "":
	case slices.Contains([]byte(r.room), '*'):
		r.rank.specific += 2
	default:
		r.rank.specific += 4
	}
}

func classBits(roles, classes []string) uint64 {
	var set uint64
	for _, role := range roles {
		if i := slices.Index(classes, role); i >= 0 {
			set |= 1 << i
		}
	}
	return set
}

func (r *rule) compileCost(at func(string) string, faults *Faults) {
	switch r.spec.Cost {
	case "":
		r.spec.Cost = "1"
	case "1":
	case "value", "count":
		r.byRequest = true
	default:
		faults.add(at("cost"), "want 1, value or count, have %q", r.spec.Cost)
	}
	if r.fold && r.spec.Degrade != nil {
		faults.add(at("fold"), "a rule either folds or has a degrade bucket, not both")
	}
}

func (r *rule) compileLimits(path string, at func(string) string, classes []string, faults *Faults) {
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
	if len(r.spec.Tiers) > 0 {
		r.compileTiers(at, times, faults)
	} else {
		r.main = compileLimit(&r.spec.Limit, path, times, faults)
	}
	if r.spec.Degrade != nil {
		second := *r.spec.Degrade
		m := compileLimit(&second, at("degrade"), times, faults)
		r.second, r.spec.Degrade = &m, &second
	}
	if r.spec.Initial != nil {
		r.initial = *r.spec.Initial
		if r.initial < 0 || r.initial > maxBurst {
			faults.add(at("initial"), "want 0 to %d, have %d", int64(maxBurst), r.initial)
			r.initial = 0
		}
	}
}

func (r *rule) compileTiers(at func(string) string, times []int64, faults *Faults) {
	if r.spec.Limit != (Limit{}) {
		faults.add(at("rate"), "a rule has either rate, per and burst, or tiers")
	}
	tiers := slices.Clone(r.spec.Tiers)
	r.spec.Tiers = tiers
	for i := range tiers {
		path := at(fmt.Sprintf("tiers[%d]", i))
		last := i == len(tiers)-1
		switch below := tiers[i].Below; {
		case last && below != 0:
			faults.add(path+".below", "the last tier has no upper bound, have %d", below)
		case !last && below < 10:
			faults.add(path+".below", "want 10 or more, have %d", below)
		case i > 0 && !last && below <= tiers[i-1].Below:
			faults.add(path+".below", "want more than the tier before, have %d", below)
		}
		m := compileLimit(&tiers[i].Limit, path, times, faults)
		r.tiers = append(r.tiers, tier{below: tiers[i].Below, rate: m})
	}
	r.main = r.tiers[0].rate
}

// compileLimit checks one limit and fills in its defaults.
func compileLimit(l *Limit, path string, times []int64, faults *Faults) rate {
	if l.Per == 0 {
		l.Per = Duration(time.Second)
	}
	before := len(*faults)
	if l.Rate < 0 || l.Rate > maxRate {
		faults.add(join(path, "rate"), "want 0 to %d, have %d", maxRate, l.Rate)
	}
	if l.Per < minPer || l.Per > maxPer {
		faults.add(join(path, "per"), "want %s to %s, have %s", minPer, maxPer, l.Per)
	}
	if l.Burst < 1 || l.Burst > maxBurst {
		faults.add(join(path, "burst"), "want 1 to %d, have %d", int64(maxBurst), l.Burst)
	}
	if len(*faults) > before {
		return rate{den: 1, unit: times, most: times}
	}
	m, ok := newRate(l.Rate, time.Duration(l.Per), l.Burst, times)
	if !ok || m.num > maxNum {
		faults.add(join(path, "burst"), "%d per %s with burst %d and these multipliers cannot be counted exactly in 64 bits; take a rounder rate, a shorter per or a smaller burst", l.Rate, l.Per, l.Burst)
	}
	return m
}

// smallest returns the least burst in force, in tokens.
func (r *rule) smallest() int64 {
	least := r.main.size / r.main.den
	for i := range r.tiers {
		least = min(least, r.tiers[i].rate.size/r.tiers[i].rate.den)
	}
	return least
}

// span is the smallest span of the rule's rates, in nanoseconds.
func (r *rule) span() int64 {
	span := r.main.span
	for i := range r.tiers {
		span = min(span, r.tiers[i].rate.span)
	}
	if r.second != nil {
		span = min(span, r.second.span)
	}
	return span
}

func (r *rule) compileFloor(at func(string) string, faults *Faults) {
	for _, name := range sortedKeys(r.spec.Floor) {
		n := r.spec.Floor[name]
		i, ok := indexOf(actionNames[:], name)
		switch {
		case !ok || !slices.Contains(r.spec.Action, name):
			faults.add(at("floor."+name), "the rule does not cover that action")
		case n < 0 || n >= max(r.smallest(), 1):
			faults.add(at("floor."+name), "want 0 to less than the burst, have %d", n)
		default:
			r.floor[i] = n
		}
	}
}

func (r *rule) compileExempt(at func(string) string, classes []string, faults *Faults) {
	r.exempt = classBits(r.spec.Exempt.Roles, classes)
	for _, user := range r.spec.Exempt.Users {
		if r.users == nil {
			r.users = map[string]struct{}{}
		}
		r.users[user] = struct{}{}
	}
	for i, text := range r.spec.Exempt.Networks {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			faults.add(at(fmt.Sprintf("exempt.networks[%d]", i)), "want a prefix like 10.0.0.0/8, have %q", text)
			continue
		}
		r.networks = append(r.networks, prefix.Masked())
	}
}

func (r *rule) compileOutage(at func(string) string, faults *Faults) {
	switch r.spec.OnOutage {
	case "", "share", "open", "closed":
	default:
		faults.add(at("on_outage"), "want share, open or closed, have %q", r.spec.OnOutage)
	}
	if r.spec.Grace < 0 || r.spec.Grace != 0 && r.spec.OnOutage != "open" {
		faults.add(at("grace"), "want a time of 0 or more, and only with on_outage: open")
	}
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }
