package room

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
	"liveroom/room/audience"
)

func TestRoomsOpenAgainAfterTheBusFailed(t *testing.T) {
	bus := newMemoryBus()
	bus.broken = true
	w := newWorld(t, bus, nil)
	var done sync.WaitGroup
	var refused atomic.Int64
	for i := range 20 {
		done.Go(func() {
			if _, r := w.tryJoin("demo", fmt.Sprint("u", i)); r != nil && r.Code == protocol.CloseOverloaded && r.Reconnect > 0 {
				refused.Add(1)
			}
		})
	}
	done.Wait()
	if n := refused.Load(); n != 20 {
		t.Fatalf("want 20 sent away with a time to come back, have %d", n)
	}
	if rooms, _ := w.hub.sizes(); rooms != 0 {
		t.Fatal("a room that did not open is still there")
	}
	bus.set(func(b *memoryBus) { b.broken = false })
	w.join("demo", "a")
	if err := w.hub.check(); err != nil {
		t.Fatal(err)
	}
}

// One opens, the others wait for it, each no longer than its own patience.
func TestRoomsOpenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.opening = make(chan struct{})
		w := newWorld(t, bus, nil)
		var done sync.WaitGroup
		for i := range 5 {
			done.Go(func() { w.join("demo", fmt.Sprint("u", i)) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ack := w.hub.Speak(ctx, "demo", Caller{Who: Identity{User: "u"}}, danmakuOf("1", "1")); ack.Code != protocol.Unavailable {
			t.Fatalf("after a second: %+v", ack)
		}
		close(bus.opening)
		done.Wait()
		if r, ok := w.hub.Room("demo"); !ok || r.Online() != 5 || len(bus.feeds["demo"]) != 1 {
			t.Fatalf("want one room of five, have %v", bus.feeds)
		}
		if err := w.hub.check(); err != nil {
			t.Fatal(err)
		}
		w.stop()
	})
}

// Who may make a room is not held up by who may not.
func TestRoomsAreMadeByWhoMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.opening = make(chan struct{})
		w := newWorld(t, bus, nil)
		var done sync.WaitGroup
		done.Go(func() {
			_, r := w.tryJoin("demo", "a", func(j *JoinRequest) {
				j.Create = func() *protocol.Error { return &protocol.Error{Reason: protocol.ReasonRateLimited} }
			})
			if r == nil {
				t.Error("made by who may not")
			}
		})
		synctest.Wait()
		done.Go(func() { w.join("demo", "b") })
		synctest.Wait()
		close(bus.opening)
		done.Wait()
		w.stop()
	})
}

// A store that does not answer keeps nobody from entering a room; what it knows comes later.
func TestRoomsOpenWithoutTheStore(t *testing.T) {
	bus := newMemoryBus()
	bus.blind = true
	w := newWorld(t, bus, func(c *Config) { c.AutoCreate = false })
	a := w.join("demo", "a")
	f := (*feed)(a.room)
	f.Settings([]byte(`{"title":"late"}`), 4)
	f.Likes(12)
	f.Gift(protocol.StoredGift{Seq: 9, Prev: 8, Event: protocol.AppendGift(nil, protocol.Gift{Gift: "rose", Count: 1})})
	eventually(t, func() bool { return len(a.seen("room"))+len(a.seen("like"))+len(a.seen("gift")) == 3 })
	f.Settings([]byte(`{"title":"older"}`), 3)
	f.Settings([]byte(`not JSON`), 5)
	if got := a.room.Summary(); got.Title != "late" || got.Likes != 12 {
		t.Fatalf("%+v", got)
	}
}

// While a room waits to show its count, a danmaku still leaves at once.
func TestDanmakuDoesNotWaitForTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		a := w.join("demo", "a")
		w.join("demo", "b")
		time.Sleep(100 * time.Millisecond)
		w.join("demo", "c") // its count is due in 1.9 s
		synctest.Wait()
		a.say("now")
		synctest.Wait()
		if got := len(a.seen("danmaku")); got != 1 || len(a.seen("online")) != 1 {
			t.Fatalf("want the danmaku before the count, have %d", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := a.seen("online"); len(got) != 2 || got[1].Count != 3 {
			t.Fatalf("online: %+v", got)
		}
		w.stop()
	})
}

func TestClosedHubsRefuse(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	w.stop()
	if _, r := w.tryJoin("demo", "b"); r == nil || r.Code != protocol.CloseOverloaded {
		t.Fatalf("join: %+v", r)
	}
	ack := w.hub.Speak(context.Background(), "demo", Caller{Who: Identity{User: "u"}}, danmakuOf("1", "1"))
	if ack.Code != protocol.Unavailable {
		t.Fatalf("call: %+v", ack)
	}
	a.say("nobody hears it, and nothing breaks")
	a.Leave()
	w.stop()
}

func TestRoomsAreListedBySize(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Elsewhere = func(room string) Others { return Others{Sessions: map[string]int{"far": 9}[room]} }
	})
	for i, room := range []string{"a", "b", "b", "far"} {
		w.join(room, fmt.Sprint("u", i))
	}
	var got []string
	for _, s := range w.hub.Rooms() {
		got = append(got, fmt.Sprint(s.ID, " ", s.Online, " ", s.Here))
	}
	if want := "far 10 1, b 2 2, a 1 1"; strings.Join(got, ", ") != want {
		t.Fatalf("want %s, have %s", want, strings.Join(got, ", "))
	}
	title := "B"
	wantCode(t, w.join("b", "host", as(protocol.RoleHost)).moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Title: &title} }), protocol.OK, "")
	if w.hub.Rooms()[1].Title != "B" {
		t.Fatalf("%+v", w.hub.Rooms())
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := Config{Audience: audience.Config{Tick: -1}, MaxRooms: -1, Gifts: []protocol.CatalogueGift{{ID: "a b", Price: 0}}}.Validate()
	for _, field := range []string{"Bus", "Gate", "Audience: Tick", "MaxRooms", "Gifts[0].id"} {
		if err == nil || !strings.Contains(err.Error(), "room: "+field+":") {
			t.Errorf("want a fault of %s in %v", field, err)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a hub without a bus was made")
	}
}
