package main

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/conn"
	"liveroom/internal/api"
	"liveroom/internal/site"
	"liveroom/limit"
	"liveroom/web"
)

// maxPongTimeout is how long a ping may stay without an answer; never longer than the heartbeat itself.
const maxPongTimeout = 10 * time.Second

// newcomers tells whether this node takes sockets now: not while it is behind in all else, and not without memory to spare.
func (n *node) newcomers() func() (retry time.Duration, ok bool) {
	memory := newHeadroom(uint64(n.cfg.Sessions.MaxMemory) << 20)
	return func() (time.Duration, bool) {
		if retry, ok := n.hub.Newcomers(); !ok {
			return retry, false
		}
		return memory.ready()
	}
}

// openDoors makes what people come in by: sockets, pages, API.
func (n *node) openDoors(certificate *tls.Config, reg *prometheus.Registry) error {
	pages, err := site.New(web.Demo(), web.Client(), n.cfg.AllowedOrigins())
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
		Origins: n.cfg.AllowedOrigins(), MaxSessions: n.cfg.Sessions.Max,
		HelloTimeout: n.cfg.Sessions.HelloTimeout, Heartbeat: n.cfg.Sessions.Heartbeat, WriteTimeout: n.cfg.Sessions.WriteTimeout,
		PongTimeout: min(maxPongTimeout, n.cfg.Sessions.Heartbeat), ClientAddr: clientAddr, Ready: n.newcomers(), Admit: arrivals.admit, Meter: newFrameMeter(n.gate, reg),
		Deflate: n.deflates(), Metrics: n.sockets, Logger: n.log,
	}, &lobby{tokens: n.tokens, hub: n.hub, guests: n.cfg.Auth.Guests, created: created})
	if err != nil {
		return err
	}
	var nodes api.Nodes
	if !n.cfg.Embedded() {
		nodes = n.askNodes
	}
	calls := api.New(api.Config{
		Hub: n.hub, Ledger: n.fabric, Audit: auditTrail{n.fabric}, Revoker: n.fabric, Tokens: n.tokens, Gate: n.gate, ClientAddr: clientAddr, Create: created.admit,
		Origins: n.cfg.AllowedOrigins(), Guests: n.cfg.Auth.Guests, Book: n.book, Preview: n.preview, Guard: func() any { return n.guard.Watching() }, Recent: n.recentTraffic, Networks: arrivals.acquire,
		Nodes: nodes, Log: n.log,
	})
	if err := n.answerNodes(calls); err != nil {
		return err
	}
	n.main = viewerServer(pages, calls, n.acceptor, certificate, n.log)
	n.admin = adminServer(n.cfg, pages, calls, n.health, reg, n.log)
	return nil
}
