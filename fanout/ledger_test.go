package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
	"liveroom/protocol"
)

func TestLedgerReadsRoomsApart(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	ctx := testContext(t)
	var seqs []uint64
	for i := range 6 { // of two rooms in turn, so that no room's sequences are dense
		seqs = append(seqs, storeGift(t, f, fmt.Sprint("room", i%2), "u", fmt.Sprint(i), fmt.Sprint("gift", i)).Seq)
	}
	for _, c := range []struct {
		after uint64
		limit int
		want  string
	}{
		{0, 10, "0:gift0 1:gift2 3:gift4 "},
		{0, 2, "0:gift0 1:gift2 "},
		{seqs[0], 10, "1:gift2 3:gift4 "},
		{seqs[1], 10, "1:gift2 3:gift4 "}, // the other room's: Prev tells that it is not this room's
		{seqs[4], 10, ""},
		{999, 10, ""},
	} {
		gifts, err := f.Store.Gifts.Gifts(ctx, "room0", c.after, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for _, g := range gifts {
			fmt.Fprintf(&got, "%d:%s ", g.Prev, g.Event)
		}
		if got.String() != c.want {
			t.Errorf("after %d, limit %d: %q, want %q", c.after, c.limit, got.String(), c.want)
		}
	}
	if last, err := f.Store.Gifts.LastGift(ctx, "room0"); err != nil || last != seqs[4] {
		t.Errorf("last %d, %v", last, err)
	}
	if last, err := f.Store.Gifts.LastGift(ctx, "empty"); err != nil || last != 0 {
		t.Errorf("last of an empty room %d, %v", last, err)
	}
	for _, seq := range []uint64{0, seqs[1], 999} {
		if _, err := f.Store.Gifts.Gift(ctx, "room0", seq); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("gift %d of another room: %v", seq, err)
		}
	}
	for _, limit := range []int{0, 1001} {
		if _, err := f.Store.Gifts.Gifts(ctx, "room0", 0, limit); err == nil {
			t.Errorf("limit %d passes", limit)
		}
	}
}

func TestGiftIDsDoNotRunIntoEachOther(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	for _, id := range [][3]string{{"a", "b", "c"}, {"a", "b.c", "d"}, {"a", "b", "c.d"}, {"a", "b:c", "d"}, {"a-b", "c", "d"}, {"a", "b-c", "d"}} {
		if r := storeGift(t, f, id[0], id[1], id[2], "rose"); r.Duplicate {
			t.Errorf("%q is taken for another", id)
		}
	}
}

func TestFullLedgerRefusesAndSaysSo(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), GiftBytes: 1 << 20})
	big := make([]byte, 100<<10)
	var err error
	stored := 0
	for i := 0; err == nil && i < 20; i++ {
		if _, err = f.Store.Gifts.StoreGift(testContext(t), "demo", "u", fmt.Sprint(i), big); err == nil {
			stored++
		}
	}
	if !errors.Is(err, link.ErrRefused) || stored != 10 {
		t.Fatalf("%d stored, then %v", stored, err)
	}
	f.Store.Gifts.Measure(testContext(t))
	if l, _ := f.Store.Gifts.Size(); l.Limit != 1<<20 || l.Bytes < l.Limit*8/10 {
		t.Errorf("ledger %+v", l)
	}
	if gifts, err := f.Store.Gifts.Gifts(testContext(t), "demo", 0, 100); err != nil || len(gifts) != stored {
		t.Errorf("%d gifts, %v", len(gifts), err)
	}
}

func TestGiftIsRefusedWhenItsContextIsOver(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := f.Store.Gifts.StoreGift(ctx, "demo", "u", "c", nil); !errors.Is(err, link.ErrRefused) {
		t.Error(err)
	}
}

// mute keeps the gifts from being re-published while f runs.
func mute(t *testing.T, f *Fabric, during func()) {
	t.Helper()
	ctx := testContext(t)
	s, err := f.Link.JS.Stream(ctx, link.GiftStream)
	if err != nil {
		t.Fatal(err)
	}
	was := s.CachedInfo().Config
	muted := was
	muted.RePublish = nil
	if _, err := f.Link.JS.UpdateStream(ctx, muted); err != nil {
		t.Fatal(err)
	}
	during()
	if _, err := f.Link.JS.UpdateStream(ctx, was); err != nil {
		t.Fatal(err)
	}
}

// silently stores a gift that nobody hears of: the stream keeps it and does not re-publish it, as when the server dies
// between the two.
func silently(t *testing.T, f *Fabric, room, id string) (r protocol.Receipt) {
	t.Helper()
	mute(t, f, func() { r = storeGift(t, f, room, "u", id, "silent "+id) })
	return r
}

// never is a period that no test reaches: only what the test does may find the hole.
const never = 1000 * time.Hour

func TestHoleIsFilledBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	l, s := subscribe(t, f, "demo")
	var want []uint64
	want = append(want, storeGift(t, f, "demo", "u", "heard1", "x").Seq)
	for i := range 3 {
		want = append(want, silently(t, f, "demo", fmt.Sprint("hole", i)).Seq)
		storeGift(t, f, "other", "u", fmt.Sprint(i), "x")
	}
	want = append(want, storeGift(t, f, "demo", "u", "heard2", "x").Seq)
	expectGifts(t, f, l, want)
	if s.LastGift() != want[len(want)-1] {
		t.Errorf("last gift %d", s.LastGift())
	}
}

func TestLastGiftIsFound(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(t *testing.T, f *Fabric){
		"by its repeated id": func(t *testing.T, f *Fabric) {
			if r := storeGift(t, f, "demo", "u", "hole", "again"); !r.Duplicate {
				t.Error("stored twice")
			}
		},
		"by the sweep": func(t *testing.T, f *Fabric) { f.Feeds.SweepSoon() },
		"by another's presence": func(t *testing.T, f *Fabric) {
			last, err := f.Store.Gifts.LastGift(testContext(t), "demo")
			if err != nil {
				t.Fatal(err)
			}
			presence := fmt.Sprintf(`{"node":"n2","inc":1,"beat":1,"whole":true,"part":0,"parts":1,"rooms":{"demo":[1,%d,0,0]}}`, last)
			if err := f.Link.Publish(link.NodeSubject("n2", "presence"), []byte(presence)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
			l, _ := subscribe(t, f, "demo")
			want := []uint64{storeGift(t, f, "demo", "u", "heard", "x").Seq, silently(t, f, "demo", "hole").Seq}
			expectGifts(t, f, l, want[:1])
			find(t, f)
			expectGifts(t, f, l, want[1:])
		})
	}
}

// A gift stays out until what is before it can be read, also when the store does not answer at first.
func TestHoleWaitsForTheStore(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), SweepEvery: never})
	l, _ := subscribe(t, f, "demo")
	want := []uint64{silently(t, f, "demo", "hole").Seq}
	ctx := testContext(t)
	s, err := f.Link.JS.Stream(ctx, link.GiftStream)
	if err != nil {
		t.Fatal(err)
	}
	was := s.CachedInfo().Config
	closed := was
	closed.AllowDirect = false // nobody answers reads
	if _, err := f.Link.JS.UpdateStream(ctx, closed); err != nil {
		t.Fatal(err)
	}
	want = append(want, storeGift(t, f, "demo", "u", "heard", "x").Seq)
	if err := f.Feeds.Publish(protocol.ClassControl, "demo", []byte("after")); err != nil {
		t.Fatal(err)
	}
	receive(t, l.events) // the feed has passed the gift
	if len(l.gifts) != 0 {
		t.Fatal("a gift was delivered over a hole")
	}
	if _, err := f.Link.JS.UpdateStream(ctx, was); err != nil {
		t.Fatal(err)
	}
	expectGifts(t, f, l, want) // by the sweep that the failure asked for
}

// expectGifts receives exactly these, each naming the one before.
func expectGifts(t *testing.T, f *Fabric, l *listener, want []uint64) {
	t.Helper()
	var prev uint64
	for i, seq := range want {
		g := receive(t, l.gifts)
		if g.Seq != seq || i > 0 && g.Prev != prev {
			t.Fatalf("gift %d: sequence %d after %d, want %d after %d", i, g.Seq, g.Prev, seq, prev)
		}
		prev = seq
	}
	if err := f.Feeds.Publish(protocol.ClassControl, "demo", []byte("mark")); err != nil {
		t.Fatal(err)
	}
	receive(t, l.events) // the feed has passed all that was published before
	if len(l.gifts) != 0 {
		t.Fatalf("another gift %+v", <-l.gifts)
	}
}

// A ledger keeps its name over restarts, all nodes know it by the same one, and a new ledger has another.
func TestLedgerID(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	if id := n1.Store.Gifts.LedgerID(); id == "" || id != n2.Store.Gifts.LedgerID() {
		t.Errorf("two nodes on one ledger: %q and %q", id, n2.Store.Gifts.LedgerID())
	}
	dir := t.TempDir()
	first := openUnclosed(t, Config{NodeID: "e1", DataDir: dir})
	closeNow(t, first)
	again := open(t, Config{NodeID: "e1", DataDir: dir})
	if again.Store.Gifts.LedgerID() != first.Store.Gifts.LedgerID() {
		t.Errorf("after a restart %q, before %q", again.Store.Gifts.LedgerID(), first.Store.Gifts.LedgerID())
	}
	if other := open(t, Config{NodeID: "e1", DataDir: t.TempDir()}); other.Store.Gifts.LedgerID() == first.Store.Gifts.LedgerID() {
		t.Error("two ledgers have one name")
	}
}
