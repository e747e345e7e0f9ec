package conn

import (
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/protocol"
)

// numStripes is more than the cores that write at once on one node.
const numStripes = 16

// Metrics are the totals of all acceptors that share it. Counting costs a few uncontended atomic additions per frame; sums
// are made when they are asked for. Safe for concurrent use.
type Metrics struct {
	stripes   [numStripes]counters
	turn      atomic.Uint32
	sessions  atomic.Int64
	deflating atomic.Int64    // of sessions
	closes    []atomic.Uint64 // in the order of closeLabels
	upgrades  upgrades
}

// upgrades counts the answers to handshakes.
type upgrades struct{ accepted, turnedAway, badRequest, unavailable, origin atomic.Uint64 }

// closeVanished stands for sockets that ended without a close frame (RFC 6455, section 7.4.1).
const closeVanished = protocol.CloseCode(1006)

// closeLabels is the closed set of codes in metrics. What the list of the contract does not have is "other".
func closeLabels() []string {
	var out []string
	for _, c := range protocol.CloseCodes() {
		out = append(out, strconv.Itoa(int(c)))
	}
	return append(out, strconv.Itoa(int(closeVanished)), "other")
}

// NewMetrics makes the metrics and registers them: liveroom_sessions, liveroom_deliveries_total, liveroom_frames_total,
// liveroom_sent_bytes_total, liveroom_deflate_bytes_total, liveroom_deflate_sessions, liveroom_dropped_total,
// liveroom_closes_total and liveroom_upgrades_total. It panics when one of the names is taken.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := newMetrics()
	reg.MustRegister(collector{m})
	return m
}

func newMetrics() *Metrics {
	return &Metrics{closes: make([]atomic.Uint64, len(closeLabels()))}
}

// Shed counts a message that was refused because the node is behind.
func (m *Metrics) Shed(c protocol.Class) { m.stripes[0].dropped[c][dropOverload].Add(1) }

// stripe hands a session its counters.
func (m *Metrics) stripe() *counters { return &m.stripes[m.turn.Add(1)%numStripes] }

// closed counts the end of a session; 0 means that no close frame was seen.
func (m *Metrics) closed(code protocol.CloseCode) {
	if code == 0 {
		code = closeVanished
	}
	want, i := strconv.Itoa(int(code)), 0
	labels := closeLabels()
	for i < len(labels)-1 && labels[i] != want {
		i++
	}
	m.closes[i].Add(1)
}
