package cluster_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

const joinRules = `
rules:
  - {name: join-user, action: join, scope: user, rate: 1, burst: 3, cluster: true}
  - {name: join-network, action: join, scope: net, rate: 100, burst: 100, cluster: true}
  - {name: danmaku-user, action: danmaku, scope: user, rate: 1, burst: 10, cluster: true}
  - {name: gift-user, action: gift, scope: user, rate: 1, burst: 10, cluster: true}
`

// join has a user come in, as the room asks for it.
func (n *node) join(user string) limit.Decision {
	return n.decide(&limit.Request{Action: limit.Join, User: user}, n.subject(limit.ScopeUser, user))
}

// A join costs one call, and who says nothing costs neither calls nor memory nor
// keys but the join's own.
func TestJoinClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, joinRules, time.Millisecond)
		n := w.nodes[0]
		if d := n.join("u"); d.Verdict != limit.Allow {
			t.Fatalf("%+v", d)
		}
		time.Sleep(time.Second)
		if n.shares() > 0 {
			t.Error("a silent user keeps leases")
		}
		for _, k := range w.link.Keys() {
			if !strings.Contains(k.Name, "join-user") || k.Owner != "" {
				t.Errorf("the store has %+v", k)
			}
		}
		time.Sleep(time.Minute)
		if calls := w.link.users.Load(); calls != 1 {
			t.Errorf("%d calls for the join, want 1", calls)
		}
		if keys := w.link.Keys(); len(keys) != 0 {
			t.Errorf("the store still has %+v", keys)
		}
		n.user("u")
		if calls := w.link.users.Load(); calls != 2 {
			t.Errorf("%d calls with the first message, want 2", calls)
		}
		w.close()
	})
}

// A user's joins have one allowance on all nodes together, exact at every instant.
func TestJoinsOneAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, joinRules, time.Millisecond)
		for i := range 300 {
			w.nodes[i%3].join("u")
			time.Sleep(70 * time.Millisecond)
		}
		w.bound(3, 1)
		if n := w.admitted(); n < 3+20 {
			t.Errorf("%d admitted in 21 s", n)
		}
		if err := w.nodes[0].check(); err != nil {
			t.Error(err)
		}
		w.close()
	})
}

// The node where a user was dies, or does not answer: the user joins elsewhere at once.
func TestJoinWaitsForNoOwner(t *testing.T) {
	for _, end := range []func(n *node){
		func(n *node) { n.dead.Store(true); n.cluster.Close(cancelled()) },
		func(n *node) { n.cut.Store(true) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 2, joinRules, time.Millisecond)
			w.nodes[0].join("u")
			w.nodes[0].user("u")
			end(w.nodes[0])
			began := w.clock()
			if d := w.nodes[1].join("u"); d.Verdict != limit.Allow || w.clock().Sub(began) > 5*time.Millisecond {
				t.Errorf("after %s: %+v", w.clock().Sub(began), d)
			}
			w.close()
		})
	}
}

// A rule for joins and messages together is drawn from, too: no join waits for an owner.
func TestJoinRuleWithMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - {name: all, action: [join, danmaku], scope: user, rate: 1, burst: 10, cluster: true}
`, time.Millisecond)
		w.nodes[0].want(4, 4)
		w.nodes[0].dead.Store(true)
		w.nodes[0].cluster.Close(cancelled())
		if d := w.nodes[1].join("u"); d.Verdict != limit.Allow {
			t.Errorf("%+v", d)
		}
		w.nodes[1].want(9, 5)
		w.bound(10, 1)
		w.close()
	})
}

// Who joins from one address at the same time shares a call.
func TestJoinsShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, joinRules, time.Millisecond)
		n := w.nodes[0]
		network := &limit.Subject{Scope: limit.ScopeNet}
		for i := range 50 {
			go n.decide(&limit.Request{Action: limit.Join, User: string(rune('A' + i)), Addr: netip.MustParseAddr("192.0.2.1")},
				n.subject(limit.ScopeUser, string(rune('A'+i))), network)
		}
		time.Sleep(time.Second)
		if w.admitted() != 50 {
			t.Errorf("%d of 50 admitted", w.admitted())
		}
		if calls := w.link.draws.Load() + w.link.users.Load(); calls > 50+3 {
			t.Errorf("%d calls for 50 users of one network", calls)
		}
		w.close()
	})
}

// After an outage the store hears of the joins meanwhile, and nothing of them stays here.
func TestJoinsThroughOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, joinRules, time.Millisecond)
		n := w.nodes[0]
		w.link.silent.Store(true)
		time.Sleep(2 * time.Second)
		for _, want := range []limit.Verdict{limit.Allow, limit.Allow, limit.Allow, limit.Reject} {
			if d := n.join("u"); d.Verdict != want {
				t.Errorf("%+v, want %s", d, want)
			}
		}
		w.link.silent.Store(false)
		time.Sleep(700 * time.Millisecond)
		if left := w.key("join-user").Left; left > 1 {
			t.Errorf("the store thinks that %d are left", left)
		}
		time.Sleep(10 * time.Second)
		if n.shares() > 0 {
			t.Error("a silent user keeps leases")
		}
		w.bound(3, 1)
		w.close()
	})
}
