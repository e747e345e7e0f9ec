package main

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/conn"
	"liveroom/internal/api"
	"liveroom/internal/site"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/web"
)

// maxPongTimeout is how long a ping may stay without an answer; never longer than the heartbeat itself.
const maxPongTimeout = 10 * time.Second

// openDoors makes what people come in by: sockets, pages, API.
func (n *node) openDoors(certificate *tls.Config, reg *prometheus.Registry) error {
	pages, err := site.New(web.Demo(), web.Client())
	if err != nil {
		return err
	}
	clientAddr := func(r *http.Request) netip.Addr { return limit.ClientAddr(r, n.cfg.TrustedProxies) }
	arrivals := newArrivals(n.gate)
	created, err := newNewRooms(n.gate.Now, n.cfg.Rooms)
	if err != nil {
		return err
	}
	n.acceptor, err = conn.NewAcceptor(conn.Config{
		Origins: n.cfg.Origins, MaxSessions: n.cfg.Sessions.Max,
		HelloTimeout: n.cfg.Sessions.HelloTimeout, Heartbeat: n.cfg.Sessions.Heartbeat, WriteTimeout: n.cfg.Sessions.WriteTimeout,
		PongTimeout: min(maxPongTimeout, n.cfg.Sessions.Heartbeat), ClientAddr: clientAddr, Admit: arrivals.admit, Meter: newFrameMeter(n.gate, reg),
		Metrics: conn.NewMetrics(reg), Logger: n.log,
	}, &lobby{tokens: n.tokens, hub: n.hub, guests: n.cfg.Auth.Guests, created: created})
	if err != nil {
		return err
	}
	calls := api.New(api.Config{
		Hub: n.hub, Ledger: n.fabric, Tokens: n.tokens, Gate: n.gate, ClientAddr: clientAddr, Create: created.admit,
		Origins: n.cfg.Origins, Guests: n.cfg.Auth.Guests, Book: n.book, Preview: n.preview, Guard: func() any { return n.guard.Watching() }, Log: n.log,
	})
	n.main = viewerServer(pages, calls, n.acceptor, certificate, n.log)
	n.admin = adminServer(pages, calls, n.health, reg, n.log)
	return nil
}

// frameMeter spends each frame on its connection's bucket before the frame is parsed. It also times one decision in
// timedShare, since every viewer's every frame comes by here and two looks at the clock cost as much as a decision.
type frameMeter struct {
	gate  *limit.Gate
	turn  atomic.Uint32
	times prometheus.Histogram
}

const timedShare = 64

func newFrameMeter(gate *limit.Gate, reg prometheus.Registerer) *frameMeter {
	m := &frameMeter{gate: gate, times: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "liveroom_limit_seconds", Help: "Time of a decision about a frame, one in 64 of them.",
		Buckets: []float64{1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2},
	})}
	reg.MustRegister(m.times)
	return m
}

var _ conn.Meter = (*frameMeter)(nil)

// Frame implements [conn.Meter].
func (m *frameMeter) Frame(s *conn.Session) (*protocol.Error, *protocol.Refusal) {
	now := m.gate.Now()
	d := m.gate.Decide(now, &limit.Request{Action: limit.Frame, Addr: s.Addr()}, s.Subject())
	if m.turn.Add(1)%timedShare == 0 {
		m.times.Observe(m.gate.Now().Sub(now).Seconds())
	}
	if d.Verdict != limit.Reject {
		return nil, nil
	}
	return &protocol.Error{Reason: protocol.ReasonRateLimited, Scope: d.Scope.String(), Rule: d.Rule, RetryAfter: limit.Jitter(d.RetryAfter)}, nil
}
