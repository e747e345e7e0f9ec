package conn

import (
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/protocol"
)

// numStripes is more than the cores that write at once on one node.
const numStripes = 16

// Metrics are the totals of all acceptors that share it. Counting costs a few uncontended atomic additions per frame; sums
// are made when they are asked for. Safe for concurrent use.
type Metrics struct {
	stripes             [numStripes]counters
	dealt               atomic.Uint32 // stripes
	sessions, deflating prometheus.Gauge
	closes              *prometheus.CounterVec // by code
	upgrades            upgrades
}

// upgrades counts the answers to handshakes.
type upgrades struct{ accepted, turnedAway, badRequest, unavailable, origin prometheus.Counter }

// NewMetrics registers the metrics with reg, created at zero; it panics when one of the names is taken. With a nil reg they are
// counted and shown to nobody.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m, f := new(Metrics), promauto.With(reg)
	m.sessions = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_sessions", Help: "Open sessions, those that have not said hello yet included."})
	m.deflating = f.NewGauge(prometheus.GaugeOpts{Name: "liveroom_deflate_sessions", Help: "Open sessions that have negotiated permessage-deflate."})
	m.closes = f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_closes_total", Help: "Ended sessions by close code; 1006 stands for those without a close frame."}, []string{"code"})
	for _, c := range protocol.CloseCodes() {
		m.closes.WithLabelValues(closeLabel(c))
	}
	m.closes.WithLabelValues(closeLabel(0))
	m.closes.WithLabelValues(closeOther)
	results := f.NewCounterVec(prometheus.CounterOpts{Name: "liveroom_upgrades_total", Help: "Answers to WebSocket handshakes."}, []string{"result"})
	m.upgrades = upgrades{
		results.WithLabelValues("accepted"), results.WithLabelValues("turned_away"), results.WithLabelValues("bad_request"),
		results.WithLabelValues("unavailable"), results.WithLabelValues("origin"),
	}
	sum := func(name, help string, labels prometheus.Labels, of func(*counters) *atomic.Uint64) {
		f.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(m.sum(of)) })
	}
	const deflate = "Bytes of the deflated frames that were handed to viewers' sockets: in, before deflating, and out, of liveroom_sent_bytes_total."
	sum("liveroom_frames_total", "Data frames handed to viewers' sockets.", nil, func(c *counters) *atomic.Uint64 { return &c.frames })
	sum("liveroom_sent_bytes_total", "Bytes handed to viewers' sockets, headers and control frames included.", nil, func(c *counters) *atomic.Uint64 { return &c.bytes })
	sum("liveroom_deflate_bytes_total", deflate, prometheus.Labels{"form": "in"}, func(c *counters) *atomic.Uint64 { return &c.inflated })
	sum("liveroom_deflate_bytes_total", deflate, prometheus.Labels{"form": "out"}, func(c *counters) *atomic.Uint64 { return &c.deflated })
	for class := range protocol.NumClasses {
		sum("liveroom_deliveries_total", "Messages handed to viewers' sockets.", prometheus.Labels{"class": class.String()}, func(c *counters) *atomic.Uint64 { return &c.delivered[class] })
		for why := range numDropReasons {
			sum("liveroom_dropped_total", "Messages that a viewer did not get; with reason overload, that were refused because the node was behind.",
				prometheus.Labels{"class": class.String(), "reason": why.String()}, func(c *counters) *atomic.Uint64 { return &c.dropped[class][why] })
		}
	}
	return m
}

// sum adds one counter up over the stripes.
func (m *Metrics) sum(of func(*counters) *atomic.Uint64) (n uint64) {
	for i := range m.stripes {
		n += of(&m.stripes[i]).Load()
	}
	return n
}

// Shed counts a message that was refused because the node is behind.
func (m *Metrics) Shed(c protocol.Class) { m.stripes[0].dropped[c][dropOverload].Add(1) }

// stripe hands a session its counters.
func (m *Metrics) stripe() *counters { return &m.stripes[m.dealt.Add(1)%numStripes] }

// closed counts the end of a session; 0 means that no close frame was seen.
func (m *Metrics) closed(code protocol.CloseCode) { m.closes.WithLabelValues(closeLabel(code)).Inc() }

// closeOther stands for codes that the contract's list does not have.
const closeOther = "other"

// closeLabel is a code as it stands in metrics, of a closed set; 1006 for 0 (RFC 6455, section 7.4.1).
func closeLabel(code protocol.CloseCode) string {
	switch {
	case code == 0 || code == 1006:
		return "1006"
	case slices.Contains(protocol.CloseCodes(), code):
		return strconv.Itoa(int(code))
	}
	return closeOther
}

// dropReason says why a message did not get to a viewer, or with overload to anybody. It is also the metric's label.
type dropReason uint8

const (
	dropSlow     dropReason = iota // the viewer's queue was over its bound
	dropReplaced                   // a newer like took its place
	dropClosed                     // it waited in the queue of a session that ended
	dropOverload                   // its sender was refused because the node was behind
	numDropReasons
)

func (r dropReason) String() string {
	return [numDropReasons]string{"slow", "replaced", "closed", "overload"}[r]
}

// counters are one stripe of the totals. A session keeps to one stripe, so that workers on different cores seldom meet in
// the same cache line.
type counters struct {
	frames    atomic.Uint64
	bytes     atomic.Uint64
	inflated  atomic.Uint64 // bytes of deflated frames as they would have been
	deflated  atomic.Uint64 // and as they were; in bytes as well
	delivered [protocol.NumClasses]atomic.Uint64
	dropped   [protocol.NumClasses][numDropReasons]atomic.Uint64
	_         [64]byte
}

// sentFull counts a whole broadcast that the kernel took.
func (c *counters) sentFull(b *protocol.Broadcast, bytes int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(bytes))
	c.shrunk(b.Full(), bytes)
	for class := range protocol.NumClasses {
		if n := b.Count(class); n != 0 {
			c.delivered[class].Add(uint64(n))
		}
	}
}

// sent counts an entry of the queue that the kernel took whole.
func (c *counters) sent(e *entry) {
	if e.kind == kindWire {
		c.bytes.Add(uint64(e.size))
		return
	}
	c.frames.Add(1)
	c.bytes.Add(uint64(e.size))
	switch e.kind {
	case kindFull:
		c.shrunk(e.b.Full(), e.size)
	case kindEssential:
		c.shrunk(e.b.Essential(), e.size)
	}
	for class := range protocol.NumClasses {
		if n := e.count(class); n != 0 {
			c.delivered[class].Add(uint64(n))
		}
	}
}

// shrunk counts what deflating has saved of a frame that went out with so many bytes.
func (c *counters) shrunk(plain *protocol.Frame, bytes int) {
	if n := plain.Len(); n != bytes {
		c.inflated.Add(uint64(n))
		c.deflated.Add(uint64(bytes))
	}
}

// drop counts the messages of an entry that will not be sent.
func (c *counters) drop(e *entry, why dropReason) {
	for class := range protocol.NumClasses {
		if n := e.count(class); n != 0 {
			c.dropped[class][why].Add(uint64(n))
		}
	}
}
