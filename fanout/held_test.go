package fanout

import (
	"errors"
	"fmt"
	"testing"

	"liveroom/fanout/link"
	"liveroom/fanout/store"
)

// What is held reaches nodes that are there and those to come, is decided once, and outlives the node that held it.
func TestHeldMessagesReachEveryNodeAndAreDecidedOnce(t *testing.T) {
	t.Parallel()
	type told struct {
		store.HeldRecord
		known bool
	}
	s := natsServer(t)
	follow := func(f *Fabric) <-chan told {
		news := make(chan told, 10)
		stop, err := f.Store.Held.FollowHeld(testContext(t), func(r store.HeldRecord, known bool) { news <- told{r, known} })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		return news
	}
	want := func(news <-chan told, room, value string, known bool) {
		t.Helper()
		if got := receive(t, news); got.Room != room || string(got.Value) != value || got.known != known {
			t.Errorf("told %s %s %v", got.Room, got.Value, got.known)
		}
	}
	ctx := testContext(t)
	a := openUnclosed(t, Config{NodeID: "a", URLs: []string{s.ClientURL()}, Shared: true})
	b := open(t, Config{NodeID: "b", URLs: []string{s.ClientURL()}, Shared: true})
	there := follow(b)
	first, err := a.Store.Held.PutHeld(ctx, "demo", "m1", []byte(`{"n":1}`), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	want(there, "demo", `{"n":1}`, false)
	if _, err := a.Store.Held.PutHeld(ctx, "de-mo", "m1", []byte(`{"n":2}`), 0, false); err != nil {
		t.Fatal(err)
	}
	want(there, "de-mo", `{"n":2}`, false)
	closeNow(t, a)

	c := open(t, Config{NodeID: "c", URLs: []string{s.ClientURL()}, Shared: true})
	here := follow(c)
	want(here, "demo", `{"n":1}`, true)
	want(here, "de-mo", `{"n":2}`, true)
	second, err := c.Store.Held.PutHeld(ctx, "demo", "m1", []byte(`{"n":3}`), first, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store.Held.PutHeld(ctx, "demo", "m1", []byte(`{"n":4}`), first, true); !errors.Is(err, store.ErrConflict) {
		t.Errorf("the slower one is told %v", err)
	}
	for _, news := range []<-chan told{here, there} {
		want(news, "demo", `{"n":3}`, false)
	}
	if value, seq, err := b.Store.Held.ReadHeld(ctx, "demo", "m1"); err != nil || seq != second || string(value) != `{"n":3}` {
		t.Errorf("read %s, %d, %v", value, seq, err)
	}
	if value, seq, err := b.Store.Held.ReadHeld(ctx, "demo", "m2"); err != nil || seq != 0 || value != nil {
		t.Errorf("read %s, %d, %v", value, seq, err)
	}
	info, err := b.Link.JS.Stream(ctx, link.HeldStream)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := info.GetMsg(ctx, second); err != nil || got.Header.Get("Nats-TTL") == "" {
		t.Errorf("the last word never goes: %v, %v", got, err)
	}
}

// A room's queue is read in pages; other rooms are not in it.
func TestHeldMessagesAreListed(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	for i := range 25 {
		for _, room := range []string{"demo", "other"} {
			if _, err := f.Store.Held.PutHeld(ctx, room, fmt.Sprint("m", i), fmt.Append(nil, room, i), 0, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	n, after := 0, uint64(0)
	for {
		got, err := f.Store.Held.HeldOf(ctx, "demo", after, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for _, r := range got {
			if r.Room != "demo" || string(r.Value) != fmt.Sprint("demo", n) || r.Seq <= after {
				t.Errorf("entry %d: %s %d %s", n, r.Room, r.Seq, r.Value)
			}
			n, after = n+1, r.Seq
		}
	}
	if n != 25 {
		t.Errorf("%d listed", n)
	}
}
