package main

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// worstWindow looks at every window, as the definition says, in exact fractions: n stamps from a to b must be fewer than
// burst + rate·(b−a+1)/1000 when time adds something, and at most burst when it adds nothing.
func (b bound) worstWindow(stamps []int64) int64 {
	worst := int64(0)
	for i := range stamps {
		for j := i; j < len(stamps); j++ {
			n := int64(j - i + 1)
			allowed := new(big.Rat).SetFrac64(b.rate*(stamps[j]-stamps[i]+1), 1000)
			allowed.Add(allowed, new(big.Rat).SetInt64(b.burst))
			for over := worst; ; over++ {
				cmp := new(big.Rat).SetInt64(n - over).Cmp(allowed)
				if cmp < 0 || b.rate == 0 && cmp == 0 {
					worst = max(worst, over)
					break
				}
			}
		}
	}
	return worst
}

func drawBound(t *rapid.T) bound {
	return bound{rate: int64(rapid.IntRange(0, 3000).Draw(t, "rate")), burst: int64(rapid.IntRange(1, 20).Draw(t, "burst"))}
}

func TestExcessIsThatOfTheWorstWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBound(t)
		stamps := rapid.SliceOfN(rapid.Int64Range(0, rapid.Int64Range(1, 2000).Draw(t, "span")), 0, 40).Draw(t, "stamps")
		slices.Sort(stamps)
		want := b.worstWindow(stamps)
		if got := b.excess(stamps); got != want {
			t.Fatalf("%+v on %v: %d over, want %d", b, stamps, got, want)
		}
		from, to := b.worst(stamps)
		inside := slices.DeleteFunc(slices.Clone(stamps), func(at int64) bool { return at < from || at > to })
		if over := int64(len(inside)) - b.within(to-from); want > 0 && over != want {
			t.Fatalf("%+v on %v: the worst window [%d, %d] is %d over, want %d", b, stamps, from, to, over, want)
		}
	})
}

// Whoever keeps the bound in true time is never accused, however the instants are cut to milliseconds.
func TestWhoKeepsTheBoundIsNeverAccused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBound(t)
		var stamps []int64
		level, last := b.burst*1_000_000_000, int64(0) // of a message, and nanoseconds
		for now := int64(0); len(stamps) < 200 && now < 3_000_000_000; now += rapid.Int64Range(0, 5_000_000).Draw(t, "gap") {
			level = min(b.burst*1_000_000_000, level+(now-last)*b.rate)
			last = now
			for level >= 1_000_000_000 && len(stamps) < 200 {
				level -= 1_000_000_000
				stamps = append(stamps, now/1_000_000)
			}
		}
		if over := b.excess(stamps); over != 0 {
			t.Fatalf("%+v: an exact bucket is said to be %d over: %v", b, over, stamps)
		}
	})
}

// And the least that is surely too much is seen.
func TestOneTooManyIsSeen(t *testing.T) {
	for _, c := range []struct {
		b      bound
		stamps []int64
		want   int64
	}{
		{bound{100, 2}, []int64{0, 0}, 0},
		{bound{100, 2}, []int64{0, 0, 0}, 1},
		{bound{100, 2}, []int64{0, 0, 9}, 1},  // at most 9.99 ms: 0.999 of a message
		{bound{100, 2}, []int64{0, 0, 10}, 0}, // up to 10.99 ms
		{bound{1000, 1}, []int64{0, 0}, 1},    // less than a millisecond is less than one message
		{bound{1000, 1}, []int64{0, 1}, 0},
		{bound{0, 3}, []int64{0, 5, 1 << 50}, 0},
		{bound{0, 3}, []int64{0, 5, 1 << 50, 1 << 51}, 1},
		{bound{math.MaxInt32, math.MaxInt32}, []int64{0, math.MaxInt64 / 2}, 0}, // no overflow
	} {
		if got := c.b.excess(c.stamps); got != c.want {
			t.Errorf("%+v on %v: %d over, want %d", c.b, c.stamps, got, c.want)
		}
	}
}

func TestBoundComesFromTheRules(t *testing.T) {
	for _, c := range []struct {
		audience int
		want     bound
	}{{10, bound{200, 200}}, {2000, bound{100, 100}}, {20000, bound{40, 80}}} {
		if got, err := danmakuBound(pulseRules, c.audience); err != nil || got != c.want {
			t.Errorf("%d viewers: %+v (%v), want %+v", c.audience, got, err, c.want)
		}
	}
	if got, err := danmakuBound(benchRules, 10); err != nil || got.rate != 1_000_000 {
		t.Errorf("bench rules: %+v (%v)", got, err)
	}
	if _, err := parseBound("100"); err == nil {
		t.Error("a bound without a burst was accepted")
	}
}

func BenchmarkExcess(b *testing.B) {
	stamps := make([]int64, 1_000_000)
	for i := range stamps {
		stamps[i] = int64(i) / 2
	}
	for b.Loop() {
		if (bound{2000, 10}).excess(stamps) != 0 {
			b.Fatal("two a millisecond are two thousand a second")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(stamps)), "ns/stamp")
}
