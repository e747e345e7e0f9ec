package client

import (
	"testing"
	"time"
)

func TestDistributions(t *testing.T) {
	var l Latencies
	for i := 1; i <= 1000; i++ {
		l.Record(ToReceipt, time.Duration(i)*time.Millisecond)
	}
	d, ok := l.Distribution(ToReceipt)
	if !ok || d.Count != 1000 || d.P50 < 0.499 || d.P50 > 0.502 || d.P99 < 0.989 || d.P99 > 0.992 {
		t.Errorf("%+v", d)
	}
	var sum Latencies
	l.MoveTo(&sum)
	if _, ok := l.Distribution(ToReceipt); ok || sum.Quantile(ToReceipt, 100) < 999*time.Millisecond {
		t.Error("moved latencies stayed, or were lost")
	}
}
