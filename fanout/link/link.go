package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/internal/lock"
	"liveroom/internal/trace"
)

var (
	// ErrRefused says that nothing was stored and nothing will be.
	ErrRefused = errors.New("fanout: refused")
	// ErrUnknown says that the store did not answer in time: the write may have happened or may still happen.
	// The same id may be sent again for as long as it is remembered.
	ErrUnknown = errors.New("fanout: outcome unknown")
	// ErrDisconnected says that NATS is away and nothing was sent.
	ErrDisconnected = errors.New("fanout: not connected")
	// ErrForbidden says that NATS does not let this node's user do it and nothing was sent.
	ErrForbidden = errors.New("fanout: forbidden by nats")
	// ErrClosed says that the node closes.
	ErrClosed = errors.New("fanout: closed")
)

// Config says how a node reaches NATS. Every field is set; without URLs a server is embedded, which has the directory and
// the sizes.
type Config struct {
	NodeID      string
	URLs        []string
	Credentials string
	TLS         *tls.Config

	DataDir              string
	DiskMost, MemoryMost int64 // bytes of all streams

	StoreTimeout, ProbeTimeout, FollowEvery time.Duration

	Metrics *Metrics
	Trace   *trace.Tracer // of calls of the store; nil: of none
}

// Link is a node's way to NATS. All methods may be called from any goroutine.
type Link struct {
	// Fixed after Open.
	Live  *nats.Conn // rooms' subscriptions, danmaku, presence
	Store *nats.Conn // JetStream and questions: apart, because the server answers a read on the reader's connection, in its turn
	JS    jetstream.JetStream
	Log   *slog.Logger

	cfg     Config
	metrics *Metrics
	server  *embedded // nil with URLs
	probes  [2]*probe
	roads   *roads
	closing chan struct{}

	connections atomic.Uint64 // losses and returns of connections
	changed     atomic.Int64  // the last of them, nanoseconds after roads.began
	started     atomic.Bool   // hooks are set
	hooks       Hooks         // owned by Start until started
	probed      time.Time     // when Probe was called last; owned by it

	mu        lock.Mutex[lock.Leaf]
	followers map[string]*Follower // guarded by mu
}

// Hooks are called by the connections, and wait for nothing.
type Hooks struct {
	Returned func()                   // a connection is back
	Slow     func(*nats.Subscription) // its reader is too slow, and messages were dropped
}

// Open connects, starting the embedded server when there are no URLs, and tries whether this node may do what it must. What
// was opened is in l also when there is an error.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (l *Link, err error) {
	l = &Link{Log: log, cfg: cfg, metrics: cfg.Metrics, closing: make(chan struct{}), followers: map[string]*Follower{}}
	l.roads = newRoads(l)
	if len(cfg.URLs) == 0 {
		if l.server, err = startEmbedded(cfg, log); err != nil {
			return l, err
		}
	}
	for i, name := range []string{"live", "store"} {
		c, err := l.connect(name)
		if err != nil {
			return l, err
		}
		if i == 0 {
			l.Live = c
		} else {
			l.Store = c
		}
	}
	if l.server == nil {
		if err = l.roads.tryAll(ctx, true); err != nil {
			return l, err
		}
	}
	l.JS, err = jetstream.New(l.Store, jetstream.WithPublishAsyncTimeout(cfg.StoreTimeout), jetstream.WithPublishAsyncMaxPending(postedMost))
	return l, err
}

// postedMost bounds the writes that were begun and not answered, beyond what sockets may have waiting.
const postedMost = 1 << 15

// Start begins to listen to this node's own messages, and to tell hooks. What happened to the connections before is told at once.
func (l *Link) Start(hooks Hooks) error {
	for i, c := range []*nats.Conn{l.Live, l.Store} {
		p, err := newProbe(c, NodeSubject(l.cfg.NodeID, [...]string{"probe.live", "probe.store"}[i]))
		if err != nil {
			return fmt.Errorf("subscribe to the probe: %w", err)
		}
		l.probes[i] = p
	}
	if _, err := l.Live.Subscribe(roomPrefix+l.roads.room+".>", l.roads.heard); err != nil {
		return fmt.Errorf("subscribe to the probe's room: %w", err)
	}
	l.changed.Store(int64(time.Since(l.roads.began))) // nothing was sent over the roads while this node opened
	l.hooks = hooks
	l.started.Store(true)
	l.setConnected()
	if l.connections.Load() > 0 {
		hooks.Returned()
	}
	return nil
}

// Closing is closed by [Link.BeginClose], which is called once: what waits for other nodes ends.
func (l *Link) Closing() <-chan struct{} { return l.closing }

// BeginClose makes [Link.Closed] true.
func (l *Link) BeginClose() { close(l.closing) }

// Closed reports whether the node closes.
func (l *Link) Closed() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// Drain lets handlers finish what has arrived.
func (l *Link) Drain(ctx context.Context) error {
	closed := make(chan struct{})
	l.Live.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if err := l.Live.Drain(); err != nil {
		return nil // not connected: nothing will arrive, and Shut closes it
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain nats: %w", ctx.Err())
	}
}

