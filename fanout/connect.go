package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

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
func (f *Fabric) connect(name string) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("liveroom " + f.cfg.NodeID + " " + name),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.Timeout(connectTimeout),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.ErrorHandler(f.onError),
		nats.PermissionErrOnSubscribe(true),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			f.setConnected()
			f.connectionChanged()
			if !f.isClosed() {
				f.log.Warn("nats connection lost", "connection", name, "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			f.metrics.reconnects.Inc()
			f.setConnected()
			f.log.Info("nats connection back", "connection", name)
			f.lookAfterStreams()  // a server that was restarted has lost its memory streams, or all
			f.connectionChanged() // whatever was re-published meanwhile was not heard
			f.announceSoon.soon()
		}),
	}
	if f.server != nil {
		opts = append(opts, nats.InProcessServer(f.server))
	}
	if f.cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(f.cfg.Credentials))
	}
	if f.cfg.TLS != nil {
		opts = append(opts, nats.Secure(f.cfg.TLS))
	}
	o := nats.GetDefaultOptions()
	o.Servers = f.cfg.URLs
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

// setConnected is for the handlers, which may be called before Open has both connections.
func (f *Fabric) setConnected() {
	if !f.running.Load() {
		return
	}
	up := 0.0
	if f.connected() {
		up = 1
	}
	f.metrics.connected.Set(up)
}

func (f *Fabric) connected() bool { return f.live.IsConnected() && f.store.IsConnected() }

// onError hears what no call returns: above all that a room's handler was too slow and messages were dropped.
func (f *Fabric) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		f.forbidden(err)
		return
	}
	if !errors.Is(err, nats.ErrSlowConsumer) {
		f.log.Error("nats", "err", err)
		return
	}
	f.mu.Lock()
	var slow *Subscription
	for _, s := range f.subs {
		if s.sub == sub {
			slow = s
		}
	}
	f.mu.Unlock()
	if slow == nil {
		return
	}
	slow.countDropped()
	f.log.Warn("room drops messages: its handler is too slow", "room", slow.room)
	f.sweepSoon.soon() // gifts among them are read from the ledger
}

// drain lets handlers finish what has arrived, then closes the connection.
func drain(ctx context.Context, c *nats.Conn) error {
	closed := make(chan struct{})
	c.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if err := c.Drain(); err != nil {
		return nil // not connected: nothing will arrive, and shut closes it
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain nats: %w", ctx.Err())
	}
}
