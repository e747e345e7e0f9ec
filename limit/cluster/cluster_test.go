package cluster_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

const roomRules = `
rules:
  - {name: danmaku-room, action: danmaku, scope: room, rate: 200, burst: 200, cluster: true}
`

// Demand over three nodes in several shapes: the bound holds, nothing is left
// lying, and the store is asked at most 150 times a second.
func TestClusterSaturated(t *testing.T) {
	const span = 10 * time.Second
	shapes := []struct {
		name string
		// step is how long a node's asker number i waits at an instant.
		step func(node, i int, now time.Duration) time.Duration
		util int64 // percent
	}{
		{"even", func(int, int, time.Duration) time.Duration { return 10 * time.Millisecond }, 98},
		{"barely", func(int, int, time.Duration) time.Duration { return 50 * time.Millisecond }, 98},
		{"one node has all", func(node, _ int, _ time.Duration) time.Duration {
			if node > 0 {
				return time.Hour
			}
			return 10 * time.Millisecond
		}, 98},
		{"skewed", func(node, _ int, _ time.Duration) time.Duration {
			return []time.Duration{5 * time.Millisecond, 100 * time.Millisecond, time.Second}[node]
		}, 98},
		{"hot node moves", func(node, _ int, now time.Duration) time.Duration {
			if int(now/time.Second)%3 == node {
				return 10 * time.Millisecond
			}
			return now.Truncate(time.Second) + time.Second - now
		}, 98},
		{"flood", func(int, int, time.Duration) time.Duration { return 500 * time.Microsecond }, 98},
	}
	for _, shape := range shapes {
		for _, delay := range []time.Duration{200 * time.Microsecond, 5 * time.Millisecond} {
			t.Run(shape.name+"/"+delay.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTown(t, 3, roomRules, delay)
					start := w.clock()
					var wg sync.WaitGroup
					for k, n := range w.nodes {
						for i := range 4 {
							wg.Go(func() {
								time.Sleep(time.Duration(k*4+i) * 137 * time.Microsecond)
								for now := w.clock().Sub(start); now < span; now = w.clock().Sub(start) {
									n.room("r", 1)
									time.Sleep(min(shape.step(k, i, now), span))
								}
							})
						}
					}
					wg.Wait()
					w.bound(200, 200)
					most := 200 + 200*int64(span/time.Second)
					t.Logf("admitted %d of %d, %.1f draws/s", w.admitted(), most, float64(w.link.draws.Load())/span.Seconds())
					if w.admitted() < most*shape.util/100 {
						t.Errorf("admitted %d of %d", w.admitted(), most)
					}
					if n := w.link.draws.Load(); n > 150*int64(span/time.Second) {
						t.Errorf("%d draws", n)
					}
					w.close()
				})
			})
		}
	}
}

// Fifty times the demand within an instant.
func TestClusterPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, roomRules, time.Millisecond)
		start := w.clock()
		var wg sync.WaitGroup
		for _, n := range w.nodes {
			wg.Go(func() { n.flood("r", 30*time.Millisecond, start.Add(2*time.Second)) })
			for range 50 {
				wg.Go(func() {
					time.Sleep(time.Second)
					n.flood("r", 10*time.Millisecond, start.Add(3*time.Second))
				})
			}
		}
		wg.Wait()
		w.bound(200, 200)
		t.Logf("admitted %d, %d draws", w.admitted(), w.link.draws.Load())
		if most := int64(100 + 200 + 2*200); w.admitted() < most*98/100 {
			t.Errorf("admitted %d of %d", w.admitted(), most)
		}
		w.close()
	})
}

// A quiet room has its whole burst, wherever it is asked for, and a node that
// is asked while the bucket holds tokens does not refuse.
func TestClusterWholeBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, roomRules, time.Millisecond)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if d := w.nodes[1].room("r", 1); d.Verdict != limit.Allow {
					t.Errorf("refused within the burst: %+v", d)
				}
			})
		}
		wg.Wait()
		if d := w.nodes[2].room("r", 1); d.Verdict != limit.Reject || d.RetryAfter <= 0 {
			t.Errorf("one beyond the burst: %+v", d)
		}
		time.Sleep(2 * time.Second)
		for i := range 100 {
			if d := w.nodes[i%3].room("r", 1); d.Verdict != limit.Allow {
				t.Fatalf("message %d: refused though the bucket holds tokens: %+v", i, d)
			}
		}
		w.bound(200, 200)
		w.close()
	})
}

