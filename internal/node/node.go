package node

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"liveroom/conn"
	"liveroom/fanout"
	"liveroom/fanout/store"
	"liveroom/internal/admit"
	"liveroom/internal/catalogue"
	"liveroom/internal/config"
	"liveroom/internal/filter"
	"liveroom/internal/hook"
	"liveroom/internal/journal"
	"liveroom/internal/payment"
	"liveroom/internal/preview"
	"liveroom/internal/signin"
	"liveroom/internal/token"
	"liveroom/internal/trace"
	"liveroom/internal/webhook"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
	"liveroom/room/audience"
)

// Node is one running server: every part, in the order in which they were made.
type Node struct {
	// Fixed after start.
	cfg                               config.Config
	log                               *slog.Logger
	trace                             *trace.Tracer
	certificate, operatorsCertificate *keyPair // nil: plain HTTP
	entrance                          *signin.Entrance
	operatorsRoots                    *x509.CertPool // nil: operators show no certificate
	viewers                           *port
	operators                         *port
	tokens                            *token.Authority
	markKey                           []byte
	revoked                           token.Revocations
	gate                              *limit.Gate
	quotas                            quotas
	fabric                            *fanout.Fabric
	recorder                          *preview.Recorder
	lately                            *lately
	changes                           *changes // with the book of limits
	lag                               *admit.LagProbe
	sockets                           *conn.Metrics
	hooks                             hooks
	till                              *payment.Till // nil: there is no hook for gifts
	hub                               *room.Hub
	catalogue                         *catalogue.Book
	words                             *filter.Book
	acceptor                          *conn.Acceptor
	calls                             *hook.Metrics
	readers                           journal.Consumers
	webhooks                          webhook.Set
	health                            *health

	closers closers
	failed  chan error // what a server ended with although nobody stopped it; one place per server
}

// Start makes every part and begins to serve; [Node.Run] follows. On an error nothing is left behind.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Node, err error) {
	if err := hasStore(cfg); err != nil {
		return nil, err
	}
	seed, rules, err := loadRules(cfg.Limits)
	if err != nil {
		return nil, err
	}
	log = slog.New(trace.Logs(log.Handler()))
	n := &Node{cfg: cfg, log: log, failed: make(chan error, 2)}
	if err := n.readCertificates(); err != nil {
		return nil, err
	}
	if err := prepareDataDir(cfg.DataDir); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		if fault := n.closers.run(context.Background()); fault != nil {
			log.Warn("start undone", "err", fault)
		}
	}()
	if err = n.listen(); err != nil {
		return nil, err
	}
	n.runs("watching the certificate", n.certificate.follow)
	n.runs("watching the operators' certificate", n.operatorsCertificate.follow)
	n.every("giving memory back", memoryEvery, newSurplus().giveBack)
	reg := newRegistry()
	if err = n.openTracing(reg); err != nil {
		return nil, err
	}
	if err = n.joinNodes(ctx, reg); err != nil {
		return nil, err
	}
	secret, err := n.sharedSecret(ctx)
	if err != nil {
		return nil, err
	}
	n.markKey = markKey(secret)
	if n.entrance, err = n.openEntrance(secret); err != nil {
		return nil, err
	}
	refreshed, stop := context.WithCancel(context.Background())
	n.closers.add("end refreshing the issuer's keys", 0, func(context.Context) error { stop(); return nil })
	if n.tokens, err = newAuthority(refreshed, cfg, token.Config{Secret: secret, JWKSURL: cfg.Auth.JWKSURL, Revoked: &n.revoked}, log); err != nil {
		return nil, err
	}
	if err = n.openRooms(ctx, seed, rules, reg); err != nil {
		return nil, err
	}
	if err = n.learnRevoked(ctx); err != nil {
		return nil, err
	}
	n.startGuard(ctx)
	if err = n.openWebhooks(reg); err != nil {
		return nil, err
	}
	if err = n.openDoors(reg); err != nil {
		return nil, err
	}
	n.keepDoors(reg)
	n.serve(n.viewers)
	n.serve(n.operators)
	return n, nil
}

// Check reads everything that a start would read and returns how many rules limit what.
func Check(cfg config.Config) (rules int, err error) {
	spec, _, err := loadRules(cfg.Limits)
	if err != nil {
		return 0, err
	}
	if err := hasStore(cfg); err != nil {
		return 0, err
	}
	if err := (&Node{cfg: cfg, log: slog.New(slog.DiscardHandler)}).readCertificates(); err != nil {
		return 0, err
	}
	if _, err := readVersion(cfg.DataDir); err != nil {
		return 0, err
	}
	return len(spec.Rules), nil
}

