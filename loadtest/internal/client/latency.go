package client

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is measured in microseconds, from 1 µs to two minutes, to three significant digits.
const (
	latencyMax    = 120_000_000
	latencyDigits = 3
)

// measure names one latency.
type measure uint8

const (
	ToReceipt   measure = iota // danmaku: due until a viewer read it
	toAdmission                // danmaku: admission (`ts`) until a viewer read it
	GiftReceipt                // gift: due until a viewer read it
	toAck                      // danmaku and likes: due until the answer
	giftAck                    // gift: due until the answer, which is after it was stored
	Join                       // dial until welcome
	sendLag                    // how late this tool itself was
	Away                       // a socket's end until the next welcome
	Measures
)

// String is the name in reports.
func (m measure) String() string {
	return [...]string{"danmaku", "admission", "gift", "ack", "gift_ack", "join", "send_lag", "away"}[m]
}

// Latencies holds a histogram per measure, made on first use.
type Latencies [Measures]*hdrhistogram.Histogram

// Record adds one latency. What is outside the range is put at its edge.
func (l *Latencies) Record(m measure, d time.Duration) {
	if l[m] == nil {
		l[m] = hdrhistogram.New(1, latencyMax, latencyDigits)
	}
	_ = l[m].RecordValue(min(max(int64(d/time.Microsecond), 1), latencyMax)) // in range, so never an error
}

// MoveTo adds everything to sum and empties l.
func (l *Latencies) MoveTo(sum *Latencies) {
	for m, h := range l {
		if h == nil || h.TotalCount() == 0 {
			continue
		}
		if sum[m] == nil {
			sum[m] = hdrhistogram.New(1, latencyMax, latencyDigits)
		}
		sum[m].Merge(h)
		h.Reset()
	}
}

// Quantile of a measure, 0 when nothing was recorded.
func (l *Latencies) Quantile(m measure, percentile float64) time.Duration {
	if l[m] == nil || l[m].TotalCount() == 0 {
		return 0
	}
	return time.Duration(l[m].ValueAtPercentile(percentile)) * time.Microsecond
}

// Distribution is one latency as reports show it, in seconds.
type Distribution struct {
	Count int64   `json:"count" col:"count"`
	Mean  float64 `json:"mean_seconds"`
	P50   float64 `json:"p50_seconds" col:"p50,s"`
	P90   float64 `json:"p90_seconds" col:"p90,s"`
	P99   float64 `json:"p99_seconds" col:"p99,s"`
	P999  float64 `json:"p999_seconds" col:"p99.9,s"`
	Max   float64 `json:"max_seconds" col:"max,s"`
}

// Distribution sums a measure up; false when nothing was recorded.
func (l *Latencies) Distribution(m measure) (Distribution, bool) {
	h := l[m]
	if h == nil || h.TotalCount() == 0 {
		return Distribution{}, false
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1e6 }
	return Distribution{Count: h.TotalCount(), Mean: h.Mean() / 1e6,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e6}, true
}
