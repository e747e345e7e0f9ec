package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
)

// begun is a node on a directory, and what it logs.
func begun(t *testing.T, dir string) (*Fabric, *syncBuffer, error) {
	t.Helper()
	log := &syncBuffer{}
	f, err := Open(t.Context(), Config{NodeID: "n1", DataDir: dir}, slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil)))
	return f, log, err
}

// give stores gifts of the room demo, and returns the last one's sequence.
func give(t *testing.T, f *Fabric, from, n int) (last uint64) {
	t.Helper()
	for i := range n {
		r, err := f.Store.Gifts.StoreGift(t.Context(), "demo", "u", fmt.Sprint("g", from+i), bytes.Repeat([]byte{'x'}, 200))
		if err != nil {
			t.Fatal(err)
		}
		last = r.Seq
	}
	return last
}

// copyTree copies a directory.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// flip changes one byte of a file, in the middle.
func flip(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func streamDir(dir, stream string) string {
	return filepath.Join(dir, "nats", "jetstream", "$G", "streams", stream)
}

// blocks are a stream's files of messages.
func blocks(t *testing.T, dir, stream string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(streamDir(dir, stream), "msgs", "*.blk"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no blocks of %s: %v", stream, err)
	}
	return names
}

// Whatever happens to the ledger while the node is away is said, its name is another one, no number is given out again, and
// what comes next is stored and found.
func TestALedgerThatIsNotWholeIsSaidToBe(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir, older string){
		"a byte is another one": func(t *testing.T, dir, _ string) { flip(t, blocks(t, dir, link.GiftStream)[0]) },
		"a block is gone": func(t *testing.T, dir, _ string) {
			if err := os.Remove(blocks(t, dir, link.GiftStream)[0]); err != nil {
				t.Fatal(err)
			}
		},
		"an older copy is put back": func(t *testing.T, dir, older string) {
			if err := os.RemoveAll(streamDir(dir, link.GiftStream)); err != nil {
				t.Fatal(err)
			}
			copyTree(t, streamDir(older, link.GiftStream), streamDir(dir, link.GiftStream))
		},
		"everything in it is gone": func(t *testing.T, dir, _ string) {
			if err := os.RemoveAll(streamDir(dir, link.GiftStream)); err != nil {
				t.Fatal(err)
			}
		},
		"the store is gone": func(t *testing.T, dir, _ string) {
			if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, older := t.TempDir(), t.TempDir()
			f := mustBegin(t, dir)
			give(t, f, 0, 20)
			closeNow(t, f)
			copyTree(t, dir, older)
			f = mustBegin(t, dir)
			last, id := give(t, f, 20, 20), f.Store.Gifts.LedgerID()
			if err := f.Store.Gifts.Whole(); err != nil {
				t.Fatalf("a restart alone: %v", err)
			}
			closeNow(t, f)
			damage(t, dir, older)

			f, log, err := begun(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeNow(t, f) })
			eventually(t, "the loss to be known", func() bool { return f.Store.Gifts.Whole() != nil && f.Store.Gifts.LedgerID() != id })
			if err := f.Store.Gifts.Whole(); !errors.Is(err, store.ErrLedger) {
				t.Errorf("said %v", err)
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), fmt.Sprint(last)) {
				t.Errorf("the log does not tell it:\n%s", log)
			}
			next := give(t, f, 100, 1)
			if next <= last {
				t.Errorf("number %d is given out although %d was", next, last)
			}
			if got, err := f.Store.Gifts.Gifts(t.Context(), "demo", next-1, 10); err != nil || len(got) != 1 || got[0].Seq != next {
				t.Errorf("the gift behind it: %v, %v", got, err)
			}
		})
	}
}

func mustBegin(t *testing.T, dir string) *Fabric {
	t.Helper()
	f, _, err := begun(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestADamagedStreamIsNotMadeAnewOverWhatIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := mustBegin(t, dir)
	give(t, f, 0, 3)
	closeNow(t, f)
	meta := filepath.Join(streamDir(dir, link.GiftStream), "meta.inf")
	flip(t, meta)
	if f, _, err := begun(t, dir); err == nil {
		closeNow(t, f)
		t.Fatal("it starts, over gifts that are still on disk")
	} else if !errors.Is(err, store.ErrLedger) || !strings.Contains(err.Error(), streamDir(dir, link.GiftStream)) {
		t.Errorf("refused with %v", err)
	}
	flip(t, meta)
	f = mustBegin(t, dir)
	defer closeNow(t, f)
	if got, err := f.Store.Gifts.Gifts(t.Context(), "demo", 0, 10); err != nil || len(got) != 3 {
		t.Errorf("after the mend: %v, %v", got, err)
	}
}

// What was revoked stays so, or the node does not start.
func TestWhatIsRevokedIsNotForgotten(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir, older string){
		"a byte is another one": func(t *testing.T, dir, _ string) { flip(t, blocks(t, dir, link.BucketStream(link.RevokedBucket))[0]) },
		"an older copy is put back": func(t *testing.T, dir, older string) {
			if err := os.RemoveAll(streamDir(dir, link.BucketStream(link.RevokedBucket))); err != nil {
				t.Fatal(err)
			}
			copyTree(t, streamDir(older, link.BucketStream(link.RevokedBucket)), streamDir(dir, link.BucketStream(link.RevokedBucket)))
		},
		"it is gone": func(t *testing.T, dir, _ string) {
			if err := os.RemoveAll(streamDir(dir, link.BucketStream(link.RevokedBucket))); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, older := t.TempDir(), t.TempDir()
			f := mustBegin(t, dir)
			if err := f.Store.Revoked.Revoke(t.Context(), "user:a", time.Now()); err != nil {
				t.Fatal(err)
			}
			closeNow(t, f)
			copyTree(t, dir, older)
			f = mustBegin(t, dir)
			for i := range 5 {
				if err := f.Store.Revoked.Revoke(t.Context(), fmt.Sprint("user:b", i), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			closeNow(t, f)
			damage(t, dir, older)
			f, _, err := begun(t, dir)
			if err == nil {
				defer closeNow(t, f)
				heard := map[string]bool{}
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				stop, err := f.Store.Revoked.FollowRevoked(ctx, func(name string, _ time.Time, _ bool) { heard[name] = true })
				if err != nil {
					t.Fatal(err)
				}
				stop()
				t.Fatalf("it starts and knows %v", heard)
			}
			if !errors.Is(err, store.ErrLedger) || !strings.Contains(err.Error(), streamDir(dir, link.BucketStream(link.RevokedBucket))) || !strings.Contains(err.Error(), store.MarksFile) {
				t.Errorf("refused with %v", err)
			}
		})
	}
}