// Addr is where viewers come in, AdminAddr where operators do.
func (n *Node) Addr() net.Addr      { return n.viewers.ln.Addr() }
func (n *Node) AdminAddr() net.Addr { return n.operators.ln.Addr() }

// Reread has the files read that may change while the node runs: the certificates' here; the book looks at limits.file by itself,
// each second.
func (n *Node) Reread() {
	n.certificate.ask()
	n.operatorsCertificate.ask()
}

// Tokens signs and verifies.
func (n *Node) Tokens() *token.Authority { return n.tokens }

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// openRooms makes what rooms need: the gate, the limits in force, the hub.
func (n *Node) openRooms(ctx context.Context, seed *limit.Spec, rules *limit.Rules, reg *prometheus.Registry) (err error) {
	n.gate = limit.NewGate(rules.WithVersion(0), limit.NewClock()) // so that any version of the book follows it
	reg.MustRegister(newLimitMetrics(n.gate))
	n.watchTraffic(reg)
	if err := n.shareQuotas(reg); err != nil {
		return err
	}
	said := &allowances{gate: n.gate}
	if err := n.openBook(ctx, seed, reg); err != nil {
		return err
	}
	if err := n.openHooks(reg); err != nil {
		return err
	}
	n.openTill(ctx, reg)
	joins, danmaku := n.consults(reg)
	n.health = newHealth(n.cfg.NodeID, reg, n.needs()...)
	n.every("counting degraded time", degradedEvery, n.health.count)
	n.remember(reg)
	n.sockets = conn.NewMetrics(reg)
	if n.lag, err = admit.NewLagProbe(); err != nil {
		return err
	}
	n.closers.add("end the lag probe", 0, func(context.Context) error { n.lag.Close(); return nil })
	deflateFrom := 0 // what pays
	if n.cfg.Compression == config.CompressionOn {
		deflateFrom = 1
	}
	n.hub, err = room.New(room.Config{
		Bus: newBus(n.fabric), Gate: n.gate, Lag: n.lag.Read, Behind: n.cfg.Rooms.Behind, Shed: n.sockets.Shed, Verify: n.verify, Allowances: said.of, Elsewhere: n.elsewhere, Storing: n.fabric.Store.Storing,
		EventTypes: n.cfg.Events.Types, NoteSessions: n.cfg.Events.Sessions == config.EventsOn, NoDanmaku: n.cfg.Events.Danmaku == config.EventsOff, Everywhere: n.everywhere, Followed: n.cfg.Rooms.Followed, Account: n.cfg.Rooms.Account,
		Gifts: n.cfg.Gifts.Catalogue, Node: n.cfg.NodeID, Log: n.log, Metrics: room.NewMetrics(reg), Trace: n.trace,
		AutoCreate: true, // whoever opens a room is asked by newRooms
		GiftsBy:    protocol.GiftAuthority(n.cfg.Gifts.Authority),
		Till:       n.sells(), JoinHook: joins, DanmakuHook: danmaku,
		MarkKey:  n.markKey,
		MaxRooms: n.cfg.Rooms.Max, MaxText: n.cfg.Rooms.TextGraphemes, RoomIdle: n.cfg.Rooms.Idle,
		Heartbeat: n.cfg.Sessions.Heartbeat,
		Audience:  audience.Config{Tick: n.cfg.Rooms.Tick, DeflateFrom: deflateFrom, Flushed: func(id string, took time.Duration) { n.trace.Took(trace.Tick, "flush", id, took) }},
	})
	if err != nil {
		return err
	}
	n.closers.add("close rooms", closeTimeout, n.hub.Close)
	unheld, err := n.fabric.Store.Held.FollowHeld(ctx, func(r store.HeldRecord, known bool) { n.hub.HeardHeld(r.Room, r.Seq, r.Value, known) })
	if err != nil {
		return err
	}
	n.closers.add("end following what is held", 0, func(context.Context) error { unheld(); return nil })
	if err := n.openCatalogue(ctx, reg); err != nil {
		return err
	}
	if err := n.openFilter(ctx, reg); err != nil {
		return err
	}
	if err := n.openEraser(ctx, reg); err != nil {
		return err
	}
	n.fabric.Presence.Announce(n.audiences)
	n.fabric.Presence.Sample(samples{n.hub})
	return n.fabric.Questions.Answer(verbCast, n.hear)
}
