package room

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// from lets somebody come from an address.
func from(addr string) func(*JoinRequest) {
	return func(j *JoinRequest) {
		j.Addr = netip.MustParseAddr(addr)
		j.Networks = []*limit.Subject{{Scope: limit.ScopeIP}, {Scope: limit.ScopeNet}}
	}
}

// TestANetworkHasItsShareOfEachRoom: exactly as much of each room, whatever it says in another, and nothing of another network's; what
// is remembered of it goes once its buckets are full.
func TestANetworkHasItsShareOfEachRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate = gateOf(t, "rules: [{name: share, action: danmaku, scope: net_room, rate: 1, burst: 5}]")
		})
		for _, c := range []struct {
			room, network string
			passes        int
		}{{"a", "192.0.2", 5}, {"b", "192.0.2", 5}, {"a", "198.51.100", 5}, {"a", "192.0.2", 0}} {
			passed := 0
			for i := range 10 {
				e := w.join(c.room, fmt.Sprint(c.room, c.network, c.passes, i), from(fmt.Sprintf("%s.%d", c.network, i))).say(fmt.Sprint("text ", i))
				if e.Code == int(protocol.OK) {
					passed++
				} else if e.Rule != "share" || e.Scope != "net_room" || e.Retry < 1000 {
					t.Fatalf("%+v", e)
				}
			}
			if passed != c.passes {
				t.Errorf("%s in %s: %d passed, want %d", c.network, c.room, passed, c.passes)
			}
		}
		r, _ := w.hub.Room("a")
		if n := r.shares.table.Sweep(w.hub.gate.Now()); n != 2 {
			t.Errorf("%d networks are remembered", n)
		}
		time.Sleep(5 * time.Second)
		if n := r.shares.table.Sweep(w.hub.gate.Now()); n != 0 {
			t.Errorf("%d networks are remembered although their buckets are full", n)
		}
		w.stop()
	})
}

// TestARoomTellsABoundedNumberOfNetworksApart: the others have one share together, so that more of them are not more of the room.
func TestARoomTellsABoundedNumberOfNetworksApart(t *testing.T) {
	g := gateOf(t, "rules: [{name: share, action: danmaku, scope: net_room, rate: 0, burst: 1}]")
	s, passed := newShares(), 0
	for i := range mostShares + 100 {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 1})
		subject, held := s.of(g.Now(), addr)
		if g.Decide(g.Now(), &limit.Request{Action: limit.Danmaku, Room: "a", Addr: addr}, subject).Verdict == limit.Allow {
			passed++
		}
		s.leave(held)
	}
	if passed != mostShares+1 || s.table.Len() != mostShares {
		t.Errorf("%d passed, %d are remembered", passed, s.table.Len())
	}
}
