package room

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func coming(addr, note string) func(*JoinRequest) {
	return func(j *JoinRequest) { j.Addr, j.Hello.Note = netip.MustParseAddr(addr), note }
}

func born(at time.Time) func(*JoinRequest) { return func(j *JoinRequest) { j.Who.Born = at } }

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// shut returns why somebody can't come in, "" when they can, in which case they leave again.
func (w *world) shut(user string, change ...func(*JoinRequest)) string {
	v, refusal := w.tryJoin("demo", user, change...)
	if refusal != nil {
		return refusal.Detail
	}
	v.Leave()
	return ""
}

// A guest does not come back by a new name: not from the network, not from the device, on no node, not after a restart; others do.
func TestABanOfAGuestHoldsForNewNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(c *Config) { c.MarkKey = []byte("of all nodes") }
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, key), newWorld(t, bus, key)
		defer n1.stop()
		defer n2.stop()
		host := n1.join("demo", "host", as(protocol.RoleHost))
		before := time.Now().Add(-time.Hour)
		bad := n2.join("demo", "guest-bad", coming("203.0.113.7", "note-bad"))
		old := n2.join("demo", "guest-old", coming("203.0.113.9", ""), born(before))
		six := n1.join("demo", "guest-six", coming("2001:db8:1:2::9", ""))
		ban := func(user string, change ...func(*protocol.Request)) event {
			return host.moderate(protocol.ActionBan, func(r *protocol.Request) {
				r.User, r.Seconds, r.Reason = user, 600, "spam"
				for _, f := range change {
					f(r)
				}
			})
		}
		wantCode(t, ban("guest-bad"), protocol.OK, "") // is on the other node
		time.Sleep(time.Second)                        // "within a second"
		if bad.end() == nil || old.end() != nil || six.end() != nil {
			t.Fatalf("closed: bad %v, old %v, six %v", bad.end(), old.end(), six.end())
		}
		for _, n := range []*world{n1, n2, newWorld(t, bus, key)} {
			for _, c := range []struct {
				user   string
				change []func(*JoinRequest)
				want   string
			}{
				{"guest-bad", []func(*JoinRequest){coming("198.51.100.1", "")}, "banned"},
				{"guest-new", []func(*JoinRequest){coming("203.0.113.200", "")}, "network_banned"},
				{"guest-new", []func(*JoinRequest){coming("203.0.113.200", ""), born(time.Now())}, "network_banned"},
				{"guest-new", []func(*JoinRequest){coming("::ffff:203.0.113.200", "")}, "network_banned"},
				{"guest-new", []func(*JoinRequest){coming("198.51.100.1", "note-bad")}, "network_banned"},
				{"guest-new", []func(*JoinRequest){coming("203.0.114.7", "note-good")}, ""},
				{"guest-old", []func(*JoinRequest){coming("203.0.113.9", ""), born(before)}, ""}, // was a guest before
				{"member", []func(*JoinRequest){coming("203.0.113.7", "note-bad")}, ""},
			} {
				if got := n.shut(c.user, c.change...); got != c.want {
					t.Errorf("%s is told %q, want %q", c.user, got, c.want)
				}
			}
			n.hub.With(t.Context(), "demo", nil, func(r *Room) *protocol.Error {
				if b := r.Sanctions("", "", "", 9); len(b) != 1 || b[0].Marks != nil || b[0].Reason != "spam" || !b[0].Network {
					t.Errorf("shown as %+v", b)
				}
				return nil
			})
		}
		// By name a guest is let in all the same.
		allow := host.moderate(protocol.ActionAllow, target("guest-new", 0))
		wantCode(t, allow, protocol.OK, "")
		if got := n2.shut("guest-new", coming("203.0.113.200", "")); got != "" {
			t.Error("who is allowed is told", got)
		}
		wantCode(t, host.undo(allow.Seq), protocol.OK, "")
		if got := n2.shut("guest-new", coming("203.0.113.200", "")); got != "network_banned" {
			t.Error("who is no more allowed is told", got)
		}
		// With network: true it is for all guests there, and cuts those who are in the room.
		wide := ban("guest-bad", func(r *protocol.Request) { r.Network = yes() })
		time.Sleep(time.Second)
		if old.end() == nil || old.end().Detail != "network_banned" || six.end() != nil {
			t.Fatalf("closed: old %v, six %v", old.end(), six.end())
		}
		wantCode(t, host.undo(wide.Seq), protocol.OK, "")
		if got := n1.shut("guest-old", coming("203.0.113.9", ""), born(before)); got != "" {
			t.Error("after the wider ban was undone:", got)
		}
		// The network of IPv6 is a /64, and a ban of somebody who left a moment ago finds it; network: false leaves it out.
		six.Leave()
		wantCode(t, ban("guest-six", func(r *protocol.Request) { r.Network = no() }), protocol.OK, "")
		time.Sleep(time.Second)
		if got := n1.shut("guest-v6", coming("2001:db8:1:2::1", "")); got != "" {
			t.Error("without its network:", got)
		}
		wantCode(t, ban("guest-six"), protocol.OK, "")
		time.Sleep(time.Second)
		for addr, want := range map[string]string{"2001:db8:1:2:ffff::1": "network_banned", "2001:db8:1:3::1": ""} {
			if got := n1.shut("guest-v6", coming(addr, "")); got != want {
				t.Errorf("%s: %q", addr, got)
			}
		}
		bus.set(func(b *memoryBus) {
			for _, kept := range append(b.audit, string(b.settings["demo"].value)) {
				for _, raw := range []string{"203.0.113", "2001:db8", "note-bad"} {
					if strings.Contains(kept, raw) {
						t.Errorf("the store has %s: %s", raw, kept)
					}
				}
			}
		})
		time.Sleep(11 * time.Minute)
		if got := n1.shut("guest-new", coming("203.0.113.200", "note-bad")); got != "" {
			t.Error("after its end:", got)
		}
	})
}

