package limit

import (
	"math/big"
	"slices"
	"testing"
	"time"
)

// Each algorithm by itself against the same by the book. The arguments are a
// rule and when it is first asked; then each pair of bytes is a move.

func FuzzLeakyBucket(f *testing.F)   { fuzzMeter(f, leakyBucketName) }
func FuzzFixedWindow(f *testing.F)   { fuzzMeter(f, fixedWindowName) }
func FuzzSlidingWindow(f *testing.F) { fuzzMeter(f, slidingWindowName) }
func FuzzSlidingLog(f *testing.F)    { fuzzMeter(f, slidingLogName) }
func FuzzConcurrency(f *testing.F)   { fuzzMeter(f, concurrencyName) }

// The moves of a script, by the first byte of a pair; the second is how far or
// how much. A byte beyond the last move is taken modulo.
const (
	moveStep    = iota // by a power of two of nanoseconds
	moveEdge           // to an end of a window, one before or one after it
	moveTake           // as a viewer
	moveAsHost         // take with the multiplied limit
	moveShift          // the epoch to the present
	moveRelease        // a slot that was taken
	moveLook           // at an instant before
	moveCount
)

func fuzzMeter(f *testing.F, algorithm string) {
	const take, drain = moveTake, 255
	f.Add(int64(time.Second), int64(10), int64(1), int64(0), []byte{take, 3, moveStep, 29, take, drain, moveEdge, 1, take, 1})
	f.Add(int64(7*time.Second), int64(3), int64(5), int64(-1e17), []byte{take, 1, moveAsHost, 7, moveEdge, 0, take, drain, moveShift, 0, moveEdge, 2, moveLook, 33, take, 2})
	f.Add(int64(time.Millisecond), int64(60), int64(3), int64(1)<<62, []byte{take, drain, moveRelease, 0, take, 9, moveStep, 62, take, drain, moveRelease, 1, moveStep, 20, take, 1})
	f.Add(int64(maxPer), int64(1000), int64(1), int64(-1)<<63, []byte{take, drain, moveEdge, 0, take, drain, moveStep, 62, moveStep, 62, moveStep, 62, take, drain})
	f.Fuzz(func(t *testing.T, per, quota, times, start int64, moves []byte) {
		r, ref, err := meterModel(algorithm, time.Duration(per), quota, times, Instant(start))
		if err != nil {
			return
		}
		s := &script{T: t, rule: r, ref: ref, cells: make([]int64, r.meter.width()), epoch: Instant(start), now: Instant(start)}
		r.meter.start(s.cells, s.epoch)
		for i := 0; i+1 < len(moves) && i < 200; i += 2 {
			s.move(moves[i]%moveCount, moves[i+1])
			s.compare()
		}
	})
}

// script is one run of moves.
type script struct {
	*testing.T
	rule       *rule
	ref        refMeter
	cells      []int64
	epoch, now Instant
}

func (s *script) move(kind, n byte) {
	m, per := s.rule.meter, int64(s.rule.spec.Per)
	switch kind {
	case moveStep:
		s.now = s.now.Add(time.Duration(1) << (n % 63))
	case moveEdge:
		if ahead := per - modulo(int64(s.now), per) + int64(n%3) - 1; ahead > 0 {
			s.now = s.now.Add(time.Duration(ahead))
		}
	case moveTake:
		s.take(0, n)
	case moveAsHost:
		s.take(len(m.shares(s.cells).unit)-1, n)
	case moveShift:
		m.shift(s.cells, uint64(s.now)-uint64(s.epoch))
		s.epoch = s.now
	case moveRelease:
		if held, ok := s.ref.(*refSlots); ok && len(held.at) > 0 {
			i := int(n) % len(held.at)
			m.(*slots).release(s.cells, int64(held.at[i]-s.epoch), held.tokens[i].Num().Int64())
			held.release(i)
		}
	case moveLook:
		before := slices.Clone(s.cells)
		at := s.at() - 1<<(n%62)
		if at = max(at, -m.reach()); m.level(s.cells, at) > m.shares(s.cells).size {
			s.Fatalf("at %d there is more than the size", at)
		}
		m.full(s.cells, at)
		if !slices.Equal(before, s.cells) {
			s.Fatal("a look changed the cells")
		}
	}
}

// at is the present as the subject counts it.
func (s *script) at() int64 {
	at, ok := ticks(s.epoch, s.now, s.rule.meter.reach())
	if !ok {
		s.move(moveShift, 0)
		return 0
	}
	return at
}

// take takes n tokens when they are there; else the wait must be exact.
func (s *script) take(class int, n byte) {
	m, at := s.rule.meter, s.at()
	shares := m.shares(s.cells)
	units := min(int64(n), shares.most[class]) * shares.unit[class]
	switch {
	case units == 0:
	case m.level(s.cells, at) < units:
		checkWait(s, m, s.cells, at, units)
	default:
		if q := s.rule.queue; q != nil {
			all := tokens(s.rule.spec.Burst, 1)
			if have, want := q.delay(s.cells, at), s.ref.(refBucketMeter).wait(s.now, all); have != want {
				s.Fatalf("delayed by %d, want %d", have, want)
			}
		}
		m.take(s.cells, at, units)
		s.ref.take(s.now, tokens(units, shares.whole))
	}
}

func (s *script) compare() {
	m, at := s.rule.meter, s.at()
	have, want := big.NewRat(m.level(s.cells, at), m.shares(s.cells).whole), s.ref.level(s.now)
	if have.Cmp(want) != 0 {
		s.Fatalf("at %d: level %s, want %s", s.now, have, want)
	}
	if full := want.Cmp(tokens(s.rule.spec.Burst, 1)) == 0; m.full(s.cells, at) != full {
		s.Fatalf("at %d: full is %v", s.now, !full)
	}
}
