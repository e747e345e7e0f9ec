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
	dealt     atomic.Uint32 // stripes
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
func (m *Metrics) stripe() *counters { return &m.stripes[m.dealt.Add(1)%numStripes] }

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

var (
	descSessions   = prometheus.NewDesc("liveroom_sessions", "Open sessions, those that have not said hello yet included.", nil, nil)
	descDeliveries = prometheus.NewDesc("liveroom_deliveries_total", "Messages handed to viewers' sockets.", []string{"class"}, nil)
	descFrames     = prometheus.NewDesc("liveroom_frames_total", "Data frames handed to viewers' sockets.", nil, nil)
	descBytes      = prometheus.NewDesc("liveroom_sent_bytes_total", "Bytes handed to viewers' sockets, headers and control frames included.", nil, nil)
	descDeflate    = prometheus.NewDesc("liveroom_deflate_bytes_total", "Bytes of the deflated frames that were handed to viewers' sockets: in, before deflating, and out, of liveroom_sent_bytes_total.", []string{"form"}, nil)
	descDeflating  = prometheus.NewDesc("liveroom_deflate_sessions", "Open sessions that have negotiated permessage-deflate.", nil, nil)
	descDropped    = prometheus.NewDesc("liveroom_dropped_total", "Messages that a viewer did not get; with reason overload, that were refused because the node was behind.", []string{"class", "reason"}, nil)
	descCloses     = prometheus.NewDesc("liveroom_closes_total", "Ended sessions by close code; 1006 stands for those without a close frame.", []string{"code"}, nil)
	descUpgrades   = prometheus.NewDesc("liveroom_upgrades_total", "Answers to WebSocket handshakes.", []string{"result"}, nil)
)

// collector shows Metrics to Prometheus.
type collector struct{ m *Metrics }

var _ prometheus.Collector = collector{}

// Describe implements [prometheus.Collector].
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSessions, descDeliveries, descFrames, descBytes, descDeflate, descDeflating, descDropped, descCloses, descUpgrades} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(ch chan<- prometheus.Metric) {
	m := c.m
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	ch <- prometheus.MustNewConstMetric(descSessions, prometheus.GaugeValue, float64(m.sessions.Load()))
	counter(descFrames, m.sum(func(s *counters) *atomic.Uint64 { return &s.frames }))
	counter(descBytes, m.sum(func(s *counters) *atomic.Uint64 { return &s.bytes }))
	counter(descDeflate, m.sum(func(s *counters) *atomic.Uint64 { return &s.inflated }), "in")
	counter(descDeflate, m.sum(func(s *counters) *atomic.Uint64 { return &s.deflated }), "out")
	ch <- prometheus.MustNewConstMetric(descDeflating, prometheus.GaugeValue, float64(m.deflating.Load()))
	for class := range protocol.NumClasses {
		counter(descDeliveries, m.sum(func(s *counters) *atomic.Uint64 { return &s.delivered[class] }), class.String())
		for why := range numDropReasons {
			counter(descDropped, m.sum(func(s *counters) *atomic.Uint64 { return &s.dropped[class][why] }), class.String(), why.String())
		}
	}
	for i, label := range closeLabels() {
		counter(descCloses, m.closes[i].Load(), label)
	}
	counter(descUpgrades, m.upgrades.accepted.Load(), "accepted")
	counter(descUpgrades, m.upgrades.turnedAway.Load(), "turned_away")
	counter(descUpgrades, m.upgrades.badRequest.Load(), "bad_request")
	counter(descUpgrades, m.upgrades.unavailable.Load(), "unavailable")
	counter(descUpgrades, m.upgrades.origin.Load(), "origin")
}

// sum adds one counter up over the stripes.
func (m *Metrics) sum(of func(*counters) *atomic.Uint64) uint64 {
	var n uint64
	for i := range m.stripes {
		n += of(&m.stripes[i]).Load()
	}
	return n
}
