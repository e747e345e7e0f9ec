package limit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Kind is how a quota counts over several nodes.
type Kind uint8

// The kinds. A sliding window or log counts what was granted during its length
// and the lease, so that what was used within any length is within the size.
const (
	KindBucket Kind = iota
	KindFixed
	KindSliding
	KindLog
	KindSlots
)

// Terms are the numbers of a rule, the same from every node that has the same
// rule set. Amounts are in shares, of which a token has a whole number.
type Terms struct {
	Kind Kind
	// Size is the burst or the quota, in shares, 1 to MaxShares.
	Size int64
	// Num shares are refilled in Den microseconds; lowest terms; Num may be 0.
	// Size*Den is at most 1<<52, so that a double counts it exactly. Buckets.
	Num, Den int64
	// Start is what a key holds that nobody has asked before, in shares.
	Start int64
	// Length is the window's, the longest hold of a slot. Not for buckets.
	Length time.Duration
}

// Quota is what a rule with cluster: true grants over all nodes. It is
// immutable. Amounts are in shares, of which a token has Scale: the fewest that
// make every role's part of a token whole. The rule's own units are finer.
type Quota struct {
	Scope Scope
	Kind  Kind
	Scale int64
	Terms []Terms // by tier; one when the rule has none
	Unit  []int64 // shares that a token costs, by class of role
	Fold  bool
	// Tiers tells that Terms follow the audience.
	Tiers bool

	// Claims tells that one node may have the bucket for itself, Single that
	// decisions draw what they need and no more: so do joins of users and
	// addresses, that none waits for the node where its user was before.
	Claims, Single bool
	// OnOutage is what the rule does while the nodes can't agree, Grace how long
	// OutageOpen stays open.
	OnOutage OnOutage
	Grace    time.Duration

	// suffix ends the key. It tells apart what cannot go on with the same
	// level: another way to count, another scale.
	suffix string
	// first is where the rule's parts begin among its subject's; there is one
	// for each floor, in tokens.
	first   int
	floors  []int64
	floorOf [actionCount]uint8
}

// OnOutage is what a rule with cluster: true does while its nodes can't agree.
type OnOutage uint8

// The ways: each node has its part; everything passes for Quota.Grace, then
// each has its part; nothing passes.
const (
	OutageShare OnOutage = iota
	OutageOpen
	OutageClosed
)

var onOutageNames = []string{"share", "open", "closed"}

// defaultGrace is how long "open" stays open when the rule does not say.
const defaultGrace = 10 * time.Second

// The bounds within which every number a store computes with is below 1<<53,
// where a double is still exact.
const (
	MaxShares = 1 << 40
	maxLevel  = 1 << 52
	maxSpell  = 800 * 24 * time.Hour
)

// minWindow keeps a lease's round trip short beside the window it is of.
const minWindow = 100 * time.Millisecond

// Validate returns what is wrong with the terms, nil when nothing is.
func (t *Terms) Validate() error {
	switch {
	case t.Kind > KindSlots:
		return fmt.Errorf("kind %d is unknown", t.Kind)
	case t.Size < 1 || t.Size > MaxShares || t.Start < 0 || t.Start > t.Size:
		return fmt.Errorf("size %d and start %d are out of range", t.Size, t.Start)
	case t.Kind == KindBucket:
		if t.Num < 0 || t.Num > maxLevel || t.Den < 1 || t.Size > maxLevel/t.Den {
			return fmt.Errorf("%d shares in %d µs are out of range", t.Num, t.Den)
		}
	case t.Kind != KindSlots && (t.Length < time.Millisecond || t.Length > maxSpell):
		return fmt.Errorf("a window lasts 1 ms to %s, this one %s", maxSpell, t.Length)
	}
	return nil
}

// Comes is how many shares come in a time, rounded down.
func (t *Terms) Comes(in time.Duration) int64 {
	if in <= 0 || t.Num == 0 {
		return 0
	}
	return scale(int64(in/time.Microsecond), t.Num, t.Den, 0)
}

// Takes is how long shares take to come, Never when none do.
func (t *Terms) Takes(shares int64) time.Duration {
	if t.Num == 0 {
		return Never
	}
	return time.Duration(min(scale(shares, t.Den, t.Num, 1), int64(Never/time.Microsecond))) * time.Microsecond
}

