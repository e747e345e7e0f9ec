package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"liveroom/fanout"
	"liveroom/fanout/store"
	"liveroom/internal/backup"
	"liveroom/internal/config"
	"liveroom/internal/token"
)

// BackupPath is the operators' call that answers with a backup of what this node keeps.
const BackupPath = "/backup"

// pieceTimeout is how long who takes a backup may take for a piece of it.
const pieceTimeout = 30 * time.Second

// backUp is POST /backup. An answer that ends early has no end in it, and is no backup.
func (n *Node) backUp(w http.ResponseWriter, r *http.Request) {
	if !n.cfg.Embedded() {
		http.Error(w, "This node keeps nothing itself: its streams are the NATS servers'. Back those up (nats account backup).", http.StatusConflict)
		return
	}
	began := time.Now()
	w.Header().Set("Content-Type", "application/x-tar")
	out := &patient{w: w, limits: http.NewResponseController(w)}
	err := n.writeBackup(r.Context(), out)
	if err != nil {
		n.log.Error("a backup failed", "bytes", out.sent, "err", err)
		panic(http.ErrAbortHandler) // else it would look whole to HTTP
	}
	n.log.Info("backed up", "bytes", out.sent, "took", time.Since(began).Round(time.Millisecond))
}

func (n *Node) writeBackup(ctx context.Context, w io.Writer) error {
	secret := ""
	if n.cfg.Auth.Secret == "" {
		var err error
		if secret, err = token.ReadSecret(n.cfg.DataDir); err != nil {
			return err
		}
	}
	b, err := backup.NewWriter(w, backup.Manifest{Version: Version(), Node: n.cfg.NodeID, Made: time.Now().UTC()}, secret)
	if err == nil {
		err = n.fabric.Store.Snapshot(ctx, b)
	}
	if err == nil {
		err = b.Close()
	}
	return err
}

// KeepBackup writes what a server answers [BackupPath] with beside its file, and gives it the name when it is whole and on disk.
func KeepBackup(file string, from io.Reader) (made backup.Manifest, size int64, err error) {
	f, err := os.OpenFile(file+".part", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return made, 0, config.Fault{Path: "backup", Allowed: "a file that can be written", Received: err.Error()}
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), file)
		} else {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if size, err = io.Copy(f, from); err != nil {
		return made, size, fmt.Errorf("the server ended the backup early, its log says why: %w", err)
	}
	if err = f.Sync(); err != nil {
		return made, size, err
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return made, size, err
	}
	made, err = backup.Verify(f)
	return made, size, err
}

var (
	_ store.Backup  = (*backup.Writer)(nil)
	_ fanout.Backup = (*backup.Reader)(nil)
)

// patient gives each write its own time instead of one for all of them.
type patient struct {
	w      io.Writer
	limits *http.ResponseController
	sent   int64
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.limits.SetWriteDeadline(time.Now().Add(pieceTimeout)); err != nil {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.sent += int64(n)
	return n, err
}

// Restored says what a restore has made.
type Restored struct {
	backup.Manifest
	Gifts uint64
}

// restoring is where a restore works, inside the data directory. One that was ended by force leaves it, and the next takes it away.
const restoring = ".restoring"

// Restore fills the empty data directory of a node that does not run with what a backup holds. The file is read twice: once to know
// that it is whole. Ended at any instant, it leaves a data directory without a store, or with all of it.
func Restore(ctx context.Context, cfg config.Config, file string, log *slog.Logger) (done Restored, err error) {
	if !cfg.Embedded() {
		return done, config.Fault{Path: "nats", Allowed: config.NATSEmbedded + ", since a backup is of one node's own store", Received: "URLs of servers"}
	}
	if err := hasStore(cfg); err != nil {
		return done, err
	}
	if err := prepareDataDir(cfg.DataDir); err != nil {
		return done, err
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, storeDir)); !errors.Is(err, fs.ErrNotExist) {
		return done, config.Fault{Path: "data_dir", Allowed: "an empty directory to restore into", Received: cfg.DataDir + ", where a node's store is"}
	}
	f, err := os.Open(file)
	if err != nil {
		return done, config.Fault{Path: "restore", Allowed: "the file of a backup", Received: err.Error()}
	}
	defer f.Close()
	if done.Manifest, err = backup.Verify(bufio.NewReaderSize(f, 1<<20)); err != nil {
		return done, fmt.Errorf("%s: %w", file, err)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return done, err
	}
	b, err := backup.NewReader(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return done, err
	}
	work := filepath.Join(cfg.DataDir, restoring)
	if err := os.RemoveAll(work); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	into := stored(cfg)
	into.DataDir = work
	if done.Gifts, err = fanout.Restore(ctx, into, b, log); err != nil {
		return done, err
	}
	if err := syncTree(work); err != nil {
		return done, err
	}
	if b.Secret != "" && cfg.Auth.Secret == "" {
		if _, err := token.KeepSecret(cfg.DataDir, b.Secret); err != nil {
			return done, err
		}
	}
	// The store last: with it in place the restore is done.
	for _, name := range []string{store.MarksFile, storeDir} {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(cfg.DataDir, name)); err != nil {
			return done, err
		}
	}
	return done, syncFile(cfg.DataDir)
}

// storeDir is the embedded store's place in the data directory.
const storeDir = "nats"

// syncTree brings all below dir to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}

// syncFile is for files and directories; some systems sync no directory, and keep its entries all the same.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if info, e := f.Stat(); e == nil && info.IsDir() {
		err = nil
	}
	return errors.Join(err, f.Close())
}
