package room

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

// acting is a room of one node, and a host who acts there.
type acting struct {
	*world
	r *Room
	n int
}

func actingOn(t testing.TB, bus *memoryBus, gate *limit.Gate) *acting {
	t.Helper()
	hub, err := New(Config{Bus: bus, Gate: gate, Node: "n1", AutoCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	a := &acting{world: &world{t: t, bus: bus, hub: hub}}
	r, refused := hub.enter(t.Context(), "demo", nil)
	if refused != nil {
		t.Fatal(refused)
	}
	a.r = r
	return a
}

func (a *acting) act(action protocol.Action, of func(*protocol.Request)) protocol.Ack {
	a.n++
	req := &protocol.Request{Op: protocol.OpModerate, ID: fmt.Sprint(action, a.n), Action: action}
	if of != nil {
		of(req)
	}
	return a.hub.Speak(a.t.Context(), "demo", Caller{Who: Identity{User: "host", Role: protocol.RoleHost}}, req)
}

// heldTo is what a node holds people and messages to.
func heldTo(r *Room) string {
	p := r.policy.Load()
	return fmt.Sprint(slices.Sorted(maps.Keys(p.muted)), slices.Sorted(maps.Keys(p.banned)), slices.Sorted(maps.Keys(p.deleted)), p.Title)
}

// A mute in a room full of them stores itself alone, and is in the settings a little later, in which nodes of the version before find it.
func TestAnActCostsWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, gate := newMemoryBus(), gateOf(t, "")
		a, other := actingOn(t, bus, gate), actingOn(t, bus, gate)
		defer a.stop()
		defer other.stop()
		full := stored{}
		for i := range maxSanctions - 1 {
			full.Mutes = append(full.Mutes, Sanction{User: fmt.Sprint("guest-of-before-", i), By: "host", Role: protocol.RoleHost, Reason: "spam"})
		}
		value, _ := json.Marshal(full)
		if _, err := bus.PutSettings(t.Context(), "demo", value, 0); err != nil {
			t.Fatal(err)
		}
		if ack := a.act(protocol.ActionMute, target("x", 600)); ack.Code != protocol.OK {
			t.Fatal(ack.Err)
		}
		if wrote := bus.acts["demo"]; len(wrote) != 1 || len(wrote[0].Value) > 300 || bus.settings["demo"].revision != 1 {
			t.Errorf("stored: %d acts, the first %s, settings of revision %d", len(wrote), wrote[0].Value, bus.settings["demo"].revision)
		}
		if ack := a.act(protocol.ActionMute, target("one too many", 600)); ack.Err == nil || ack.Err.Reason != protocol.ReasonListFull {
			t.Errorf("%d mutes: %+v", maxSanctions+1, ack)
		}
		fresh := actingOn(t, bus, gate)
		defer fresh.stop()
		time.Sleep(gatherEvery + time.Second)
		synctest.Wait()
		old := stored{}
		if err := json.Unmarshal(bus.settings["demo"].value, &old); err != nil || len(old.Mutes) != maxSanctions || old.Mutes[maxSanctions-1].User != "x" {
			t.Errorf("the settings have %d mutes: %v", len(old.Mutes), err)
		}
		if acts := bus.acts["demo"]; len(acts) != 1 || string(acts[0].Value) != "{}" {
			t.Errorf("acts that are in the settings stay beside them: %d, the first %s", len(acts), acts[0].Value)
		}
		late := actingOn(t, bus, gate)
		defer late.stop()
		for i, n := range []*acting{a, other, fresh, late} {
			if p := n.r.policy.Load(); len(p.muted) != maxSanctions || p.muted["x"].by != rankHost || len(p.log.since) != 0 {
				t.Errorf("node %d knows %d mutes, %d of them beside the settings", i, len(p.muted), len(p.log.since))
			}
		}
	})
}

// An act that does not reach the settings waits behind nothing for ever: where the acts take none, it is stored with all the rest.
func TestActsThatAreRefused(t *testing.T) {
	bus, gate := newMemoryBus(), gateOf(t, "")
	a, other := actingOn(t, bus, gate), actingOn(t, bus, gate)
	defer a.stop()
	defer other.stop()
	bus.set(func(b *memoryBus) { b.actless = true })
	if ack := a.act(protocol.ActionBan, target("x", 600)); ack.Code != protocol.OK || heldTo(other.r) != "[] [x] []" || bus.settings["demo"].revision != 1 {
		t.Errorf("%+v, in force %s, revision %d", ack, heldTo(other.r), bus.settings["demo"].revision)
	}
}

