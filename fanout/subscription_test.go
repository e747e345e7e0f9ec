package fanout

import (
	"fmt"
	"runtime"
	"testing"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// reads turns the direct reads of a stream off or on: off, nobody answers.
func reads(t *testing.T, f *Fabric, stream string, on bool) {
	t.Helper()
	s, err := f.Link.JS.Stream(testContext(t), stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.AllowDirect = on
	if _, err := f.Link.JS.UpdateStream(testContext(t), cfg); err != nil {
		t.Fatal(err)
	}
}

// A room opens while the store is away: its danmaku flow, and what is stored follows when the store is back.
func TestRoomOpensWithoutTheStore(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	l, s := subscribe(t, f, "demo")
	storeGift(t, f, "demo", "u", "before", "x")
	if err := f.Store.Likes.AddLikes("demo", 9); err != nil {
		t.Fatal(err)
	}
	receive(t, l.likes)
	rev, err := f.Store.Settings.PutSettings(testContext(t), "demo", []byte("title"), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()

	reads(t, f, link.GiftStream, false)
	l, s = subscribe(t, f, "demo")
	if s.Opening().Known {
		t.Fatal("the store answered")
	}
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l.events); got != "danmaku hello" {
		t.Error(got)
	}
	reads(t, f, link.GiftStream, true)
	if total := receive(t, l.likes); total != 9 {
		t.Errorf("likes %d", total)
	}
	if got := receive(t, l.settings); got != (setting{"title", rev}) {
		t.Errorf("settings %+v", got)
	}
	// The gift of before belongs to nobody's cursor here; those from now on come without a hole.
	expectGifts(t, f, l, []uint64{storeGift(t, f, "demo", "u", "after1", "x").Seq, storeGift(t, f, "demo", "u", "after2", "x").Seq})
}

// A long hole is read in several batches.
func TestLongHole(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	l, _ := subscribe(t, f, "demo")
	var want []uint64
	mute(t, f, func() {
		for i := range 256*2 + 10 {
			want = append(want, storeGift(t, f, "demo", "u", fmt.Sprint(i), "x").Seq)
		}
	})
	want = append(want, storeGift(t, f, "demo", "u", "heard", "x").Seq)
	expectGifts(t, f, l, want)
}

// What a closed subscription is sent is not delivered, and what others publish on the room's subjects harms nobody.
func TestStrangeMessages(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	l, s := subscribe(t, f, "demo")
	for _, kind := range []string{link.KindGift, link.KindLikes, link.KindSettings, link.KindSeen, "unknown", "danmaku.deeper"} {
		for _, payload := range []string{"", "x", "-1", "99999999999999999999", "1 2"} {
			if err := f.Link.Publish(link.RoomSubject("demo", kind), []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, payload := range []string{"", "{", `{"node":"n2","parts":-1,"rooms":{"demo":[1]}}`} {
		if err := f.Link.Publish(link.NodeSubject("n2", "presence"), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	expectGifts(t, f, l, nil)
	if len(l.events)+len(l.likes)+len(l.settings) != 0 || f.Feeds.Seen("demo") != (link.Seen{}) {
		t.Errorf("something was delivered; seen %+v", f.Feeds.Seen("demo"))
	}
	s.Close()
	s.Close()
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("late")); err != nil {
		t.Fatal(err)
	}
	l2, _ := subscribe(t, f, "demo")
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l2.events); got != "danmaku new" || len(l.events) != 0 {
		t.Errorf("%q, and %d after closing", got, len(l.events))
	}
}

// CASES 14: rooms that come and go leave nothing. (Likes leave their ids for two minutes; see TestLikeBookForgetsRooms
// for what is ours.)
func TestShortRoomsLeaveNothing(t *testing.T) {
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	ctx, h := testContext(t), &counter{}
	round := func() (heap uint64, goroutines int) {
		for i := range 500 {
			s, err := f.Feeds.Subscribe(ctx, fmt.Sprint("room", i), h)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
		}
		if err := f.Link.Live.Flush(); err != nil { // the server has dropped the subscriptions
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	round()
	heap, goroutines := round()
	const rounds = 4
	var h2 uint64
	var g2 int
	for range rounds {
		h2, g2 = round()
	}
	if h2 > heap+heap/20 || g2 > goroutines+10 {
		t.Errorf("after %d rooms heap %d KiB and %d goroutines, before %d KiB and %d", rounds*500, h2>>10, g2, heap>>10, goroutines)
	}
}

// The path of a danmaku allocates its subject alone; what NATS takes for itself comes on top.
func TestPublishAllocates(t *testing.T) {
	if n := testing.AllocsPerRun(1000, func() { _ = link.RoomSubject("demo", protocol.ClassDanmaku.String()) }); n > 1 {
		t.Errorf("%v allocations for a subject", n)
	}
}
