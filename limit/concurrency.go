package limit

import (
	"math"
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
