package room

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// Acts while the store is away are in force here, in their order, and stored once it is back; what the other side decided stays.
func TestActsWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, func(c *Config) { c.Node = "n1" })
		host, a := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "a")
		w.join("demo", "b")
		said := a.say("said")
		bus.set(func(b *memoryBus) { b.down = true })
		wantCode(t, host.moderate(protocol.ActionBan, target("a", 0)), protocol.Degraded, protocol.ReasonHereOnly)
		wantCode(t, host.moderate(protocol.ActionMute, target("b", 100)), protocol.Degraded, protocol.ReasonHereOnly)
		wantCode(t, host.moderate(protocol.ActionDelete, func(r *protocol.Request) { r.MID = said.MID }), protocol.Degraded, protocol.ReasonHereOnly)
		wantCode(t, host.moderate(protocol.ActionBan, target("host", 0)), protocol.Forbidden, protocol.ReasonForbidden)
		wantCode(t, host.moderate(protocol.ActionClose, nil), protocol.Unavailable, protocol.ReasonTryLater)
		if a.end() == nil || !host.room.policy.Load().hides(said.MID) {
			t.Error("not in force here")
		}
		time.Sleep(10 * time.Second)
		bus.set(func(b *memoryBus) { // the other side has decided, too
			b.down = false
			b.settings["demo"] = revised{[]byte(`{"bans":[{"user":"x","at":1}],"staff":[{"user":"host","role":"host"}]}`), b.settings["demo"].revision + 1}
		})
		wantCode(t, host.moderate(protocol.ActionUnmute, target("b", 0)), protocol.Degraded, protocol.ReasonHereOnly) // stands behind the mute
		time.Sleep(2 * time.Second)
		n2 := newWorld(t, bus, nil)
		defer n2.stop()
		defer w.stop()
		for _, n := range []*world{w, n2} {
			n.hub.With(t.Context(), "demo", nil, func(r *Room) *protocol.Error {
				if got := r.Sanctions("", "", "", 10); len(got) != 2 || got[0].User != "a" || got[0].By != "host" || got[1].User != "x" {
					t.Errorf("in force: %+v", got)
				}
				if !r.policy.Load().hides(said.MID) {
					t.Error("the message is back")
				}
				return nil
			})
		}
		if n := len(bus.audit); n != 4 || host.room.owing() {
			t.Errorf("%d entries in the audit, still owing: %t", n, host.room.owing())
		}
		undone := host.undo(1)
		wantCode(t, undone, protocol.OK, "")
		w.join("demo", "a")
		bus.set(func(b *memoryBus) { b.down = true })
		for i := range maxOwed + 1 {
			e := host.moderate(protocol.ActionMute, target(fmt.Sprint("u", i), 100))
			if i < maxOwed != (e.Code == int(protocol.Degraded)) {
				t.Fatalf("%d: %+v", i, e)
			}
		}
		bus.set(func(b *memoryBus) { b.down = false })
		time.Sleep(time.Second)
		if n := len(host.room.Sanctions(protocol.ActionMute, "", "", 1000)); n != maxOwed {
			t.Errorf("%d are muted", n)
		}
	})
}

// An act that is taken while the ones before it are being stored is stored after them, of whatever instant it is.
func TestAnActWhileOthersAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, func(c *Config) {
			c.Now = func() time.Time { return time.UnixMilli(1_790_000_000_000) } // two acts of one millisecond
		})
		host := w.join("demo", "host", as(protocol.RoleHost))
		bus.set(func(b *memoryBus) { b.down = true })
		wantCode(t, host.moderate(protocol.ActionBan, target("a", 0)), protocol.Degraded, protocol.ReasonHereOnly)
		var once sync.Once
		bus.set(func(b *memoryBus) {
			b.down = false
			b.storing = func() {
				once.Do(func() {
					wantCode(t, host.moderate(protocol.ActionBan, target("b", 0)), protocol.Degraded, protocol.ReasonHereOnly)
				})
			}
		})
		time.Sleep(5 * time.Second)
		n2 := newWorld(t, bus, nil)
		defer n2.stop()
		defer w.stop()
		n2.hub.With(t.Context(), "demo", nil, func(r *Room) *protocol.Error {
			if got := r.Sanctions("", "", "", 10); len(got) != 2 {
				t.Errorf("in force: %+v", got)
			}
			return nil
		})
	})
}

// The nodes that are still heard hold to an act as well, until the store tells.
func TestActsThatWaitAreHeardByOthers(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) { c.Node = "n2" })
	v := w.join("demo", "v")
	f := (*feed)(v.room)
	f.Message(protocol.ClassControl, []byte(`{"node":"n1","owed":{"by":"host","role":"host","at":5,"req":{"action":"ban","user":"v"}}}`))
	if v.end() == nil {
		t.Error("another node's ban is not in force")
	}
	f.Settings([]byte(`{"mutes":[]}`), 9)
	if _, banned := v.room.bannedNow(v.acting()); banned || v.room.owing() {
		t.Error("the store has told otherwise")
	}
}
