package node

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/conn"
	"liveroom/internal/admit"
	"liveroom/internal/api"
	"liveroom/internal/config"
	"liveroom/internal/site"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
	"liveroom/web"
)

// maxPongTimeout is how long a ping may stay without an answer; never longer than the heartbeat itself.
const maxPongTimeout = 10 * time.Second

// newcomers tells whether this node takes sockets now: not while it is behind in all else, and not without memory to spare.
func (n *Node) newcomers() func() (retry time.Duration, ok bool) {
	memory := admit.NewHeadroom(uint64(n.cfg.Sessions.MaxMemory) << 20)
	return func() (time.Duration, bool) {
		if retry, ok := n.hub.Newcomers(); !ok {
			return retry, false
		}
		return memory.Ready()
	}
}

// openDoors makes what people come in by: sockets, pages, API.
func (n *Node) openDoors(reg *prometheus.Registry) error {
	pages, err := site.New(web.Demo(), web.Client(), n.cfg.AllowedOrigins())
	if err != nil {
		return err
	}
	clientAddr := func(r *http.Request) netip.Addr { return limit.ClientAddr(r, n.cfg.TrustedProxies) }
	arrivals := admit.NewArrivals(n.gate)
	created, err := admit.LimitNewRooms(n.gate.Now, n.cfg.Rooms.AutoCreate, int64(n.cfg.Rooms.CreateRate))
	if err != nil {
		return err
	}
	n.acceptor, err = conn.NewAcceptor(conn.Config{
		Origins: n.cfg.AllowedOrigins(), MaxSessions: n.cfg.Sessions.Max,
		HelloTimeout: n.cfg.Sessions.HelloTimeout, Heartbeat: n.cfg.Sessions.Heartbeat, WriteTimeout: n.cfg.Sessions.WriteTimeout,
		PongTimeout: min(maxPongTimeout, n.cfg.Sessions.Heartbeat), ClientAddr: clientAddr, Ready: n.newcomers(), Admit: admitting(arrivals), Meter: meter{admit.NewFrames(n.gate, reg)},
		Deflate: n.cfg.Compression != config.CompressionOff, Metrics: n.sockets, Logger: n.log,
	}, &lobby{tokens: n.tokens, hub: n.hub, guests: n.cfg.Auth.Guests, created: created})
	if err != nil {
		return err
	}
	n.closers.add("send clients away", n.cfg.DrainTimeout+partTimeout+closeTimeout, n.leave)
	var nodes api.Nodes
	if !n.cfg.Embedded() {
		nodes = n.askNodes
	}
	calls := api.New(api.Config{
		Hub: n.hub, Ledger: n.fabric.Store.Gifts, Consumers: n.readers, Webhook: n.webhook, Ending: n.ending(), Audit: auditTrail{n.fabric.Store.Audit}, Held: heldQueue{n.fabric.Store.Held}, Said: n.fabric.Store.Recent, Revoker: n.fabric.Store.Revoked, Tokens: n.tokens, Gate: n.gate, ClientAddr: clientAddr, Create: created.Admit,
		Attributes: n.cfg.Protocol.Attributes, Origins: n.cfg.AllowedOrigins(), Guests: n.cfg.Auth.Guests, Book: n.changes.Book, Catalogue: n.catalogue, Filter: n.words, Changes: n.changes, Recent: n.recentTraffic, Networks: arrivals.Acquire,
		Nodes: nodes, Log: n.log, Metrics: reg, Trace: n.trace,
	})
	if err := n.answerNodes(calls); err != nil {
		return err
	}
	n.viewers.Handler, n.viewers.TLSConfig = viewersMux(pages, calls, n.acceptor), n.certificate.config()
	n.operators.Handler, n.operators.TLSConfig = n.certified(operatorsMux(n, pages, calls, reg)), n.forOperators()
	return nil
}

// admitting lets sockets in by their addresses.
func admitting(a *admit.Arrivals) func(netip.Addr) (conn.Arrival, *protocol.Error) {
	return func(addr netip.Addr) (conn.Arrival, *protocol.Error) {
		in, err := a.Admit(addr)
		if err != nil {
			return nil, err // no *admit.Arrival in it
		}
		return in, nil
	}
}

// meter spends sockets' frames, and knows who they are of as soon as a room does.
type meter struct{ frames *admit.Frames }

var _ conn.Meter = meter{}

// Frame implements [conn.Meter].
func (m meter) Frame(s *conn.Session) (*protocol.Error, *protocol.Refusal) {
	if seated, ok := s.Seat().(*room.Member); ok {
		who := seated.Who()
		return m.frames.Spend(s, who.User, who.Role)
	}
	return m.frames.Spend(s, "", "")
}
