package room

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// TestCleanup: what a user said within the hour is gone for who is there and who comes, and what is said afterwards is not.
func TestCleanup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, nil)
		host, ann, bob := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "ann"), w.join("demo", "bob")
		aside := w.join("aside", "ann")
		ann.say("one")
		bob.say("mine")
		aside.say("elsewhere")
		mid := ann.say("two").MID
		time.Sleep(time.Second)
		if e := host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionPin, MID: mid}); e.Code != 200 {
			t.Fatal(e)
		}
		wantCode(t, bob.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionCleanup, User: "ann"}), protocol.Forbidden, protocol.ReasonForbidden)
		clean := protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionCleanup, User: "ann"}
		bus.set(func(b *memoryBus) { b.down = true })
		wantCode(t, host.ask(clean), protocol.Unavailable, protocol.ReasonTryLater)
		bus.set(func(b *memoryBus) { b.down = false })
		time.Sleep(5 * time.Second)
		wantCode(t, host.ask(clean), protocol.OK, "")
		time.Sleep(5 * time.Second)
		ann.say("three")
		time.Sleep(time.Second)
		told := bob.seen("erased")
		if len(told) != 1 || told[0].Until-told[0].From != time.Hour.Milliseconds() || len(aside.seen("erased")) > 0 {
			t.Fatalf("told %+v", told)
		}
		if got := texts(w.join("demo", "late").at("danmaku")); !slices.Equal(got, []string{"mine", "three"}) {
			t.Errorf("who comes is shown %v", got)
		}
		if rooms := host.seen("room"); len(rooms) == 0 || rooms[len(rooms)-1].Pinned != nil {
			t.Errorf("still pinned: %+v", rooms)
		}
		e := bus.erasures[len(bus.erasures)-1]
		w.hub.Forget(e) // as the store tells it
		if len(bob.seen("erased")) != 1 {
			t.Error("told twice")
		}
		if until, err := w.hub.EraseUser(t.Context(), Identity{User: "root", Role: protocol.RoleAdmin}, "ann"); err != nil || until == 0 {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := texts(w.join("aside", "late").at("danmaku")); len(got) > 0 {
			t.Errorf("in another room there is %v", got)
		}
		w.stop()
	})
}

// TestRoomsThatOpenForget: the store's recent danmaku may still have what was erased a moment ago.
func TestRoomsThatOpenForget(t *testing.T) {
	bus := newMemoryBus()
	now := time.Now().UnixMilli()
	bus.recent["demo"] = [][]byte{
		protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "a", User: protocol.User{ID: "ann"}, Text: "old", TS: now - 1000}),
		protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "b", User: protocol.User{ID: "bob"}, Text: "kept", TS: now - 1000}),
		protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "c", User: protocol.User{ID: "ann"}, Text: "later", TS: now + 1000}),
	}
	w := newWorld(t, bus, nil)
	w.hub.Forget(Erasure{User: "ann", Until: now})
	if got := texts(w.join("demo", "late").at("danmaku")); !slices.Equal(got, []string{"kept", "later"}) {
		t.Errorf("shown %v", got)
	}
}

// TestADeletedMessageGoesFromTheLogs once it can't come back, and stays if it did.
func TestADeletedMessageGoesFromTheLogs(t *testing.T) {
	bus := newMemoryBus()
	w := newWorld(t, bus, nil)
	host, ann := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "ann")
	mid := ann.say("hello").MID
	eventually(t, func() bool { return len(host.seen("danmaku")) == 1 })
	gone := host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionDelete, MID: mid})
	wantCode(t, gone, protocol.OK, "")
	if len(bus.erasures) != 1 {
		t.Fatalf("%+v", bus.erasures)
	}
	if e := bus.erasures[0]; e.MID != mid || e.Room != "demo" || e.Done || e.At-e.Until < (5*time.Minute).Milliseconds() || e.From == 0 || e.From > e.Until {
		t.Errorf("%+v", e)
	}
	wantCode(t, host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionUndo, Seq: gone.Seq}), protocol.OK, "")
	if e := bus.erasures[len(bus.erasures)-1]; len(bus.erasures) != 2 || e.MID != mid || !e.Done {
		t.Errorf("after the undo: %+v", bus.erasures)
	}
}
