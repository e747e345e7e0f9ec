package model

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPeakIsTheWorstWindow compares with the definition: every window from one
// admission to another.
func TestPeakIsTheWorstWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bound{
			Burst: rapid.Int64Range(1, 20).Draw(t, "burst"),
			Rate:  rapid.Int64Range(0, 2000).Draw(t, "rate"),
			Per:   time.Duration(rapid.Int64Range(1, 3_000_000).Draw(t, "per")),
		}
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Admission {
			return Admission{
				At:   time.Duration(rapid.Int64Range(0, 10_000).Draw(t, "at")),
				Cost: rapid.Int64Range(0, 5).Draw(t, "cost"),
			}
		}), 0, 30).Draw(t, "admissions")
		want := worst(b, list)
		if got := b.Peak(list); got != want {
			t.Fatalf("Peak %d, by definition %d", got, want)
		}
		if got := b.Excess(list); got != max(want-b.Burst, 0) {
			t.Fatalf("Excess %d of a peak of %d over %d", got, want, b.Burst)
		}
	})
}

// worst is Peak by definition, with time rounded in nobody's favour.
func worst(b Bound, list []Admission) int64 {
	list = slices.Clone(list)
	var peak int64
	for _, from := range list {
		for _, to := range list {
			sum := int64(0)
			for _, a := range list {
				if a.At >= from.At && a.At <= to.At {
					sum += a.Cost
				}
			}
			over := sum*int64(b.Per) - b.Rate*int64(to.At-from.At)
			if to.At >= from.At {
				peak = max(peak, (over+int64(b.Per)-1)/int64(b.Per))
			}
		}
	}
	return peak
}

func TestPeakOfNothing(t *testing.T) {
	b := Bound{Burst: 1, Rate: 1, Per: time.Second}
	if b.Peak(nil) != 0 || b.Excess(nil) != 0 {
		t.Error("nothing admitted exceeds something")
	}
}
