package fanout

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	s, err := server.NewServer(&server.Options{
		ServerName:             "liveroom-" + protocol.Token(cfg.NodeID),
		DontListen:             true,
		JetStream:              true,
		StoreDir:               dir,
		JetStreamMaxStore:      cfg.GiftBytes + likesBytes + likeLogBytes + settingsBytes + nodesBytes + clusterBytes + rulesBytes + auditBytes + revokedBytes,
		JetStreamMaxMemory:     cfg.RecentBytes + 1<<20,
		SyncAlways:             true,
		SyncInterval:           embeddedSync,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("configure embedded nats: %w", err), lock.Close())
	}
	e := &embedded{s, lock}
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