// Whatever happens to acts and settings, on every node and on one that starts, what was decided last is in force.
func TestActsAreNeverLost(t *testing.T) {
	gate := gateOf(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		bus := newMemoryBus()
		nodes := []*acting{actingOn(t, bus, gate), actingOn(t, bus, gate)}
		// An older copy of the acts, whose numbers fall; else the store begins beyond those that it knows. Not together with nodes of the version
		// before, which do not say how far settings are.
		copied := rapid.Bool().Draw(rt, "copied")
		users := []string{"a", "b", "c"}
		muted, banned, deleted, title := map[string]bool{}, map[string]bool{}, map[string]bool{}, ""
		on := func() (*acting, string) {
			return nodes[rapid.IntRange(0, len(nodes)-1).Draw(rt, "node")], rapid.SampledFrom(users).Draw(rt, "user")
		}
		do := func(n *acting, action protocol.Action, of func(*protocol.Request)) {
			if ack := n.act(action, of); ack.Code != protocol.OK {
				rt.Fatalf("%s: %+v", action, ack)
			}
		}
		turn := func(set map[string]bool, yes, no protocol.Action) func(*rapid.T) {
			return func(*rapid.T) {
				n, user := on()
				if set[user] = !set[user]; set[user] {
					do(n, yes, target(user, 600))
				} else {
					delete(set, user)
					do(n, no, target(user, 0))
				}
			}
		}
		agree := func(nodes ...*acting) {
			want := fmt.Sprint(slices.Sorted(maps.Keys(muted)), slices.Sorted(maps.Keys(banned)), slices.Sorted(maps.Keys(deleted)), title)
			for i, n := range nodes {
				if got := heldTo(n.r); got != want {
					rt.Fatalf("node %d has %s, want %s", i, got, want)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"mute": turn(muted, protocol.ActionMute, protocol.ActionUnmute),
			"ban":  turn(banned, protocol.ActionBan, protocol.ActionUnban),
			"delete": func(*rapid.T) {
				n, mid := on()
				deleted[mid] = true
				do(n, protocol.ActionDelete, func(r *protocol.Request) { r.MID = mid })
			},
			"title": func(*rapid.T) {
				n, user := on()
				title = user
				do(n, protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Title: &user} })
			},
			"gather": func(*rapid.T) { n, _ := on(); n.r.gathered(t.Context()) },
			"a node starts": func(*rapid.T) {
				n, _ := on()
				at := slices.Index(nodes, n)
				n.stop()
				nodes[at] = actingOn(t, bus, gate)
			},
			"unheard": func(*rapid.T) {
				n, user := on()
				bus.set(func(b *memoryBus) { b.unheard = true })
				if ack := n.act(protocol.ActionMute, target(user, 600)); ack.Code != protocol.OK {
					rt.Fatal(ack)
				}
				muted[user] = true
				bus.set(func(b *memoryBus) { b.unheard = false })
				for _, other := range nodes { // as the feed finds what it was not told
					if err := other.r.catchUp(t.Context()); err != nil {
						rt.Fatal(err)
					}
				}
			},
			"the version before writes settings": func(*rapid.T) {
				nodes[0].r.gathered(t.Context()) // else it does not know the acts of the last seconds
				var s map[string]any
				old := bus.settings["demo"]
				if copied || json.Unmarshal(old.value, &s) != nil {
					return
				}
				delete(s, "acts")
				title = "by the version before"
				s["title"] = title
				value, _ := json.Marshal(s)
				if _, err := bus.PutSettings(t.Context(), "demo", value, old.revision); err != nil {
					rt.Fatal(err)
				}
			},
			"the acts begin anew": func(*rapid.T) {
				nodes[0].r.gathered(t.Context()) // else those of the last seconds are gone
				bus.set(func(b *memoryBus) {
					b.acts["demo"], b.acted = nil, b.acted+100
					if copied {
						b.acted = 0
					}
				})
			},
			"": func(*rapid.T) { agree(nodes...) },
		})
		nodes = append(nodes, actingOn(t, bus, gate))
		agree(nodes...)
		for _, n := range nodes {
			n.stop()
		}
	})
}
