package fanout

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"liveroom/fanout/link"
)

// smallVolume mounts a volume of its own in memory, which can be filled.
func smallVolume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal("a volume to fill (needs the right to mount):", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error("unmount:", err)
		}
	})
	return dir
}

// fill takes all space, and returns what gives it back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// The volume is full once, with gifts, likes and settings under way: it is known, nothing is called stored that is not, and
// all works again by itself when there is space. What was acknowledged is in the ledger then, and after a restart.
func TestVolumeFull(t *testing.T) {
	t.Parallel()
	dir := smallVolume(t)
	cfg := Config{NodeID: "n1", DataDir: dir, GiftBytes: 8 << 20, Metrics: prometheus.NewRegistry()}
	ctx, log := testContext(t), &syncBuffer{}
	f, err := Open(ctx, cfg, slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil)))
	if err != nil {
		t.Fatal(err)
	}
	acked := map[uint64]string{}
	n := 0
	give := func() error {
		n++
		id := fmt.Sprint("g", n)
		r, err := f.Store.Gifts.StoreGift(ctx, "demo", "u", id, append([]byte(id+" "), make([]byte, 2000)...))
		if err == nil {
			acked[r.Seq] = id
		} else if !errors.Is(err, link.ErrRefused) && !errors.Is(err, link.ErrUnknown) {
			t.Error("gift:", err)
		}
		return err
	}
	for range 10 {
		if err := give(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Store.Likes.AddLikes("demo", 5); err != nil {
		t.Fatal(err)
	}
	eventually(t, "likes are stored", func() bool { total, err := f.Store.Likes.Likes(ctx, "demo"); return err == nil && total == 5 })
	for round := range 2 {
		free := fill(t, dir)
		if err := f.Store.Likes.AddLikes("demo", 7); err != nil { // taken before anybody knows: kept
			t.Fatal(err)
		}
		eventually(t, "the fault is known", func() bool { _ = give(); return f.Store.Storing() != nil })
		const line = "over 90 % full"
		if used, told := counted(t, f, "liveroom_data_volume_used_ratio", ""), strings.Count(log.String(), line); used < 0.9 || told != round+1 {
			t.Errorf("used %v, told %d times in round %d", used, told, round)
		}
		if err := give(); !errors.Is(err, link.ErrRefused) {
			t.Errorf("a gift while it is full: %v", err)
		}
		if _, err := f.Store.Settings.PutSettings(ctx, "demo", []byte("title"), 0); !errors.Is(err, link.ErrRefused) {
			t.Errorf("settings while it is full: %v", err)
		}
		free()
		eventually(t, "gifts are stored again", func() bool { return give() == nil })
		want := int64(5 + 7*(round+1))
		eventually(t, "the likes are stored", func() bool { total, err := f.Store.Likes.Likes(ctx, "demo"); return err == nil && total == want })
		if _, err := f.Store.Settings.PutSettings(ctx, fmt.Sprint("room", round), []byte("title"), 0); err != nil {
			t.Error("settings:", err)
		}
	}
	check := func(when string) {
		t.Helper()
		gifts, err := f.Store.Gifts.Gifts(ctx, "demo", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		have := map[uint64]string{}
		for _, g := range gifts {
			var id string
			_, _ = fmt.Sscan(string(g.Event), &id)
			have[g.Seq] = id
		}
		for seq, id := range acked {
			if have[seq] != id {
				t.Errorf("%s: gift %d was acknowledged as %s and is %q", when, seq, id, have[seq])
			}
		}
	}
	check("after the recovery")
	closeNow(t, f)
	cfg.Metrics = nil
	f = openUnclosed(t, cfg)
	check("after a restart")
	if total, err := f.Store.Likes.Likes(ctx, "demo"); err != nil || total != 19 {
		t.Errorf("likes %d, %v", total, err)
	}
	closeNow(t, f)
}
