package fanout

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/protocol"
)

// embeddedSync is how soon the like counters, written behind, are on disk at the latest; well below [likeLogAge].
const embeddedSync = 30 * time.Second

// embedded is the NATS server of a node that has none: no port, streams under the data directory, every write of a
// stream that does not say otherwise synced to disk.
type embedded struct {
	*server.Server
	lock *os.File // held while the server runs: two servers on one directory would destroy it

	store server.JetStreamConfig // as it was started with
}

// fault is why the store takes no writes, nil when it does: nats-server keeps the first error of a write for good and
// answers what comes after it with silence.
func (e *embedded) fault() error {
	if !e.JetStreamEnabled() {
		return errStoreOff
	}
	if h := e.Healthz(&server.HealthzOptions{}); h != nil && h.Error != "" && strings.Contains(h.Error, "write error") {
		return errors.New("fanout: " + h.Error)
	}
	return nil
}

var errStoreOff = errors.New("fanout: the embedded store has stopped")

// reopen closes the streams and opens them again from what is on disk; the server and its connections stay. sync is false
// where writes need not be on disk one by one.
func (e *embedded) reopen(sync bool) error {
	if err := e.ShutdownJetStream(); err != nil {
		return fmt.Errorf("close the embedded store: %w", err)
	}
	store := e.store // EnableJetStream writes into its argument
	store.SyncAlways = sync
	if err := e.EnableJetStream(&store); err != nil {
		return fmt.Errorf("open the embedded store: %w", err)
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
	store := server.JetStreamConfig{
		StoreDir:     dir,
		MaxStore:     cfg.GiftBytes + likesBytes + likeLogBytes + settingsBytes + nodesBytes + clusterBytes + rulesBytes + auditBytes + revokedBytes,
		MaxMemory:    cfg.RecentBytes + 1<<20,
		SyncAlways:   true,
		SyncInterval: embeddedSync,
		Strict:       true,
	}
	s, err := server.NewServer(&server.Options{
		ServerName:             "liveroom-" + protocol.Token(cfg.NodeID),
		DontListen:             true,
		JetStream:              true,
		StoreDir:               store.StoreDir,
		JetStreamMaxStore:      store.MaxStore,
		JetStreamMaxMemory:     store.MaxMemory,
		SyncAlways:             store.SyncAlways,
		SyncInterval:           store.SyncInterval,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure embedded nats: %w", err), lock.Close())
	}
	e := &embedded{s, lock, store}
	l := &serverLog{log: log}
	s.SetLoggerV2(l, false, false, false)
	s.Start() // without a listener it returns as soon as the streams are recovered
	if !s.JetStreamEnabled() {
		e.stop()
		return nil, fmt.Errorf("start embedded nats under %s: %s", dir, l.reason())
	}
	return e, nil
}

// stop returns after the server's last goroutine.
func (e *embedded) stop() {
	e.Shutdown()
	e.WaitForShutdown()
	_ = e.lock.Close() // releases the lock; nothing was written
}

// serverLog passes the server's log on: what it calls a notice is debugging to us.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
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
