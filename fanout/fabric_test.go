package fanout

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"liveroom/fanout/feed"
	"liveroom/fanout/link"
	"liveroom/protocol"
)

func TestEmbeddedNodeHearsItself(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	l, s := subscribe(t, f, "demo")
	if want := (feed.Opening{Known: true}); fmt.Sprint(s.Opening()) != fmt.Sprint(want) {
		t.Fatalf("opening %+v, want %+v", s.Opening(), want)
	}
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := f.Feeds.Publish(protocol.ClassControl, "demo", []byte("closed")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"danmaku hello", "control closed"} {
		if got := receive(t, l.events); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	first := storeGift(t, f, "demo", "u@1", "c:1", "rose")
	again := storeGift(t, f, "demo", "u@1", "c:1", "rose")
	if first.Duplicate || !again.Duplicate || again.Seq != first.Seq {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if g := receive(t, l.gifts); g.Seq != first.Seq || g.Prev != 0 || string(g.Event) != "rose" || time.Since(g.Time) > time.Minute {
		t.Errorf("gift %+v", g)
	}
	if err := f.Store.Likes.AddLikes("demo", 7); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, l.likes); total != 7 {
		t.Errorf("likes %d", total)
	}
	rev, err := f.Store.Settings.PutSettings(testContext(t), "demo", []byte("title"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l.settings); got != (setting{"title", rev}) {
		t.Errorf("settings %+v, revision %d", got, rev)
	}
	if size, ok := f.Store.Gifts.Size(); !ok || size.Limit != 4<<30 || f.Health() != nil {
		t.Errorf("ledger %+v, %v; health %v", size, ok, f.Health())
	}
}

func TestOneSubscriptionPerRoom(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	_, s := subscribe(t, f, "demo")
	if _, err := f.Feeds.Subscribe(testContext(t), "demo", newListener()); !errors.Is(err, feed.ErrSubscribed) {
		t.Fatalf("second subscription: %v", err)
	}
	s.Close()
	subscribe(t, f, "demo")
}

func TestRoomsStateAtTheStart(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	l, s := subscribe(t, f, "demo")
	gift := storeGift(t, f, "demo", "u", "c", "rose")
	if err := f.Store.Likes.AddLikes("demo", 3); err != nil {
		t.Fatal(err)
	}
	receive(t, l.likes)
	rev, err := f.Store.Settings.PutSettings(testContext(t), "demo", []byte("title"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, s = subscribe(t, f, "demo")
	want := feed.Opening{Known: true, LastGift: gift.Seq, Likes: 3, Settings: []byte("title"), Revision: rev}
	if fmt.Sprint(s.Opening()) != fmt.Sprint(want) {
		t.Errorf("opening %+v, want %+v", s.Opening(), want)
	}
}

func TestTwoProcessesCannotShareADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, Config{NodeID: "n1", DataDir: dir})
	if f, err := Open(testContext(t), Config{NodeID: "n2", DataDir: dir}, testLog(t)); err == nil {
		closeNow(t, f)
		t.Fatal("a second server on one directory")
	}
}

func TestOpenFailsWithTheReason(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no directory": {NodeID: "n1", DataDir: filepath.Join("/dev/null", "x")},
		"nobody there": {NodeID: "n1", URLs: []string{"nats://127.0.0.1:1"}},
		"bad config":   {NodeID: "n 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := Open(testContext(t), cfg, testLog(t)); err == nil {
				closeNow(t, f)
				t.Fatal("opened")
			} else {
				t.Log(err)
			}
		})
	}
}

func TestClosedFabricRefuses(t *testing.T) {
	t.Parallel()
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	closeNow(t, f)
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", nil); !errors.Is(err, link.ErrDisconnected) {
		t.Error("danmaku:", err)
	}
	if _, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", "c", nil); !errors.Is(err, link.ErrRefused) {
		t.Error("gift:", err)
	}
	if _, err := f.Feeds.Subscribe(testContext(t), "demo", newListener()); !errors.Is(err, link.ErrClosed) {
		t.Error("subscribe:", err)
	}
	if err := f.Store.Likes.AddLikes("demo", 1); !errors.Is(err, link.ErrClosed) {
		t.Error("likes:", err)
	}
	if err := f.Close(testContext(t)); !errors.Is(err, link.ErrClosed) {
		t.Error("close:", err)
	}
}

func TestLikesAreStoredBeforeClosing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: dir, LikesGather: never})
	if err := f.Store.Likes.AddLikes("demo", 5); err != nil {
		t.Fatal(err)
	}
	closeNow(t, f)
	f = open(t, Config{NodeID: "n1", DataDir: dir})
	if total, err := f.Store.Likes.Likes(testContext(t), "demo"); err != nil || total != 5 {
		t.Errorf("likes %d, %v", total, err)
	}
}
