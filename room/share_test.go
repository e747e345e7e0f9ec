package room

import (
	"fmt"
	"net/netip"
	"slices"
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

// crowded plays twenty seconds in a room of an audience: 900 guests behind four addresses say all they may, twenty honest people something every five
// seconds. It returns what part of the honest messages was shown to all.
func crowded(t *testing.T, rules *limit.Rules, audience int) (shown float64) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate = gateOf(t, "")
			if rules != nil {
				c.Gate = limit.NewGate(rules, limit.NewClock())
			}
			c.Elsewhere = func(string) Others { return Others{Sessions: audience - 920} }
		})
		defer w.stop()
		come := func(user string, addr string) *viewer {
			var v *viewer
			for v == nil {
				if v, _ = w.tryJoin("demo", user, from(addr), func(j *JoinRequest) { j.Session = &nullSession{} }); v == nil {
					time.Sleep(100 * time.Millisecond)
				}
			}
			return v
		}
		var raiders, honest []*viewer
		for i := range 900 {
			raiders = append(raiders, come(fmt.Sprint("guest-", i), fmt.Sprintf("203.0.%d.7", i%4)))
		}
		for i := range 20 {
			honest = append(honest, come(fmt.Sprint("honest-", i), fmt.Sprintf("198.51.%d.7", i)))
		}
		say := func(v *viewer, text string) protocol.Code {
			by := Speaker{who: v.who.Load(), user: v.user, place: v.place, conn: v.conn, networks: v.networks, addr: v.addr}
			return v.room.Handle(t.Context(), &by, danmakuOf(text, text)).Code
		}
		sent, passed, n := 0, 0, 0
		for tick := range 200 { // of 100 ms
			for i, v := range raiders {
				if (i+tick)%7 == 0 { // faster than a user may
					n++
					say(v, fmt.Sprint("raid ", n))
				}
				if i%45 == 0 && (i/45*5+tick)%50 == 0 { // spread between them
					n++
					sent++
					if say(honest[i/45], fmt.Sprint("honest ", n)) == protocol.OK {
						passed++
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		shown = float64(passed) / float64(sent)
	})
	return shown
}

// 900 guests behind four addresses do not own a room: of what twenty honest people say 95 % are shown, however large the room.
func TestACrowdBehindFourAddressesDoesNotOwnARoom(t *testing.T) {
	for _, audience := range []int{920, 50_000} {
		shown := crowded(t, nil, audience)
		t.Logf("audience %d: %.1f %% of honest messages are shown", audience, 100*shown)
		if shown < 0.95 {
			t.Errorf("audience %d: %.1f %% of honest messages are shown", audience, 100*shown)
		}
	}
	set := limit.Default()
	set.Rules = slices.DeleteFunc(set.Rules, func(r limit.Rule) bool { return r.Share != "" })
	rules, err := set.Compile()
	if err != nil {
		t.Fatal(err)
	}
	shown := crowded(t, rules, 50_000)
	t.Logf("without shares: %.1f %%", 100*shown)
	if shown > 0.9 {
		t.Errorf("without shares %.1f %% are shown: this shows nothing", 100*shown)
	}
}

// A network's sessions in a room are counted in and out.
func TestCrowdsAreCounted(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a, b := w.join("demo", "a", from("192.0.2.1")), w.join("demo", "b", from("192.0.2.77"))
	w.join("demo", "c", from("198.51.100.1"))
	by := &Speaker{networks: a.networks, addr: a.addr}
	if n := a.room.crowds.of(by); n != 2 {
		t.Errorf("%d of two", n)
	}
	a.Leave()
	b.Leave()
	if n := a.room.crowds.of(by); n != 0 || len(a.room.crowds.by) != 1 {
		t.Errorf("%d of none, %d networks", n, len(a.room.crowds.by))
	}
	if n := a.room.crowds.of(&Speaker{addr: a.addr}); n != 0 {
		t.Errorf("a back end has a crowd of %d", n)
	}
}