// Fills is how long an empty bucket takes to fill, or a window to pass.
func (t *Terms) Fills() time.Duration {
	if t.Kind != KindBucket {
		return t.Length
	}
	return t.Takes(t.Size)
}

// floorAt returns which of the rule's floors one is.
func (q *Quota) floorAt(floor int64) int { return slices.Index(q.floors, floor) }

// compileQuota checks whether what the rule grants, which is right for one node,
// has a form over all.
func (r *rule) compileQuota(path string, faults *Faults) {
	units := r.meter.shares(make([]int64, r.meter.width()))
	q := &Quota{Scope: r.scope, Scale: 1, Fold: r.fold, Tiers: r.tiers != nil, Grace: time.Duration(r.spec.Grace), floors: []int64{0}}
	for _, u := range units.unit {
		m := units.whole / u
		q.Scale *= m / gcd(m, q.Scale)
	}
	for _, u := range units.unit {
		q.Unit = append(q.Unit, q.Scale/(units.whole/u))
	}
	q.OnOutage = OnOutage(max(slices.Index(onOutageNames, r.spec.OnOutage), 0))
	for a, floor := range r.floor {
		if !slices.Contains(q.floors, floor) {
			q.floors = append(q.floors, floor)
		}
		q.floorOf[a] = uint8(q.floorAt(floor))
	}
	r.quota = q
	q.Terms = r.meter.terms(r, path, faults)
	q.Kind = q.Terms[0].Kind
	joins := slices.Contains(r.spec.Action, Join.String())
	q.Single = joins && r.scope != ScopeRoom && r.scope != ScopeGlobal
	q.Claims = q.Kind == KindBucket && !joins && (r.scope == ScopeUser || r.scope == ScopeUserRoom) && r.queue == nil && len(q.floors) == 1
	q.suffix = ":" + r.name + ":" + string("bfwlc"[q.Kind]) + strconv.FormatInt(q.Scale, 10)
}

// bucket returns the terms of a token bucket: Num/Den is rate*scale shares per
// per, in microseconds.
func (q *Quota) bucket(l *Limit, m *rate, path string, faults *Faults) Terms {
	const microsecond = int64(time.Microsecond)
	num, den := int64(0), int64(1)
	if l.Rate > 0 {
		per := int64(l.Per)
		if l.Rate > math.MaxInt64/q.Scale/microsecond {
			faults.add(join(path, "rate"), "%d with these multipliers cannot be counted exactly over all nodes", l.Rate)
			return Terms{Den: 1}
		}
		num, den = l.Rate*q.Scale*microsecond, per
		g := gcd(num, den)
		num, den = num/g, den/g
	}
	t := Terms{Kind: KindBucket, Size: q.size(l.Burst, path, faults), Num: num, Den: den}
	if t.Size > maxLevel/den {
		faults.add(join(path, "burst"), "%d per %s with burst %d and these multipliers cannot be counted exactly over all nodes; take a rounder rate, a shorter per or a smaller burst", l.Rate, l.Per, l.Burst)
	}
	t.Start = t.Size - scale(m.absent, q.Scale, max(m.whole, 1), 1)
	return t
}

func (q *Quota) size(burst int64, path string, faults *Faults) int64 {
	if burst > MaxShares/q.Scale {
		faults.add(join(path, "burst"), "want at most %d over all nodes with these multipliers, have %d", MaxShares/q.Scale, burst)
		return 1
	}
	return burst * q.Scale
}

func (q *Quota) window(kind Kind, u *unitShares, length int64, path string, faults *Faults) []Terms {
	size := q.size(u.size/max(u.whole, 1), join(path, "rate"), faults)
	if length < int64(minWindow) {
		faults.add(join(path, "per"), "want %s or more over all nodes, have %s", minWindow, time.Duration(length))
	}
	if length%int64(time.Microsecond) != 0 {
		faults.add(join(path, "per"), "want whole microseconds over all nodes, have %s", time.Duration(length))
	}
	return []Terms{{Kind: kind, Size: size, Start: size, Length: time.Duration(length), Den: 1}}
}
