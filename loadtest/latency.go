package main

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
	toReceipt   measure = iota // danmaku: due until a viewer read it
	toAdmission                // danmaku: admission (`ts`) until a viewer read it
	giftReceipt                // gift: due until a viewer read it
	toAck                      // danmaku and likes: due until the answer
	giftAck                    // gift: due until the answer, which is after it was stored
	join                       // dial until welcome
	sendLag                    // how late this tool itself was
	measures
)

// String is the name in reports.
func (m measure) String() string {
	return [...]string{"danmaku", "admission", "gift", "ack", "gift_ack", "join", "send_lag"}[m]
}

// about says what the latency spans, for people.
func (m measure) about() string {
	return [...]string{
		"danmaku, from the instant it was due to a viewer's read",
		"danmaku, from the server's admission (ts, whole milliseconds) to a viewer's read",
		"gifts, from the instant they were due to a viewer's read",
		"answers to danmaku and likes, from the instant they were due",
		"answers to gifts, from the instant they were due (they are stored by then)",
		"joins, from dial to welcome",
		"how late this tool sent, which the others include",
	}[m]
}

// latencies holds a histogram per measure, made on first use.
type latencies [measures]*hdrhistogram.Histogram

// record adds one latency. What is outside the range is put at its edge.
func (l *latencies) record(m measure, d time.Duration) {
	if l[m] == nil {
		l[m] = hdrhistogram.New(1, latencyMax, latencyDigits)
	}
	_ = l[m].RecordValue(min(max(int64(d/time.Microsecond), 1), latencyMax)) // in range, so never an error
}

// moveTo adds everything to sum and empties l.
func (l *latencies) moveTo(sum *latencies) {
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

// quantile of a measure, 0 when nothing was recorded.
func (l *latencies) quantile(m measure, percentile float64) time.Duration {
	if l[m] == nil || l[m].TotalCount() == 0 {
		return 0
	}
	return time.Duration(l[m].ValueAtPercentile(percentile)) * time.Microsecond
}

// Distribution is one latency as reports show it, in seconds.
type Distribution struct {
	About string      `json:"about"`
	Count int64       `json:"count"`
	Mean  float64     `json:"mean_seconds"`
	P50   float64     `json:"p50_seconds"`
	P90   float64     `json:"p90_seconds"`
	P99   float64     `json:"p99_seconds"`
	P999  float64     `json:"p999_seconds"`
	Max   float64     `json:"max_seconds"`
	Curve []CurveStep `json:"curve,omitempty"`
}

// CurveStep is one point of a latency by percentile.
type CurveStep struct {
	Percentile float64 `json:"percentile"`
	Seconds    float64 `json:"seconds"`
}

// curvePercentiles halve what is left above, as HdrHistogram's own plots do.
var curvePercentiles = []float64{0, 25, 50, 62.5, 75, 81.25, 87.5, 90.625, 93.75, 95.3125, 96.875, 97.65625, 98.4375, 99, 99.21875,
	99.609375, 99.8046875, 99.90234375, 99.951171875, 99.9755859375, 99.99, 99.99389648, 99.99694824, 99.999}

// distribution sums a measure up; false when nothing was recorded.
func (l *latencies) distribution(m measure) (Distribution, bool) {
	h := l[m]
	if h == nil || h.TotalCount() == 0 {
		return Distribution{}, false
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1e6 }
	d := Distribution{About: m.about(), Count: h.TotalCount(), Mean: h.Mean() / 1e6,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e6}
	for _, p := range curvePercentiles {
		if float64(d.Count)*(100-p)/100 >= 1 {
			d.Curve = append(d.Curve, CurveStep{p, at(p)})
		}
	}
	return d, true
}
