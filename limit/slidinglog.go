package limit

import (
	"math"
	"slices"
	"time"
)

// slidingLog remembers each grant for the length of the window: exactly so
// much in any window. Choose it for small quotas where neither a burst beyond
// nor a token early is acceptable; it costs two cells for each token of the
// quota in every subject, hence the cap. A grant at one instant and one a
// window later do not meet.
//
// Its cells: how many grants there are, and where the oldest is in a ring of
// instants and units.
type slidingLog struct {
	unitShares
	length int64 // nanoseconds
	places int64 // grants that can be remembered at a time
}

const (
	countCell = 0
	headCell  = 1
	ringCell  = 2

	// maxPlaces caps the log.
	maxPlaces = 1000
)

var _ meter = (*slidingLog)(nil)

func compileSlidingLog(r *rule, path string, times []int64, faults *Faults) meter {
	w := r.compileWindow(path, times, faults)
	places := w.size / slices.Min(w.unit)
	if places > maxPlaces {
		faults.add(join(path, "rate"), "a log remembers at most %d grants, have %d with the multipliers; take sliding_window", maxPlaces, places)
		places = 1
	}
	return &slidingLog{unitShares: w.unitShares, length: w.length, places: places}
}

func (m *slidingLog) width() int                 { return ringCell + 2*int(m.places) }
func (m *slidingLog) reach() int64               { return maxSpanUnits }
func (m *slidingLog) shares([]int64) *unitShares { return &m.unitShares }
func (m *slidingLog) start(c []int64, _ Instant) { c[countCell], c[headCell] = 0, 0 }

// grant returns the cells of the i-th oldest grant: its instant and its units.
func (m *slidingLog) grant(c []int64, i int64) []int64 {
	at := ringCell + 2*((c[headCell]+i)%m.places)
	return c[at : at+2]
}

// expired returns how many of the oldest grants have left the window.
func (m *slidingLog) expired(c []int64, at int64) int64 {
	for i := range c[countCell] {
		if g := m.grant(c, i); at-m.length < g[0] {
			return i
		}
	}
	return c[countCell]
}

func (m *slidingLog) level(c []int64, at int64) int64 {
	level := m.size
	for i := m.expired(c, at); i < c[countCell]; i++ {
		level -= m.grant(c, i)[1]
	}
	return level
}

func (m *slidingLog) wait(c []int64, at, need int64) time.Duration {
	level := m.level(c, at)
	for i := m.expired(c, at); i < c[countCell]; i++ {
		g := m.grant(c, i)
		if level += g[1]; level >= need {
			return time.Duration(g[0] + m.length - at)
		}
	}
	return Never
}

// take remembers a grant. An older reading counts at the latest instant there
// is, so that the ring stays in order. Only a reload that left a fraction of a
// token can fill the ring; the last grant then takes the new one in.
func (m *slidingLog) take(c []int64, at, units int64) {
	gone := m.expired(c, at)
	c[countCell] -= gone
	c[headCell] = (c[headCell] + gone) % m.places
	if n := c[countCell]; n > 0 {
		last := m.grant(c, n-1)
		if at = max(at, last[0]); at == last[0] || n == m.places {
			last[0], last[1] = at, last[1]+units
			return
		}
	}
	g := m.grant(c, c[countCell])
	g[0], g[1] = at, units
	c[countCell]++
}

func (m *slidingLog) hold(c []int64, level int64) {
	if used := m.size - max(level, 0); used > 0 {
		m.take(c, 0, used)
	}
}

func (m *slidingLog) full(c []int64, at int64) bool { return m.expired(c, at) == c[countCell] }

func (m *slidingLog) shift(c []int64, ahead uint64) {
	for i := range c[countCell] {
		g := m.grant(c, i)
		g[0] = earlier(g[0], ahead)
	}
}

// keep remembers every grant that was made under another limit.
func (m *slidingLog) keep(c []int64, was meter, old []int64) bool {
	o, ok := was.(*slidingLog)
	if !ok || o.length != m.length {
		return false
	}
	for i := range old[countCell] {
		g := o.grant(old, i)
		m.take(c, g[0], scale(g[1], m.whole, o.whole, 1))
	}
	return true
}

func (m *slidingLog) same(other meter) bool {
	o, ok := other.(*slidingLog)
	return ok && m.length == o.length && m.places == o.places && m.whole == o.whole && m.size == o.size
}

// earlier returns t - by, not below half of the range.
func earlier(t int64, by uint64) int64 {
	if by > math.MaxInt64/2 || t < math.MinInt64/2+int64(by) {
		return math.MinInt64 / 2
	}
	return t - int64(by)
}

func (m *slidingLog) terms(of *rule, path string, faults *Faults) []Terms {
	return of.quota.window(KindLog, &m.unitShares, m.length, path, faults)
}
