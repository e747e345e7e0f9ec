//go:build !nonats

package link

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/internal/lock"
	"liveroom/protocol"
)

// embedded is the NATS server of a node that has none: no port, streams under the data directory, every write of a
// stream that does not say otherwise synced to disk.
type embedded struct {
	// fixed after construction
	lock    *os.File // held while the server runs: two servers on one directory would destroy it
	options server.Options
	log     *serverLog

	running atomic.Pointer[server.Server] // another one after reopen
}

// InProcessConn implements nats.InProcessConnProvider: a connection that is made anew finds the server that runs then.
func (e *embedded) InProcessConn() (net.Conn, error) { return e.running.Load().InProcessConn() }

// fault is why the store takes no writes, nil when it does: nats-server keeps the first error of a write for good and
// answers what comes after it with silence.
func (e *embedded) fault() error {
	s := e.running.Load()
	if !s.JetStreamEnabled() {
		return errStoreOff
	}
	if h := s.Healthz(&server.HealthzOptions{}); h != nil && h.Error != "" && strings.Contains(h.Error, "write error") {
		return errors.New("fanout: " + h.Error)
	}
	return nil
}

var errStoreOff = errors.New("fanout: the embedded store has stopped")

// reopen stops the server and starts another on what is on disk; this node's connections to it come back by themselves.
// Closing and opening the streams alone would be gentler, and is no safe operation of nats-server while it is asked. sync is
// false where writes need not be on disk one by one.
func (e *embedded) reopen(sync bool) error {
	old := e.running.Load()
	old.Shutdown()
	old.WaitForShutdown()
	return e.start(sync)
}

func (e *embedded) start(sync bool) error {
	options := e.options // the server keeps what it is given
	options.SyncAlways = sync
	s, err := server.NewServer(&options)
	if err != nil {
		return fmt.Errorf("configure embedded nats: %w", err)
	}
	s.SetLoggerV2(e.log, false, false, false)
	s.Start() // without a listener it returns as soon as the streams are recovered
	e.running.Store(s)
	if !s.JetStreamEnabled() {
		return fmt.Errorf("start embedded nats under %s: %s", options.StoreDir, e.log.reason())
	}
	return nil
}

func startEmbedded(cfg Config, log *slog.Logger) (*embedded, error) {
	dir := filepath.Join(cfg.DataDir, "nats")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("data directory %s is in use by another process or not writable: %w", cfg.DataDir, err)
	}
	e := &embedded{lock: lock, log: &serverLog{log: log}, options: server.Options{
		ServerName:             "liveroom-" + protocol.Token(cfg.NodeID),
		DontListen:             true,
		JetStream:              true,
		StoreDir:               dir,
		JetStreamMaxStore:      cfg.DiskMost,
		JetStreamMaxMemory:     cfg.MemoryMost,
		SyncAlways:             true,
		SyncInterval:           SyncWithin,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	}}
	if err := e.start(true); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}

// stop returns after the server's last goroutine.
func (e *embedded) stop() {
	if s := e.running.Load(); s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
	_ = e.lock.Close() // releases the lock; nothing was written
}

// serverLog passes the server's log on: what it calls a notice is debugging to us.
type serverLog struct {
	log *slog.Logger

	mu    lock.Mutex[lock.Leaf]
	fatal string // the last
}

// Fatalf keeps the reason for whoever finds the server stopped.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	l.fatal = fmt.Sprintf(format, v...)
	l.mu.Unlock()
	l.log.Error("nats stops", "err", fmt.Sprintf(format, v...))
}

func (l *serverLog) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats: " + fmt.Sprintf(format, v...))
}
func (l *serverLog) Warnf(format string, v ...any) { l.log.Warn("nats: " + fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats: " + fmt.Sprintf(format, v...))
}
func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}
