package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

const userRules = `
rules:
  - {name: danmaku-user, action: danmaku, scope: user, rate: 1, burst: 10, cluster: true}
`

// want asks so many times in a row at one node and wants that many admitted.
func (n *node) want(times, admitted int) {
	n.town.t.Helper()
	had := 0
	for range times {
		if n.user("u").Verdict == limit.Allow {
			had++
		}
	}
	if had != admitted {
		n.town.t.Errorf("%s: %d of %d admitted, want %d", n.name, had, times, admitted)
	}
}

// A user whose sessions are on one node costs a call at its first message and one
// when it leaves.
func TestClaimCostsNothingPerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, userRules, time.Millisecond)
		n := w.nodes[0]
		s := n.subject(limit.ScopeUser, "u")
		n.gate.Decide(w.clock(), &limit.Request{Action: limit.Join, User: "u"}, s)
		time.Sleep(50 * time.Millisecond)
		if calls := w.link.users.Load(); calls != 0 {
			t.Errorf("%d calls for a join that no shared rule is asked about", calls)
		}
		for range 1000 {
			n.user("u")
			time.Sleep(100 * time.Millisecond)
		}
		if calls := w.link.users.Load(); calls != 1 {
			t.Errorf("%d calls after 1,000 messages, want 1", calls)
		}
		w.bound(10, 1)
		s.Leave(w.clock())
		time.Sleep(50 * time.Millisecond)
		if k := w.key("danmaku-user"); k.Owner != "" || k.Left > 2 {
			t.Errorf("after the leave: %+v", k)
		}
		if calls := w.link.users.Load(); calls != 2 {
			t.Errorf("%d calls with the leave, want 2", calls)
		}
		w.close()
	})
}

// CASES 9: the same user on three nodes has one allowance.
func TestClaimOneAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, userRules, time.Millisecond)
		w.nodes[0].want(4, 4)
		w.nodes[1].want(4, 4)
		w.nodes[2].want(4, 2)
		w.nodes[0].want(2, 0)
		w.bound(10, 1)
		for range 100 {
			for _, n := range w.nodes {
				n.user("u")
				time.Sleep(37 * time.Millisecond)
			}
		}
		w.bound(10, 1)
		if least := int64(10 + 10); w.admitted() < least {
			t.Errorf("admitted %d, want %d", w.admitted(), least)
		}
		w.close()
	})
}

// A bucket that only one node draws from any more is claimed again.
func TestClaimAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		w.nodes[0].want(1, 1)
		w.nodes[1].want(1, 1)
		for range 30 {
			time.Sleep(time.Second)
			w.nodes[1].want(1, 1)
		}
		calls := w.link.users.Load()
		for range 10 {
			time.Sleep(time.Second)
			w.nodes[1].want(1, 1)
		}
		if more := w.link.users.Load() - calls; more != 0 {
			t.Errorf("%d calls after the other node has long gone", more)
		}
		w.close()
	})
}

// An owner that died leaves the level at 0; one that came back under the same
// name is not the one that claimed.
func TestClaimOwnerDied(t *testing.T) {
	for _, reborn := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 2, userRules, time.Millisecond)
			w.nodes[0].want(1, 1)
			w.nodes[0].dead.Store(true)
			w.nodes[0].cluster.Close(cancelled())
			if reborn {
				w.add("n1", userRules)
				w.nodes[0].name = "n1-before"
			}
			w.nodes[1].want(1, 0)
			time.Sleep(1100 * time.Millisecond)
			w.nodes[1].want(2, 1)
			w.close()
		})
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// An owner that does not answer has its bucket taken after four seconds, and
// believes that when it is heard again.
func TestClaimOwnerPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		w.nodes[0].want(2, 2)
		w.nodes[0].cut.Store(true)
		start := w.clock()
		first := time.Duration(0)
		for first == 0 && w.clock().Sub(start) < 10*time.Second {
			asked := w.clock()
			d := w.nodes[1].user("u")
			if spent := w.clock().Sub(asked); spent > 35*time.Millisecond {
				t.Fatalf("a decision took %s", spent)
			}
			if d.Verdict == limit.Allow {
				first = w.clock().Sub(start)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if first < 4*time.Second || first > 6*time.Second {
			t.Errorf("taken after %s, want 4 to 6 s", first)
		}
		w.nodes[0].cut.Store(false)
		w.nodes[0].want(5, 0)
		w.bound(10, 1)
		w.close()
	})
}

// A node that nobody can reach asks the store whether its claims still stand.
func TestClaimUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		w.nodes[0].want(2, 2)
		w.nodes[0].cut.Store(true)
		time.Sleep(time.Second)
		calls := w.link.users.Load()
		for range 5 {
			w.nodes[0].want(1, 1)
			time.Sleep(100 * time.Millisecond)
		}
		if more := w.link.users.Load() - calls; more != 5 {
			t.Errorf("%d calls for 5 messages, want as many", more)
		}
		w.bound(10, 1)
		w.close()
	})
}

// The store restarts empty: who had a claim goes on with what it knows.
func TestClaimStoreEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		w.nodes[0].want(8, 8)
		w.link.Wipe("a")
		time.Sleep(time.Second)
		w.nodes[0].want(5, 3)
		w.nodes[1].want(5, 0)
		w.bound(10, 1)
		w.close()
	})
}

// A user that comes back before its give has arrived finds its own bucket.
func TestClaimComesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, 5*time.Millisecond)
		n := w.nodes[0]
		n.want(5, 5)
		n.subject(limit.ScopeUser, "u").Leave(w.clock())
		delete(n.subjects, "user:u") // as an owner does that forgets too soon
		n.want(6, 5)
		w.bound(10, 1)
		w.close()
	})
}

// Two subjects of one user on one node, as the sockets and the HTTP API have.
func TestClaimTwiceOnOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, userRules, time.Millisecond)
		n := w.nodes[0]
		other := &limit.Subject{Scope: limit.ScopeUser}
		n.want(3, 3)
		for i := range 8 {
			d := n.decide(&limit.Request{Action: limit.Danmaku, User: "u"}, other)
			if want := i < 7; (d.Verdict == limit.Allow) != want {
				t.Errorf("message %d through the other: %+v", i, d)
			}
		}
		w.bound(10, 1)
		w.close()
	})
}

// A subject that is full again gives its claim back, and the store forgets it.
func TestClaimForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, userRules, time.Millisecond)
		n := w.nodes[0]
		n.want(3, 3)
		if n.subject(limit.ScopeUser, "u").Full(w.clock()) {
			t.Error("full though it is not")
		}
		time.Sleep(4 * time.Second)
		if !n.subject(limit.ScopeUser, "u").Full(w.clock()) {
			t.Error("not full though it is")
		}
		time.Sleep(10 * time.Millisecond)
		if keys := w.link.Keys(); len(keys) != 0 {
			t.Errorf("the store still has %+v", keys)
		}
		w.close()
	})
}

// A full bucket that was given back is gone from the store. Whoever had it knows
// that, and does not take it for lost.
func TestClaimFullAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		for range 3 {
			for _, n := range w.nodes {
				n.want(1, 1)
				time.Sleep(1500 * time.Millisecond)
				n.subject(limit.ScopeUser, "u").Leave(w.clock())
				time.Sleep(10 * time.Millisecond)
				if keys := w.link.Keys(); len(keys) != 0 {
					t.Fatalf("the store still has %+v", keys)
				}
			}
		}
		w.nodes[0].want(12, 10)
		w.close()
	})
}