// A message that the user's bucket refuses costs the room nothing and asks
// nobody.
func TestClusterAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, roomRules+`
  - {name: danmaku-conn, action: danmaku, scope: conn, rate: 1, burst: 1}
`, time.Millisecond)
		n := w.nodes[0]
		conn := &limit.Subject{Scope: limit.ScopeConn}
		q := &limit.Request{Action: limit.Danmaku, Room: "r"}
		if d := n.decide(q, conn, n.subject(limit.ScopeRoom, "r")); d.Verdict != limit.Allow {
			t.Fatalf("the first: %+v", d)
		}
		calls := w.link.calls.Load()
		for range 50 {
			if d := n.decide(q, conn, n.subject(limit.ScopeRoom, "r")); d.Verdict != limit.Reject || d.Rule != "danmaku-conn" {
				t.Fatalf("have %+v", d)
			}
		}
		if more := w.link.calls.Load() - calls; more != 0 {
			t.Errorf("refusals made %d calls", more)
		}
		w.close()
	})
}

// What is drawn and then not wanted goes back before it expires.
func TestClusterGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRules, time.Millisecond)
		n := w.nodes[0]
		n.flood("r", 8*time.Millisecond, w.clock().Add(time.Second))
		time.Sleep(time.Second)
		s := n.cluster.Stats()
		if s.Returned == 0 || s.Expired != 0 {
			t.Errorf("returned %d, expired %d", s.Returned, s.Expired)
		}
		if held := w.key("danmaku-room").Outstanding; held != 0 {
			t.Errorf("%d still out", held)
		}
		draws := w.link.draws.Load()
		time.Sleep(5 * time.Second)
		if more := w.link.draws.Load() - draws; more != 0 {
			t.Errorf("%d draws at rest", more)
		}
		if s.Granted != s.Used+s.Returned+s.Expired {
			t.Errorf("granted %d, used %d, returned %d, expired %d", s.Granted, s.Used, s.Returned, s.Expired)
		}
		w.close()
	})
}

// A full subject of a room may be forgotten only when the store forgets it, too.
func TestClusterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, roomRules, time.Millisecond)
		n := w.nodes[0]
		n.room("r", 1)
		time.Sleep(time.Second)
		if n.subject(limit.ScopeRoom, "r").Full(w.clock()) {
			t.Error("forgets what the store still counts")
		}
		time.Sleep(20 * time.Second)
		if !n.subject(limit.ScopeRoom, "r").Full(w.clock()) {
			t.Error("keeps what the store has forgotten")
		}
		w.close()
	})
}

// An operator who resets a subject fills the bucket of all nodes.
func TestClusterReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - {name: danmaku-room, action: danmaku, scope: room, rate: 1, burst: 200, cluster: true}
`, time.Millisecond)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() { w.nodes[0].room("r", 1) })
		}
		wg.Wait()
		time.Sleep(100 * time.Millisecond)
		if d := w.nodes[1].room("r", 1); d.Verdict != limit.Reject {
			t.Fatalf("have %+v", d)
		}
		w.nodes[1].subject(limit.ScopeRoom, "r").Reset()
		time.Sleep(time.Second) // until the others ask again
		before := w.admitted()
		for range 150 {
			wg.Go(func() {
				w.nodes[0].room("r", 1)
			})
		}
		wg.Wait()
		if had := w.admitted() - before; had < 140 {
			t.Errorf("%d after the reset, want 150", had)
		}
		w.close()
	})
}

// A user without a name shares nothing with other users without one.
func TestClusterNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, userRules, time.Millisecond)
		for i := range 20 {
			s := &limit.Subject{Scope: limit.ScopeUser}
			if d := w.nodes[i%2].decide(&limit.Request{Action: limit.Danmaku}, s); d.Verdict != limit.Allow {
				t.Errorf("nobody %d: %+v", i, d)
			}
		}
		if n := w.link.calls.Load(); n != 0 {
			t.Errorf("%d calls", n)
		}
		w.close()
	})
}
