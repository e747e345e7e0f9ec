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
	// maxNum keeps a reach of a second at least.
	maxNum = maxSpanUnits / int64(time.Second)
	// maxSlots bounds what one subject keeps for a concurrency rule.
	maxSlots = 1000
)

// compileRule checks one rule and compiles it as far as it is right.
func compileRule(spec Rule, path string, classes []string, faults *Faults) *rule {
	before := len(*faults)
	r := &rule{name: spec.Name, spec: &spec, room: spec.Room, fold: spec.Fold, shadow: spec.Shadow}
	at := func(key string) string { return join(path, key) }
	checkName(spec.Name, at("name"), faults)
	checkActions(spec.Action, at("action"), faults)
	scope, ok := ParseScope(spec.Scope)
	if !ok {
		faults.add(at("scope"), "want one of %v, have %q", scopeNames, spec.Scope)
	}
	r.scope = scope
	r.compileRank(classes)
	r.compileCost(at, faults)
	r.compileMeter(path, r.multipliers(at, classes, faults), faults)
	r.compileFloor(at, faults)
	r.compileExempt(at, classes, faults)
	r.compileCrowd(at, faults)
	r.compileCluster(at, faults)
	if r.spec.Cluster && len(*faults) == before {
		r.compileQuota(path, faults)
	}
	main, isBucket := r.meter.(*rate)
	r.plain = isBucket && !r.byRequest && !r.fold && !r.shadow && r.floor == [actionCount]int64{} &&
		r.second == nil && !r.spares
	if r.plain {
		r.main = *main
	}
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
		r.rank.specific += 2
		r.roles = classBits(r.spec.Role, classes)
	}
	if len(r.spec.Where) > 0 {
		r.rank.specific++
	}
	switch {
	case r.room == "":
	case slices.Contains([]byte(r.room), '*'):
		r.rank.specific += 4
	default:
		r.rank.specific += 8
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

func (r *rule) compileFloor(at func(string) string, faults *Faults) {
	for _, name := range sortedKeys(r.spec.Floor) {
		n := r.spec.Floor[name]
		i, ok := indexOf(actionNames[:], name)
		switch {
		case !ok || !slices.Contains(r.spec.Action, name):
			faults.add(at("floor."+name), "the rule does not cover that action")
		case n < 0 || n >= r.leastBurst():
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
	r.spares = r.exempt != 0 || r.users != nil || r.networks != nil
}

func (r *rule) compileCluster(at func(string) string, faults *Faults) {
	if r.spec.OnOutage != "" && !slices.Contains(onOutageNames, r.spec.OnOutage) {
		faults.add(at("on_outage"), "want share, open or closed, have %q", r.spec.OnOutage)
	}
	if r.spec.Grace < 0 || r.spec.Grace != 0 && r.spec.OnOutage != "open" {
		faults.add(at("grace"), "want a time of 0 or more, and only with on_outage: open")
	}
	if r.spec.OnOutage == "open" && r.spec.Grace == 0 {
		r.spec.Grace = Duration(defaultGrace)
	}
	if r.spec.Cluster && r.scope == ScopeConn {
		faults.add(at("cluster"), "a connection is on one node; this scope has no form over all")
	}
}

// compileMeter checks the numbers by the algorithm and fills in their defaults.
func (r *rule) compileMeter(path string, times []int64, faults *Faults) {
	at := func(key string) string { return join(path, key) }
	spec := r.spec
	if spec.Algorithm == "" {
		spec.Algorithm = tokenBucketName
	}
	a, ok := algorithmOf(spec.Algorithm)
	if !ok {
		faults.add(at("algorithm"), "want one of %v, have %q", algorithmNames(), spec.Algorithm)
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
	r.meter = a.compile(r, path, times, faults)
}

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

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }
