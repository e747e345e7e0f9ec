package limit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// shared is what a rule adds whose quota holds over all nodes. Amounts are in
// shares, of which a token has scale: the fewest that make every role's part
// of a token whole. The rule's own units are finer, perShare to one.
type shared struct {
	kind  Kind
	scale int64
	terms []Terms // by tier; one when the rule has none
	unit  []int64 // shares that a token costs, by role class
	// suffix ends the key. It tells apart what cannot go on with the same
	// level: another way to count, another scale.
	suffix string

	// first is where the rule's leases begin among its subject's; there is one
	// for each floor, in tokens.
	first   int
	floors  []int64
	floorOf [actionCount]uint8

	// claims tells that one node may have the bucket for itself, single that
	// decisions draw what they need and no more: so do joins of users and
	// addresses, that none waits for the node where its user was before.
	claims bool
	single bool
	policy policy
	grace  time.Duration
}

// policy is what a shared rule does while its store is away.
type policy uint8

const (
	policyShare policy = iota
	policyOpen
	policyClosed
)

// defaultGrace is how long "open" stays open when the rule does not say.
const defaultGrace = 10 * time.Second

// compileShared checks whether the rule's quota, which is right for one node,
// has a form over all.
func (r *rule) compileShared(path string, faults *Faults) {
	units := r.meter.shares(make([]int64, r.meter.width()))
	s := &shared{scale: 1, policy: policyShare, grace: time.Duration(r.spec.Grace)}
	for _, u := range units.unit {
		m := units.whole / u
		s.scale *= m / gcd(m, s.scale)
	}
	for _, u := range units.unit {
		s.unit = append(s.unit, s.scale/(units.whole/u))
	}
	switch r.spec.OnOutage {
	case "open":
		s.policy = policyOpen
	case "closed":
		s.policy = policyClosed
	}
	s.floors = []int64{0}
	for a, floor := range r.floor {
		if !slices.Contains(s.floors, floor) {
			s.floors = append(s.floors, floor)
		}
		s.floorOf[a] = uint8(slices.Index(s.floors, floor))
	}
	r.shared = s
	s.kind, s.terms = r.meter.share(r, path, faults)
	joins := slices.Contains(r.spec.Action, Join.String())
	s.single = joins && r.scope != ScopeRoom && r.scope != ScopeGlobal
	s.claims = s.kind == KindBucket && !joins && (r.scope == ScopeUser || r.scope == ScopeUserRoom) && r.queue == nil && len(s.floors) == 1
	s.suffix = ":" + r.name + ":" + string("bfwlc"[s.kind]) + strconv.FormatInt(s.scale, 10)
}

func (m *rate) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	return KindBucket, []Terms{r.shared.bucket(&r.spec.Limit, m, path, faults)}
}

func (m *tiered) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	var terms []Terms
	for i := range *m {
		terms = append(terms, r.shared.bucket(&r.spec.Tiers[i].Limit, &(*m)[i].rate, join(path, fmt.Sprintf("tiers[%d]", i)), faults))
	}
	return KindBucket, terms
}

func (m *fixedWindow) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	return r.shared.window(KindFixed, &m.unitShares, m.length, path, faults)
}

func (m *slidingWindow) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	return r.shared.window(KindSliding, &m.unitShares, m.length, path, faults)
}

func (m *slidingLog) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	return r.shared.window(KindLog, &m.unitShares, m.length, path, faults)
}

func (m *slots) share(r *rule, path string, faults *Faults) (Kind, []Terms) {
	if r.byRequest || r.fold || len(r.shared.floors) > 1 {
		faults.add(join(path, "cluster"), "slots over all nodes cost one each and know no fold and no floor")
	}
	return KindSlots, []Terms{{Kind: KindSlots, Size: m.size, Start: m.size, Length: time.Duration(m.longest), Num: 0, Den: 1}}
}

func (m *presence) share(_ *rule, path string, faults *Faults) (Kind, []Terms) {
	faults.add(join(path, "cluster"), "who is there is counted by each node; slots of connect and join have no form over all nodes")
	return KindSlots, []Terms{{Kind: KindSlots, Size: m.size, Start: m.size, Length: time.Second, Den: 1}}
}

// bucket returns the terms of a token bucket: Num/Den is rate*scale shares per
// per, in microseconds.
func (s *shared) bucket(l *Limit, m *rate, path string, faults *Faults) Terms {
	const microsecond = int64(time.Microsecond)
	num, den := int64(0), int64(1)
	if l.Rate > 0 {
		per := int64(l.Per)
		if l.Rate > math.MaxInt64/s.scale/microsecond {
			faults.add(join(path, "rate"), "%d with these multipliers cannot be counted exactly over all nodes", l.Rate)
			return Terms{Den: 1}
		}
		num, den = l.Rate*s.scale*microsecond, per
		g := gcd(num, den)
		num, den = num/g, den/g
	}
	t := Terms{Kind: KindBucket, Size: s.size(l.Burst, path, faults), Num: num, Den: den}
	if t.Size > maxLevel/den {
		faults.add(join(path, "burst"), "%d per %s with burst %d and these multipliers cannot be counted exactly over all nodes; take a rounder rate, a shorter per or a smaller burst", l.Rate, l.Per, l.Burst)
	}
	t.Start = t.Size - scale(m.absent, s.scale, max(m.whole, 1), 1)
	return t
}

func (s *shared) size(burst int64, path string, faults *Faults) int64 {
	if burst > maxShares/s.scale {
		faults.add(join(path, "burst"), "want at most %d over all nodes with these multipliers, have %d", maxShares/s.scale, burst)
		return 1
	}
	return burst * s.scale
}

func (s *shared) window(kind Kind, u *unitShares, length int64, path string, faults *Faults) (Kind, []Terms) {
	size := s.size(u.size/max(u.whole, 1), join(path, "rate"), faults)
	if length < int64(minWindow) {
		faults.add(join(path, "per"), "want %s or more over all nodes, have %s", minWindow, time.Duration(length))
	}
	if length%int64(time.Microsecond) != 0 {
		faults.add(join(path, "per"), "want whole microseconds over all nodes, have %s", time.Duration(length))
	}
	return kind, []Terms{{Kind: kind, Size: size, Start: size, Length: time.Duration(length), Den: 1}}
}

// minWindow keeps a lease's round trip short beside the window it is of.
const minWindow = 100 * time.Millisecond

// leases is how many leases a subject has for the rule.
func (s *shared) leases() int { return len(s.floors) }
