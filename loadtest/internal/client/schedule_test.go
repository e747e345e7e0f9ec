package client

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestScheduleKeepsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var phases []Phase
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			phases = append(phases, Phase{Lasts: time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond,
				From: float64(rapid.IntRange(0, 3000).Draw(t, "from")), To: float64(rapid.IntRange(0, 3000).Draw(t, "to"))})
		}
		due, err := Schedule(phases, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(due) {
			t.Fatal("attempts are not in order")
		}
		if n := len(due); n > 0 && (due[0] < 0 || due[n-1] > int64(Length(phases))) {
			t.Fatalf("attempts from %d to %d lie outside of %s", due[0], due[n-1], Length(phases))
		}
		area, end := 0.0, time.Duration(0)
		for _, p := range phases {
			area += p.area(p.Lasts.Seconds())
			end += p.Lasts
			within, _ := slices.BinarySearch(due, int64(end))
			if math.Abs(float64(within)-area) > 2 {
				t.Fatalf("%d attempts within %s, want %.1f", within, end, area)
			}
		}
	})
}

func TestScheduleIsEven(t *testing.T) {
	due, err := Schedule([]Phase{Steady(time.Second, 100)}, nil)
	if err != nil || len(due) != 100 {
		t.Fatalf("%d attempts (%v), want 100", len(due), err)
	}
	for k, at := range due {
		if want := int64(k) * 10_000_000; max(at-want, want-at) > 1 {
			t.Fatalf("attempt %d is due at %d, want %d", k, at, want)
		}
	}
}

func TestPoissonIsRepeatableAndOfTheSameRate(t *testing.T) {
	phases := []Phase{Steady(10*time.Second, 1000)}
	a, _ := Schedule(phases, NewRand(7))
	b, _ := Schedule(phases, NewRand(7))
	c, _ := Schedule(phases, NewRand(8))
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the same seed must give the same gaps, another one others")
	}
	if len(a) < 9600 || len(a) > 10400 { // four standard deviations of 100
		t.Errorf("%d attempts, want about 10,000", len(a))
	}
}

func TestScheduleRefuses(t *testing.T) {
	for _, p := range []Phase{{0, 1, 1}, {time.Second, -1, 1}, {time.Hour, 1e9, 1e9}} {
		if _, err := Schedule([]Phase{p}, nil); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
}
