package main

import (
	"strings"
	"testing"
	"time"

	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

func TestRecoveryIsTheFirstNormalHalfSecond(t *testing.T) {
	var slots []report.Slot
	for i := range 40 {
		s := report.Slot{At: float64(i+1) / 10, P99: 0.010}
		if i >= 10 && i < 23 {
			s.P99 = 0.5
		}
		slots = append(slots, s)
	}
	if got := recovery(slots, time.Second, 2*time.Second).Round(time.Millisecond); got != 300*time.Millisecond {
		t.Errorf("recovery after %s, want 300ms", got)
	}
	for i := range slots {
		slots[i].P99 = 0.5 * float64(i/10)
	}
	if got := recovery(slots, time.Second, 2*time.Second).Round(time.Millisecond); got != 2*time.Second {
		t.Errorf("never normal is %s, want what is left, 2s", got)
	}
}

func TestMetricsAreSummedOverLabels(t *testing.T) {
	m, err := parseMetrics(strings.NewReader("# TYPE a counter\na{x=\"1 }\"} 2\na{x=\"2\"} 3 1790000000000\n# TYPE b gauge\nb 1.5e3\n"))
	if err != nil || m["a"] != 5 || m["b"] != 1500 || m[`a{x="2"}`] != 3 {
		t.Errorf("%v (%v)", m, err)
	}
	if _, err := parseMetrics(strings.NewReader("broken\n")); err == nil {
		t.Error("what is no metric was read")
	}
}

func TestSlope(t *testing.T) {
	if got := slope([]float64{1, 2, 3}, []float64{12, 14, 16}); got != 2 {
		t.Errorf("slope %v, want 2", got)
	}
}

func TestAddressesAreReadFromWhatANodePrints(t *testing.T) {
	var a addresses
	process.Listen(strings.NewReader("\nliveroom is up.\n\n  viewer  http://127.0.0.1:34567/room/demo\n  host    http://127.0.0.1:34567/host/demo\n  admin   http://127.0.0.1:34568/#token=x.y.z\n"), a.hear)
	if a.url != "http://127.0.0.1:34567" || a.admin != "http://127.0.0.1:34568" {
		t.Errorf("%+v", a)
	}
}
