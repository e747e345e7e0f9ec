package limit

import "time"

// fixedWindow grants so much in each window of the clock, from a multiple of
// its length to the next. Choose it for quotas that people read off a clock
// ("a hundred a day"); two quotas fit around a window's end. A reading from an
// earlier window counts in the present one.
//
// Its cells: where the window began that was taken from last, and how much.
type fixedWindow struct {
	unitShares
	length int64 // nanoseconds
}

const (
	beganCell = 0
	usedCell  = 1
)

var _ meter = (*fixedWindow)(nil)

func compileFixedWindow(r *rule, path string, times []int64, faults *Faults) meter {
	m := r.compileWindow(path, times, faults)
	return &m
}

// compileWindow takes rate tokens per window of per.
func (r *rule) compileWindow(path string, times []int64, faults *Faults) fixedWindow {
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
	return fixedWindow{unitShares: newShares(l.Burst, whole, times), length: max(int64(l.Per), 1)}
}

func (m *fixedWindow) width() int                 { return 2 }
func (m *fixedWindow) reach() int64               { return maxSpanUnits }
func (m *fixedWindow) shares([]int64) *unitShares { return &m.unitShares }

func (m *fixedWindow) start(c []int64, epoch Instant) {
	c[beganCell], c[usedCell] = -modulo(int64(epoch), m.length), 0
}

// window returns where the window of a reading began, and what it has used.
func (m *fixedWindow) window(c []int64, at int64) (began, used int64) {
	if at-c[beganCell] < m.length {
		return c[beganCell], c[usedCell]
	}
	return at - (at-c[beganCell])%m.length, 0
}

func (m *fixedWindow) level(c []int64, at int64) int64 {
	_, used := m.window(c, at)
	return m.size - used
}

func (m *fixedWindow) wait(c []int64, at, _ int64) time.Duration {
	began, _ := m.window(c, at)
	return time.Duration(began + m.length - at)
}

func (m *fixedWindow) take(c []int64, at, units int64) {
	began, used := m.window(c, at)
	c[beganCell], c[usedCell] = began, used+units
}

func (m *fixedWindow) hold(c []int64, level int64) { c[usedCell] = m.size - max(level, 0) }

func (m *fixedWindow) full(c []int64, at int64) bool { return m.level(c, at) == m.size }

func (m *fixedWindow) shift(c []int64, ahead uint64) {
	c[beganCell], c[usedCell] = m.shifted(c[beganCell], c[usedCell], ahead)
}

// shifted is window for the instant ahead, relative to it.
func (m *fixedWindow) shifted(began, used int64, ahead uint64) (int64, int64) {
	if began+m.length > 0 && ahead < uint64(began+m.length) {
		return began - int64(ahead), used
	}
	into := (ahead%uint64(m.length) + uint64(modulo(-began, m.length))) % uint64(m.length)
	return -int64(into), 0
}

func (m *fixedWindow) same(other meter) bool {
	o, ok := other.(*fixedWindow)
	return ok && m.length == o.length && m.whole == o.whole && m.size == o.size
}

// keep has the window go on that was counted under another limit.
func (m *fixedWindow) keep(c []int64, was meter, old []int64) bool {
	o, ok := was.(*fixedWindow)
	if !ok || o.length != m.length {
		return false
	}
	c[beganCell], c[usedCell] = old[beganCell], scale(old[usedCell], m.whole, o.whole, 1)
	return true
}

// modulo returns a mod b in [0, b).
func modulo(a, b int64) int64 {
	if a %= b; a < 0 {
		a += b
	}
	return a
}

func (m *fixedWindow) terms(of *rule, path string, faults *Faults) []Terms {
	return of.quota.window(KindFixed, &m.unitShares, m.length, path, faults)
}
