package main

import (
	"strings"
	"testing"

	"liveroom/loadtest/internal/report"
)

func TestTheTableIsMarkdownWithMediansAndSpread(t *testing.T) {
	r := &report.Result{Values: map[string]float64{"deliveries_per_second": 5.01e6, "delivered": 1, "admission_p50": 0.09, "admission_p99": 0.2, "server_cpu": 0.97,
		"cpu_per_frame": 9e-6, "frame_cpu_bare": 7.5e-6, "memory_per_session": 7000, "memory_per_session_freed": 5400, "heap_per_session": 3000},
		Rounds: report.Rounds{Frames: []report.FrameRound{{Bytes: 130, Server: 12e-6, Bare: 10e-6, Ratio: 1.2}, {Bytes: 132, Server: 11e-6, Bare: 10e-6, Ratio: 1.1}, {Bytes: 131, Server: 13e-6, Bare: 10e-6, Ratio: 1.3}, {Bytes: 131, Server: 10e-6, Bare: 10e-6, Ratio: 1}, {Bytes: 131, Server: 20e-6, Bare: 10e-6, Ratio: 2}}}}
	text := strings.Join([]string{framesRow(10_000, r), deliveriesRow(5000, 1000, r), memoryRows(r)}, "\n")
	for _, want := range []string{
		"| 10,000 viewers, 131 B | 10.0 µs (10.0 µs to 10.0 µs) | 12.0 µs (11.0 µs to 13.0 µs) | **1.20 (1.10 to 1.30) ×** |",
		"| 5,000 viewers × 1,000/s | 5.01M, 100 % of those owed | 90ms | **200ms** | 97 % | 9.0 µs, bare 7.5 µs, **1.20 ×** |",
		"| resident, freed | **5.4 KB** | – |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestArgumentsOfTheTable(t *testing.T) {
	if _, err := parseTable([]string{"-viewers", "many"}, nil); err == nil {
		t.Error("many is a number")
	}
	o, err := parseTable([]string{"-fanout", "", "-sessions", "0"}, nil)
	if err != nil || len(o.fanouts) != 0 || len(o.viewers) != 2 || len(o.sizes) != 3 {
		t.Errorf("%+v (%v)", o, err)
	}
}
