package conn

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/protocol"
)

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
