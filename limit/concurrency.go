package limit

import (
	"math"
	"slices"
	"time"
)

// slots grants so many at a time. Choose it for work that lasts: uploads, long
// polls, exports. A slot comes back through Gate.Release, which belongs into a
// defer so that a panic or an abort gives it back, and by itself after the
// longest hold, so that an owner that died leaks none.
//
// Each cell is the instant at which a slot comes back by itself. When its
// numbers change while slots are held, those come back after the longest hold.
type slots struct {
	unitShares
	longest int64 // hold, in nanoseconds
}

// freeSlot is the cell of a slot that is free at every instant.
const freeSlot = math.MinInt64

var _ meter = (*slots)(nil)

// compileSlots takes burst slots, each held for per at the longest; those of
// sockets and members as long as they are there.
func compileSlots(r *rule, path string, times []int64, faults *Faults) meter {
	at := func(key string) string { return join(path, key) }
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
		r.here = true
		return &presence{newShares(min(max(l.Burst, 1), maxBurst), 1, times), time.Duration(l.Per)}
	}
	if l.Burst > maxSlots {
		faults.add(at("burst"), "want at most %d slots, have %d", maxSlots, l.Burst)
	}
	n := min(max(l.Burst, 1), maxSlots)
	return &slots{unitShares: newShares(n, 1, times), longest: int64(l.Per)}
}

func lasting(action string) bool {
	a, ok := ParseAction(action)
	return ok && a.Lasts()
}

func (m *slots) width() int                 { return int(m.size) }
func (m *slots) reach() int64               { return maxSpanUnits }
func (m *slots) shares([]int64) *unitShares { return &m.unitShares }

func (m *slots) start(c []int64, _ Instant) {
	for i := range m.size {
		c[i] = freeSlot
	}
}

func (m *slots) level(c []int64, at int64) int64 {
	free := int64(0)
	for _, until := range c[:m.size] {
		if until <= at {
			free++
		}
	}
	return free
}

// wait is the time until the slots come back by themselves; a release may
// bring them sooner. It is the one meter whose answer is an upper bound.
func (m *slots) wait(c []int64, at, need int64) time.Duration {
	for t := at; ; {
		next := int64(math.MaxInt64)
		for _, until := range c[:m.size] {
			if until > t {
				next = min(next, until)
			}
		}
		t = next
		if m.level(c, t) >= need || t == math.MaxInt64 {
			return time.Duration(t - at)
		}
	}
}

func (m *slots) take(c []int64, at, units int64) {
	for i := range c[:m.size] {
		if units > 0 && c[i] <= at {
			c[i] = at + m.longest
			units--
		}
	}
}

// release frees so many slots of those taken at an instant, and reports
// whether there were any.
func (m *slots) release(c []int64, taken, units int64) bool {
	found := false
	for i := range c[:m.size] {
		if units > 0 && c[i] == taken+m.longest {
			c[i] = freeSlot
			units--
			found = true
		}
	}
	return found
}

func (m *slots) hold(c []int64, level int64) {
	m.take(c, 0, m.size-max(level, 0))
}

func (m *slots) full(c []int64, at int64) bool { return m.level(c, at) == m.size }

func (m *slots) shift(c []int64, ahead uint64) {
	for i, until := range c[:m.size] {
		if until != freeSlot {
			c[i] = earlier(until, ahead)
		}
	}
}

func (m *slots) same(other meter) bool {
	o, ok := other.(*slots)
	return ok && m.size == o.size && m.longest == o.longest
}

func (m *slots) terms(of *rule, path string, faults *Faults) []Terms {
	if of.byRequest || of.fold || len(of.quota.floors) > 1 {
		faults.add(join(path, "cluster"), "slots over all nodes cost one each and know no fold and no floor")
	}
	return []Terms{{Kind: KindSlots, Size: m.size, Start: m.size, Length: time.Duration(m.longest), Den: 1}}
}

// presence grants so many places to what is there: sockets that are connected,
// members that have joined. It is what algorithm concurrency means for Connect
// and Join, whose holders stay for hours: one count instead of an instant for
// each, and no longest hold. The count is kept with the Subject for every rule
// set, so a rule counts those who were there before it.
//
// Its cell: how many are there, written before each question.
type presence struct {
	unitShares
	retry time.Duration // told to who finds no place; nobody knows when one leaves
}

var _ meter = (*presence)(nil)

func (m *presence) width() int                               { return 1 }
func (m *presence) reach() int64                             { return maxSpanUnits }
func (m *presence) shares([]int64) *unitShares               { return &m.unitShares }
func (m *presence) start(c []int64, _ Instant)               { c[0] = 0 }
func (m *presence) level(c []int64, _ int64) int64           { return m.size - c[0] }
func (m *presence) wait([]int64, int64, int64) time.Duration { return m.retry }
func (m *presence) take([]int64, int64, int64)               {} // the Gate counts, whatever the rules say
func (m *presence) hold(c []int64, level int64)              { c[0] = m.size - level }
func (m *presence) full([]int64, int64) bool                 { return true } // the owner knows who is there
func (m *presence) shift([]int64, uint64)                    {}

func (m *presence) same(other meter) bool {
	_, ok := other.(*presence)
	return ok
}

// Lasts tells whether what was admitted is there from then on, until
// Gate.Release: a socket or a member.
func (a Action) Lasts() bool { return a == Join || a == Connect }

// brings returns the action whose holders a subject of the scope counts: an
// address and a network count sockets, whatever else counts members.
func (s Scope) brings() Action {
	if s == ScopeIP || s == ScopeNet {
		return Connect
	}
	return Join
}

// exitLocked counts one out.
func (s *Subject) exitLocked(a Action) {
	if s.Scope.brings() == a && s.here > 0 {
		s.here--
	}
}

func (m *presence) terms(_ *rule, path string, faults *Faults) []Terms {
	faults.add(join(path, "cluster"), "who is there is counted by each node; slots of connect and join have no form over all nodes")
	return []Terms{{Kind: KindSlots, Size: m.size, Start: m.size, Length: time.Second, Den: 1}}
}
