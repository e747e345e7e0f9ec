package model

import (
	"testing"
	"time"
)

// TestContract lets nodes do the worst that the store's contract allows, many
// times, and holds what they spend against the bound.
func TestContract(t *testing.T) {
	bounds := []Bound{danmaku, crowded, person, {Burst: 7, Rate: 100, Per: 7 * time.Second}, {Burst: 1000, Rate: 10, Per: time.Second}}
	tightest := 0.0
	runs := uint64(30)
	if *large {
		runs = 20_000
	}
	for i := range runs {
		seed := *seed + i
		a := Adversary{Seed: seed, Bound: bounds[seed%uint64(len(bounds))], Nodes: 1 + int(seed%7), Length: 30 * time.Second,
			Steps: seed%3 == 1, Failovers: seed%4 == 1}
		spent, lost, err := a.Run()
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		peak := a.Bound.Worst(spent).Tokens
		if peak > a.Bound.Burst+lost {
			t.Errorf("%+v: worst window %d of %d, lost %d", a, peak, a.Bound.Burst, lost)
		}
		tightest = max(tightest, float64(peak)/float64(a.Bound.Burst))
	}
	t.Logf("the worst window used %.0f %% of the burst", 100*tightest)
}