func TestMarksAreOfOneRoomAndKey(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a, b := w.join("a", "guest-1", coming("203.0.113.7", "n")), w.join("b", "guest-1", coming("203.0.113.7", "n"))
	c := newWorld(t, newMemoryBus(), nil).join("a", "guest-1", coming("203.0.113.7", "n"))
	seen := map[string]bool{}
	for _, m := range []marks{a.marked(), b.marked(), c.marked()} {
		for _, mark := range []string{m.network, m.device} {
			if seen[mark] || len(mark) != markBytes*4/3 {
				t.Error(mark)
			}
			seen[mark] = true
		}
	}
	if a.marked() != w.join("a", "guest-2", coming("203.0.113.8", "n")).marked() {
		t.Error("two of one network and device differ")
	}
}

func TestWhatARoomRemembersOfGuestsIsBounded(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
	host := w.join("demo", "host", as(protocol.RoleHost))
	for i := range maxDeparted + 50 {
		w.join("demo", fmt.Sprint("guest-", i), coming("203.0.113.7", "n")).Leave()
	}
	if n := len(host.room.departed.list); n != maxDeparted {
		t.Errorf("%d who left", n)
	}
	s := stored{}
	for i := range maxAllowed + 1 {
		if err := s.allow(fmt.Sprint("guest-", i), true); (err != nil) != (i == maxAllowed) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	ban := Sanction{User: "guest-x", Network: true, Device: true}
	for i := range 20 {
		w.join("demo", "guest-x", coming(fmt.Sprint("203.0.", i, ".1"), fmt.Sprint("n", i)))
	}
	if host.room.markedBy(&ban); len(ban.Marks) != maxMarks {
		t.Errorf("%d marks", len(ban.Marks))
	}
	one := barMarks([]Sanction{{Marks: []string{"m"}, At: 5, Until: 100}, {Marks: []string{"m"}, At: 3}, {Marks: []string{"m"}, At: 4, Until: 50, Wide: true}})["m"]
	if one.until != 0 || one.since != 5 || !one.wide {
		t.Errorf("of three bans: %+v", one)
	}
}
