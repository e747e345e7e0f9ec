package main

import (
	"slices"
	"testing"

	"liveroom/loadtest/internal/report"
)

func TestRampSizes(t *testing.T) {
	for _, c := range []struct {
		from, viewers, points int
		want                  []int
	}{
		{2000, 18_000, 5, []int{2000, 6000, 10_000, 14_000, 18_000}},
		{2000, 1000, 2, []int{500, 1000}},
		{0, 90, 3, []int{30, 60, 90}},
	} {
		if got := rampSizes(&options{crowdOptions: crowdOptions{viewers: c.viewers}, speechOptions: speechOptions{from: c.from, points: c.points}}); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestSlopesLeaveTheEmptyServerOut(t *testing.T) {
	b := &bench{result: &report.Result{Values: map[string]float64{}}}
	b.result.Ramp = []report.RampPoint{{Memory: 1e9, Freed: 1e9}, {Sessions: 10, Memory: 100, Freed: 80, Goroutines: 7}, {Sessions: 20, Memory: 200, Freed: 140, Goroutines: 7},
		{Memory: 2e9, Freed: 1e9 + 5, After: true}}
	b.slopes()
	v := b.result.Values
	if v["memory_per_session"] != 10 || v["memory_per_session_freed"] != 6 || v["goroutines_per_session"] != 0 || v["memory_left"] != 1e9 || v["memory_left_freed"] != 5 {
		t.Errorf("%v", v)
	}
}
