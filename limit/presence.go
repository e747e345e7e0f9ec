package limit

import "time"

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

// enterLocked counts in what a decision admitted. The subjects are locked.
func enterLocked(a Action, subjects []*Subject) {
	for _, s := range subjects {
		if s.Scope.brings() == a {
			s.here++
		}
	}
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
