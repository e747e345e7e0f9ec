package main

import (
	"strings"
	"testing"
	"time"
)

func TestGiftsAreMissedInHolesAndAtTheEnd(t *testing.T) {
	stored := []uint64{3, 5, 6, 9}
	for _, c := range []struct {
		hole hole
		want int64
	}{{hole{3, 5}, 0}, {hole{3, 9}, 2}, {hole{0, 3}, 0}, {hole{6, ^uint64(0)}, 1}, {hole{9, ^uint64(0)}, 0}, {hole{4, 4}, 0}} {
		if got := between(stored, c.hole); got != c.want {
			t.Errorf("%+v holds %d, want %d", c.hole, got, c.want)
		}
	}
	s := &session{}
	for _, g := range [][2]uint64{{3, 0}, {5, 3}, {9, 6}, {9, 6}} {
		s.gift(g[0], g[1])
	}
	if s.lastGift != 9 || len(s.holes) != 1 || s.repeats != 1 {
		t.Errorf("session %+v, want one hole and one repeat", s.holes)
	}
}

func TestRecoveryIsTheFirstNormalHalfSecond(t *testing.T) {
	var slots []Slot
	for i := range 40 {
		s := Slot{At: float64(i+1) / 10, P99: 0.010}
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
	m, err := parseMetrics(strings.NewReader("# TYPE a counter\na{x=\"1 }\"} 2\na{x=\"2\"} 3 1790000000000\nb 1.5e3\nbroken\n"))
	if err != nil || m["a"] != 5 || m["b"] != 1500 || m[`a{x="2"}`] != 3 {
		t.Errorf("%v (%v)", m, err)
	}
}

func TestSlope(t *testing.T) {
	if got := slope([]float64{1, 2, 3}, []float64{12, 14, 16}); got != 2 {
		t.Errorf("slope %v, want 2", got)
	}
}

func TestAddressesAreReadFromWhatANodePrints(t *testing.T) {
	var a addresses
	listen(strings.NewReader("\nliveroom is up.\n\n  viewer  http://127.0.0.1:34567/room/demo\n  host    http://127.0.0.1:34567/host/demo\n  admin   http://127.0.0.1:34568/#token=x.y.z\n"), a.hear)
	if a.url != "http://127.0.0.1:34567" || a.admin != "http://127.0.0.1:34568" {
		t.Errorf("%+v", a)
	}
}

func TestDistributionsAndUnits(t *testing.T) {
	var l latencies
	for i := 1; i <= 1000; i++ {
		l.record(toReceipt, time.Duration(i)*time.Millisecond)
	}
	d, ok := l.distribution(toReceipt)
	if !ok || d.Count != 1000 || d.P50 < 0.499 || d.P50 > 0.502 || d.P99 < 0.989 || d.P99 > 0.992 {
		t.Errorf("%+v", d)
	}
	var sum latencies
	l.moveTo(&sum)
	if _, ok := l.distribution(toReceipt); ok || sum.quantile(toReceipt, 100) < 999*time.Millisecond {
		t.Error("moved latencies stayed, or were lost")
	}
	for want, got := range map[string]string{"12.3ms": inSeconds.format(0.012345), "4.38 KB": inBytes.format(4380), "42": inCount.format(42), "0.999": inRatio.format(0.9991)} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
