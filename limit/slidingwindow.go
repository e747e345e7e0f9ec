package limit

import "time"

// slidingWindow weighs two fixed windows: what the present one has used, and
// of the one before the share that a window ending now still covers. Choose it
// for quotas per time without a fixed window's double burst, where an exact
// log would be too large: it takes the past window as evenly spread, so that a
// true window may hold up to twice the quota in the worst case, and rarely
// holds more than a few percent over. (Cloudflare, "How we built rate limiting
// capable of scaling to millions of domains", 2017.)
//
// Its cells: those of the fixed window, and what the window before has used.
type slidingWindow struct{ fixedWindow }

const pastCell = 2

var _ meter = (*slidingWindow)(nil)

func compileSlidingWindow(r *rule, path string, times []int64, faults *Faults) meter {
	return &slidingWindow{r.compileWindow(path, times, faults)}
}

func (m *slidingWindow) width() int { return 3 }

func (m *slidingWindow) start(c []int64, epoch Instant) {
	m.fixedWindow.start(c, epoch)
	c[pastCell] = 0
}

// windows returns where the window of a reading began, what it has used and
// what the one before has.
func (m *slidingWindow) windows(c []int64, at int64) (began, used, past int64) {
	began, used = m.window(c, at)
	switch began - c[beganCell] {
	case 0:
		return began, used, c[pastCell]
	case m.length:
		return began, 0, c[usedCell]
	}
	return began, 0, 0
}

func (m *slidingWindow) level(c []int64, at int64) int64 {
	began, used, past := m.windows(c, at)
	return m.size - used - m.weight(past, max(at-began, 0))
}

// weight is what counts of past so far into the next window, rounded up.
func (m *slidingWindow) weight(past, into int64) int64 {
	return scale(past, m.length-into, m.length, 1)
}

// wait finds the instant at which the weight of the window before, or after
// the present one's end the weight of the present one, leaves room.
func (m *slidingWindow) wait(c []int64, at, need int64) time.Duration {
	began, used, past := m.windows(c, at)
	if room := m.size - used - need; room >= 0 {
		return time.Duration(began + m.lighter(past, room) - at)
	}
	return time.Duration(began + m.length + m.lighter(used, m.size-need) - at)
}

// lighter returns how far into a window the weight of the past is at most room.
func (m *slidingWindow) lighter(past, room int64) int64 {
	if past <= room {
		return 0
	}
	return m.length - scale(room, m.length, past, 0)
}

func (m *slidingWindow) take(c []int64, at, units int64) {
	began, used, past := m.windows(c, at)
	c[beganCell], c[usedCell], c[pastCell] = began, used+units, past
}

func (m *slidingWindow) full(c []int64, at int64) bool { return m.level(c, at) == m.size }

func (m *slidingWindow) shift(c []int64, ahead uint64) {
	end := c[beganCell] + m.length
	began, used := m.shifted(c[beganCell], c[usedCell], ahead)
	switch {
	case end > 0 && ahead < uint64(end):
	case end+m.length > 0 && ahead < uint64(end+m.length):
		c[pastCell] = c[usedCell]
	default:
		c[pastCell] = 0
	}
	c[beganCell], c[usedCell] = began, used
}

// keep has both windows go on that were counted under another limit.
func (m *slidingWindow) keep(c []int64, was meter, old []int64) bool {
	o, ok := was.(*slidingWindow)
	if !ok || !m.fixedWindow.keep(c, &o.fixedWindow, old) {
		return false
	}
	c[pastCell] = scale(old[pastCell], m.whole, o.whole, 1)
	return true
}

func (m *slidingWindow) same(other meter) bool {
	o, ok := other.(*slidingWindow)
	return ok && m.fixedWindow.same(&o.fixedWindow)
}

func (m *slidingWindow) terms(of *rule, path string, faults *Faults) []Terms {
	return of.quota.window(KindSliding, &m.unitShares, m.length, path, faults)
}
