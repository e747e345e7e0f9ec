package cluster_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

const slowRules = `
rules:
  - {name: join-user, action: join, scope: user, rate: 1, burst: 10, cluster: true}
  - {name: join-room, action: join, scope: room, rate: 1000, burst: 5000, cluster: true}
  - {name: danmaku-user, action: danmaku, scope: user, rate: 1, burst: 5, cluster: true}
  - {name: danmaku-room, action: danmaku, scope: room, rate: 50, burst: 100, cluster: true}
  - {name: gift-room, action: gift, scope: room, rate: 50, burst: 100, cluster: true}
`

// At any steady round trip everybody gets in and speaks, later the farther the
// store is; where it is too far, the node says so and goes by on_outage. There
// is no round trip at which it does neither.
func TestSlowStore(t *testing.T) {
	for trip := 5 * time.Millisecond; trip <= 400*time.Millisecond; trip += 5 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 2, slowRules, trip)
			time.Sleep(2 * time.Second) // long enough to be found too far
			_, _, away := w.nodes[0].cluster.Degraded()
			if trip <= 140*time.Millisecond && away || trip >= 155*time.Millisecond && !away {
				t.Errorf("%s: away is %t", trip, away)
			}
			slowest := time.Duration(0)
			pass := func(n *node, a limit.Action, user string) {
				began := w.clock()
				d := n.decide(&limit.Request{Action: a, User: user, Room: "r", Cost: 1}, n.subject(limit.ScopeUser, user), n.subject(limit.ScopeRoom, "r"))
				slowest = max(slowest, w.clock().Sub(began))
				if d.Verdict != limit.Allow {
					t.Errorf("%s: %s at %d: %+v", trip, a, began, d)
				}
			}
			for i := range 20 {
				user := string(rune('a' + i))
				pass(w.nodes[i%2], limit.Join, user)
				time.Sleep(3 * time.Second)
				pass(w.nodes[i%2], limit.Danmaku, user)
				time.Sleep(5 * time.Second)
			}
			pass(w.nodes[0], limit.Gift, "a")
			pass(w.nodes[1], limit.Danmaku, "a") // from a node that claimed it
			if away && slowest > 30*time.Millisecond || slowest > 6*trip+20*time.Millisecond {
				t.Errorf("%s: a decision took %s", trip, slowest)
			}
			w.close()
		})
	}
}

// A quota is exact and used in full however slow the store is.
func TestSlowStoreSaturated(t *testing.T) {
	for _, trip := range []time.Duration{20, 40, 60, 90, 100, 120, 140} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 3, roomRule(""), trip*time.Millisecond)
			time.Sleep(time.Second)
			var wg sync.WaitGroup
			for range 2000 { // 200 a second on each of three nodes
				for _, n := range w.nodes {
					wg.Go(func() { n.room("r", 1) })
				}
				time.Sleep(5 * time.Millisecond)
			}
			wg.Wait()
			w.bound(300, 300)
			if n := w.admitted(); n < 2900 {
				t.Errorf("%s: admitted %d of %d", trip*time.Millisecond, n, 3300)
			}
			w.close()
		})
	}
}

// A process that is late itself takes no store for away that answers late; one that answers nothing for long is.
func TestSlowProcess(t *testing.T) {
	for _, behind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 1, slowRules, 300*time.Millisecond)
			c := w.nodes[0].cluster
			away := func() bool {
				for range 30 {
					if behind {
						c.FallBehind()
					}
					time.Sleep(100 * time.Millisecond)
				}
				_, _, yes := c.Degraded()
				return yes
			}
			if have := away(); have == behind {
				t.Errorf("late itself %t: away is %t", behind, have)
			}
			w.link.silent.Store(true)
			if !away() {
				t.Errorf("late itself %t: a silent store is not away", behind)
			}
			w.close()
		})
	}
}
