package main

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// worstWindow looks at every window, as the definition says.
func (b bound) worstWindow(stamps []int64) int64 {
	worst := int64(0)
	for i := range stamps {
		for j := i; j < len(stamps); j++ {
			milliseconds := stamps[j] - stamps[i] + 1
			over := int64(j-i+1)*1000 - b.burst*1000 - b.rate*milliseconds
			worst = max(worst, (over+999)/1000)
		}
	}
	return worst
}

func TestExcessIsThatOfTheWorstWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bound{rate: int64(rapid.IntRange(0, 500).Draw(t, "rate")), burst: int64(rapid.IntRange(1, 20).Draw(t, "burst"))}
		stamps := rapid.SliceOfN(rapid.Int64Range(0, 2000), 0, 60).Draw(t, "stamps")
		slices.Sort(stamps)
		if got, want := b.excess(stamps), b.worstWindow(stamps); got != want {
			t.Fatalf("excess %d, want %d", got, want)
		}
	})
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
