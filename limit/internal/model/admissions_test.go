package model

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWorstWindow compares with the definition: every window from one
// admission to another.
func TestWorstWindow(t *testing.T) {
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
		got := b.Worst(list)
		if got.Tokens != want {
			t.Fatalf("%+v, by definition %d", got, want)
		}
		if in := b.over(list, got.From, got.To); in != want {
			t.Fatalf("%+v holds %d", got, in)
		}
	})
}

// worst is Worst by definition.
func worst(b Bound, list []Admission) int64 {
	var most int64
	for _, from := range list {
		for _, to := range list {
			if to.At >= from.At {
				most = max(most, b.over(list, from.At, to.At))
			}
		}
	}
	return most
}

// over is what a window takes beyond what flows in, rounded up.
func (b Bound) over(list []Admission, from, to time.Duration) int64 {
	sum := int64(0)
	for _, a := range list {
		if a.At >= from && a.At <= to {
			sum += a.Cost
		}
	}
	return (sum*int64(b.Per) - b.Rate*int64(to-from) + int64(b.Per) - 1) / int64(b.Per)
}

func TestWorstOfNothing(t *testing.T) {
	b := Bound{Burst: 1, Rate: 1, Per: time.Second}
	if b.Worst(nil) != (Window{}) {
		t.Error("nothing admitted exceeds something")
	}
}
