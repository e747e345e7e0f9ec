package cluster_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

// swap puts other rules in force at a node.
func (n *node) swap(version int64, rules string) {
	spec, err := limit.Parse([]byte(rules))
	if err != nil {
		n.town.t.Fatal(err)
	}
	spec.Version = version
	set, err := spec.Compile()
	if err != nil {
		n.town.t.Fatal(err)
	}
	n.gate.Swap(set)
}

// A user leaves while the store is asked whether its claim still stands: the bucket goes back as it is.
func TestClaimLeftWhileProved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, 5*time.Millisecond)
		n := w.nodes[0]
		n.want(6, 6)
		n.cut.Store(true)
		time.Sleep(time.Second)
		go func() {
			time.Sleep(2 * time.Millisecond)
			n.subject(limit.ScopeUser, "u").Leave(w.clock())
		}()
		n.want(1, 1)
		synctest.Wait()
		if err := n.check(); err != nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond)
		n.cut.Store(false)
		w.nodes[1].want(9, 4)
		w.bound(10, 1)
		w.close()
	})
}

// A rule is taken away whose bucket is at home: what it has goes back, not what another rule's has.
func TestClaimOfRuleTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, userRules, time.Millisecond)
		n := w.nodes[0]
		n.want(9, 9)
		n.swap(1, `
rules:
  - {name: other, action: danmaku, scope: user, rate: 1, burst: 50}
`)
		n.want(1, 1)
		time.Sleep(10 * time.Millisecond)
		if k := w.key("danmaku-user"); k.Owner != "" || k.Left != 1 {
			t.Errorf("the store has %+v, want 1 left", k)
		}
		w.close()
	})
}

// A room's rule with tiers is taken away while a call for it is under way: nothing else counts by its answer.
func TestAnswerToRuleTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, `
rules:
  - {name: a, action: danmaku, scope: room, rate: 1, burst: 5}
  - {name: z, action: danmaku, scope: room, cluster: true, tiers: [{below: 1000, rate: 100, burst: 100}, {rate: 10, burst: 10}]}
`, 10*time.Millisecond)
		n := w.nodes[0]
		go n.room("r", 1)
		time.Sleep(5 * time.Millisecond)
		n.swap(1, `
rules:
  - {name: a, action: danmaku, scope: room, rate: 1, burst: 5}
`)
		for i := range 6 {
			if d := n.room("r", 1); (d.Verdict == limit.Allow) != (i < 4) { // the first was the one that waited
				t.Errorf("message %d: %+v", i, d)
			}
			time.Sleep(2 * time.Millisecond)
		}
		w.close()
	})
}

// A subject that was full and gave its parts back, or was reset, meets rules that share more than those did.
func TestMoreRulesAreShared(t *testing.T) {
	more := userRules + "  - {name: a, action: danmaku, scope: user, rate: 1, burst: 7, cluster: true}\n"
	for name, rest := range map[string]func(n *node, s *limit.Subject){
		"full":  func(n *node, s *limit.Subject) { time.Sleep(time.Minute); s.Full(n.town.clock()) },
		"reset": func(_ *node, s *limit.Subject) { s.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 1, userRules, time.Millisecond)
				n := w.nodes[0]
				n.want(1, 1)
				rest(n, n.subject(limit.ScopeUser, "u"))
				n.swap(1, more)
				n.want(9, 7)
				if err := n.check(); err != nil {
					t.Error(err)
				}
				w.close()
			})
		})
	}
}

// Slots that were taken in an outage are nobody's debt: no call follows that the store would not understand.
func TestSlotsOwnNoDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, strings.Replace(roomRule(""), "rate: 300, burst: 300", "algorithm: concurrency, burst: 4, per: 10s", 1), time.Millisecond)
		n := w.nodes[0]
		n.room("r", 1)
		w.link.silent.Store(true)
		time.Sleep(2 * time.Second)
		if d := n.room("r", 1); d.Verdict != limit.Allow {
			t.Errorf("in the outage: %+v", d)
		}
		w.link.silent.Store(false)
		failed := func() (sum int64) {
			for _, c := range n.cluster.Stats().Calls {
				if c.Result == "error" {
					sum += c.N
				}
			}
			return sum
		}
		was := failed()
		time.Sleep(5 * time.Second)
		if more := failed() - was; more != 0 {
			t.Errorf("%d calls failed after the outage", more)
		}
		w.close()
	})
}