// Shut closes what is open, in reverse.
func (l *Link) Shut() {
	for _, c := range []*nats.Conn{l.Live, l.Store} {
		if c != nil {
			c.Close()
		}
	}
	if l.server != nil {
		l.server.stop()
	}
}

// SyncWithin is how soon what is written behind is on the embedded server's disk, at the latest.
const SyncWithin = 30 * time.Second

// Embedded reports whether the NATS server is this process's own.
func (l *Link) Embedded() bool { return l.server != nil }

// StreamDir is where the embedded server keeps a stream on disk.
func (l *Link) StreamDir(stream string) string {
	return filepath.Join(l.cfg.DataDir, "nats", "jetstream", "$G", "streams", stream)
}

// Fault is why the embedded server's store takes no writes, nil when it does.
func (l *Link) Fault() error { return l.server.fault() }

// Reopen stops the embedded server and starts another on what is on disk, and waits until this node is connected to it again.
// sync is false where writes need not be on disk one by one.
func (l *Link) Reopen(ctx context.Context, sync bool) error {
	conns := []*nats.Conn{l.Live, l.Store}
	var was [2]uint64 // reconnects; a connection that was cut looks whole until its loss is noticed
	for i, c := range conns {
		was[i] = c.Stats().Reconnects
	}
	if err := l.server.reopen(sync); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reopenTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	back := func(i int) bool { return conns[i].Stats().Reconnects > was[i] && conns[i].IsConnected() }
	for !back(0) || !back(1) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the store is open again, and this node not connected to it: %w", ctx.Err())
		}
	}
	return nil
}

// reopenTimeout bounds that wait.
const reopenTimeout = 5 * time.Second

// Liveness of a connection below our own probe, which finds what these cannot.
const (
	connectTimeout = 2 * time.Second
	pingEvery      = 5 * time.Second
	pingsOut       = 2
	reconnectWait  = 100 * time.Millisecond
	reconnectMost  = 2 * time.Second
)

// connect opens one of the node's two connections. It never buffers over a reconnect: what could not be sent is an
// error to its sender at once, and nothing old is said late.
func (l *Link) connect(name string) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("liveroom " + l.cfg.NodeID + " " + name),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(connectTimeout),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.ErrorHandler(l.onError),
		nats.PermissionErrOnSubscribe(true),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			l.connectionChanged()
			if !l.Closed() {
				l.Log.Warn("nats connection lost", "connection", name, "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			l.metrics.reconnects.Inc()
			l.Log.Info("nats connection back", "connection", name)
			l.connectionChanged() // whatever was re-published meanwhile was not heard
			if l.started.Load() {
				l.hooks.Returned()
			}
		}),
	}
	if l.server != nil {
		opts = append(opts, nats.InProcessServer(l.server))
	}
	if l.cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(l.cfg.Credentials))
	}
	if l.cfg.TLS != nil {
		opts = append(opts, nats.Secure(l.cfg.TLS))
	}
	o := nats.GetDefaultOptions()
	o.Servers = l.cfg.URLs
	for _, opt := range opts {
		if err := opt(&o); err != nil {
			return nil, fmt.Errorf("configure nats: %w", err)
		}
	}
	c, err := o.Connect()
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	return c, nil
}

// reconnectDelay doubles from reconnectWait to reconnectMost; called once per round over all servers.
func reconnectDelay(attempts int) time.Duration {
	return min(reconnectWait<<min(attempts, 10), reconnectMost)
}

// connectionChanged is for a connection that was lost or came back: all followers look anew.
func (l *Link) connectionChanged() {
	l.setConnected()
	l.connections.Add(1)
	l.changed.Store(int64(time.Since(l.roads.began)))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.followers {
		w.News.Soon()
	}
	l.roads.soon.Soon()
}

// setConnected is for the handlers, which may be called before Open has both connections.
func (l *Link) setConnected() {
	if !l.started.Load() {
		return
	}
	up := 0.0
	if l.Connected() {
		up = 1
	}
	l.metrics.connected.Set(up)
}

// Connected reports whether both connections stand.
func (l *Link) Connected() bool { return l.Live.IsConnected() && l.Store.IsConnected() }

// onError hears what no call returns.
func (l *Link) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		l.roads.forbidden(err)
	case !errors.Is(err, nats.ErrSlowConsumer):
		l.Log.Error("nats", "err", err)
	case l.started.Load():
		l.hooks.Slow(sub)
	}
}

// Publish sends one message on the live connection, at most once, without waiting.
func (l *Link) Publish(subject string, payload []byte) error {
	// Without a reconnect buffer nats.go itself refuses while it reconnects.
	if err := l.Live.Publish(subject, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// Traced is a call of JetStream about a stream, or about the subjects of a road.
func (l *Link) Traced(ctx context.Context, call, of string) (context.Context, trace.Op) {
	return l.cfg.Trace.Begin(ctx, trace.Store, call, of)
}

// Bounded bounds a wait for JetStream.
func (l *Link) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.cfg.StoreTimeout)
}

// Inside connects to the embedded server once more, for what would hold the node's own connections up. The caller closes it.
func (l *Link) Inside(name string) (*nats.Conn, error) {
	c, err := nats.Connect("", nats.Name("liveroom "+l.cfg.NodeID+" "+name), nats.InProcessServer(l.server), nats.NoReconnect())
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	return c, nil
}
