package cluster_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
)

// most returns the most that was admitted in any window of a length.
func (w *town) most(length time.Duration) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	most, from := 0, 0
	for i, x := range w.took {
		for x.at.Sub(w.took[from].at) >= length {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

func (w *town) saturate(span, step time.Duration) {
	var wg sync.WaitGroup
	until := w.clock().Add(span)
	for i, n := range w.nodes {
		for k := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*3+k) * 311 * time.Microsecond)
				n.flood("r", step, until)
			})
		}
	}
	wg.Wait()
	w.bound(1<<30, 0) // sorts
}

// A fixed window grants its quota once between two ends, exactly.
func TestClusterFixedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, `
rules:
  - {name: r, action: danmaku, scope: room, algorithm: fixed_window, rate: 100, per: 1s, cluster: true}
`, time.Millisecond)
		w.saturate(10*time.Second, 5*time.Millisecond)
		perWindow := map[int64]int{}
		for _, x := range w.took {
			perWindow[time.Now().Add(-w.clock().Sub(x.at)).Unix()]++
		}
		for second, n := range perWindow {
			if n > 100 {
				t.Errorf("%d in the second %d", n, second)
			}
		}
		t.Logf("admitted %d in 10 s", w.admitted())
		if w.admitted() < 980 {
			t.Errorf("admitted %d", w.admitted())
		}
		w.close()
	})
}

func TestClusterSlidingLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, `
rules:
  - {name: r, action: danmaku, scope: room, algorithm: sliding_log, rate: 20, per: 2s, cluster: true}
`, time.Millisecond)
		w.saturate(20*time.Second, 20*time.Millisecond)
		if n := w.most(2 * time.Second); n > 20 {
			t.Errorf("%d in a window of 20", n)
		}
		t.Logf("admitted %d", w.admitted())
		if w.admitted() < 20*20/2*75/100 {
			t.Errorf("admitted %d", w.admitted())
		}
		w.close()
	})
}

func TestClusterSlidingWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, `
rules:
  - {name: r, action: danmaku, scope: room, algorithm: sliding_window, rate: 200, per: 2s, cluster: true}
`, time.Millisecond)
		w.saturate(20*time.Second, 10*time.Millisecond)
		n := w.most(2 * time.Second)
		t.Logf("admitted %d, at most %d in a window of 200", w.admitted(), n)
		if n > 400 || w.admitted() < 1300 || w.admitted() > 2200 {
			t.Errorf("admitted %d, at most %d in a window of 200", w.admitted(), n)
		}
		w.close()
	})
}

// The queue's bound is the bucket's; each node paces what it admits.
func TestClusterLeakyBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - {name: r, action: danmaku, scope: room, algorithm: leaky_bucket, rate: 100, burst: 20, cluster: true}
`, time.Millisecond)
		var mu sync.Mutex
		var leave []limit.Instant
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				d := w.nodes[0].room("r", 1)
				mu.Lock()
				defer mu.Unlock()
				if d.Verdict != limit.Allow || d.Delay > 190*time.Millisecond {
					t.Errorf("have %+v", d)
				}
				leave = append(leave, d.At.Add(d.Delay))
			})
		}
		wg.Wait()
		slices.Sort(leave)
		for i := range leave[1:] {
			if apart := leave[i+1].Sub(leave[i]); apart < 9*time.Millisecond {
				t.Errorf("message %d leaves %s after the one before", i+1, apart)
			}
		}
		w.bound(20, 100)
		w.close()
	})
}

// So many at a time over all nodes; a slot comes back when it is released, when
// its node dies, and when the decision that took it was refused after all.
func TestClusterSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, `
rules:
  - {name: r, action: danmaku, scope: room, algorithm: concurrency, burst: 4, per: 10s, cluster: true}
  - {name: c, action: danmaku, scope: global, rate: 0, burst: 6}
`, time.Millisecond)
		q := &limit.Request{Action: limit.Danmaku, Room: "r"}
		var taken []limit.Instant
		take := func(n *node) limit.Decision {
			now := w.clock()
			d := n.gate.Decide(now, q, n.subject(limit.ScopeRoom, "r"))
			if d.Verdict == limit.Allow {
				taken = append(taken, now)
			}
			return d
		}
		for i := range 6 {
			if d := take(w.nodes[i%3]); (d.Verdict == limit.Allow) != (i < 4) {
				t.Fatalf("slot %d: %+v", i, d)
			}
			time.Sleep(time.Millisecond)
		}
		w.nodes[1].gate.Release(taken[1], q, w.nodes[1].subject(limit.ScopeRoom, "r"))
		time.Sleep(10 * time.Millisecond)
		if d := take(w.nodes[0]); d.Verdict != limit.Allow {
			t.Errorf("the one released: %+v", d)
		}
		if d := take(w.nodes[0]); d.Verdict != limit.Reject || d.RetryAfter <= 0 || d.RetryAfter > 10*time.Second {
			t.Errorf("a fifth: %+v", d)
		}
		time.Sleep(10 * time.Second)
		for i := range 4 {
			if d := take(w.nodes[2]); d.Verdict != limit.Allow {
				t.Errorf("slot %d after the longest hold: %+v", i, d)
			}
		}
		w.close()
	})
}

// The room's rule that ships: tiers kept with the key, a degrade bucket of each
// node's own, hosts exempt.
func TestClusterTiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - name: r
    action: danmaku
    scope: room
    cluster: true
    tiers:
      - {below: 1000, rate: 200, burst: 200}
      - {rate: 40, burst: 80}
    degrade: {rate: 5, burst: 5}
    exempt: {roles: [host]}
`, time.Millisecond)
		audience := 10
		q := func() *limit.Request {
			return &limit.Request{Action: limit.Danmaku, Room: "r", Audience: audience}
		}
		run := func(span time.Duration) (allowed, degraded int) {
			until := w.clock().Add(span)
			for w.clock() < until {
				for _, n := range w.nodes {
					switch n.gate.Decide(w.clock(), q(), n.subject(limit.ScopeRoom, "r")).Verdict {
					case limit.Allow:
						allowed++
					case limit.Degrade:
						degraded++
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			return allowed, degraded
		}
		if allowed, _ := run(5 * time.Second); allowed < 1170 || allowed > 1200 {
			t.Errorf("allowed %d in the first tier, want 1,200", allowed)
		}
		audience = 5000
		run(12 * time.Second)
		allowed, degraded := run(5 * time.Second)
		if allowed < 190 || allowed > 201 || degraded < 48 || degraded > 51 {
			t.Errorf("allowed %d and degraded %d in the second tier, want 200 and 50", allowed, degraded)
		}
		if k := w.key("r"); k.Tier != 1 {
			t.Errorf("have %+v", k)
		}
		host := q()
		host.Role = "host"
		if d := w.nodes[0].decide(host, w.nodes[0].subject(limit.ScopeRoom, "r")); d.Verdict != limit.Allow {
			t.Errorf("the host: %+v", d)
		}
		w.close()
	})
}

// Gifts keep a reserve that danmaku cannot take, on whatever node.
func TestClusterFloors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - {name: r, action: [danmaku, gift], scope: room, rate: 10, burst: 100, floor: {danmaku: 40}, cluster: true}
`, time.Millisecond)
		ask := func(n *node, a limit.Action) bool {
			return n.gate.Decide(w.clock(), &limit.Request{Action: a, Room: "r"}, n.subject(limit.ScopeRoom, "r")).Verdict == limit.Allow
		}
		had := [2]int{}
		for i := range 200 {
			if ask(w.nodes[i%2], limit.Danmaku) {
				had[0]++
			}
		}
		for i := range 60 {
			if ask(w.nodes[i%2], limit.Gift) {
				had[1]++
			}
		}
		if had[0] < 60 || had[0] > 105 || had[1] < 40 {
			t.Errorf("danmaku %d, gifts %d", had[0], had[1])
		}
		w.close()
	})
}

// Likes are folded to what all nodes together have room for.
func TestClusterFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, `
rules:
  - {name: r, action: like, scope: room, rate: 1000, burst: 1000, cost: count, fold: true, cluster: true}
`, time.Millisecond)
		counted, start := int64(0), w.clock()
		for w.clock().Sub(start) < 5*time.Second {
			for _, n := range w.nodes {
				d := n.gate.Decide(w.clock(), &limit.Request{Action: limit.Like, Room: "r", Cost: 20}, n.subject(limit.ScopeRoom, "r"))
				if d.Verdict == limit.Reject {
					t.Fatalf("a like was refused: %+v", d)
				}
				counted += d.Counted
			}
			time.Sleep(2 * time.Millisecond)
		}
		t.Logf("counted %d of %d", counted, 6000)
		if counted > 6020 || counted < 6000*98/100 {
			t.Errorf("counted %d", counted)
		}
		w.close()
	})
}

// A rule in shadow counts what it would refuse over all nodes, and refuses nothing.
func TestClusterShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRule(", shadow: true"), time.Millisecond)
		w.saturate(3*time.Second, 5*time.Millisecond)
		would := int64(0)
		for _, n := range w.nodes {
			for _, c := range n.gate.Counts() {
				if c.Rule == "danmaku-room" && c.Outcome == "shadow_reject" {
					would += c.N
				}
			}
		}
		if kept := w.admitted() - would; kept < 1200*97/100 || kept > 1200 {
			t.Errorf("%d admitted, %d of them would not have been; want 1,200 that would", w.admitted(), would)
		}
		w.close()
	})
}

// Multiplied roles pay a part of a token each, over all nodes.
func TestClusterMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, `
rules:
  - {name: r, action: danmaku, scope: room, rate: 10, burst: 10, multiply: {host: 5}, cluster: true}
`, time.Millisecond)
		had := 0
		for i := range 80 {
			n := w.nodes[i%2]
			if n.gate.Decide(w.clock(), &limit.Request{Action: limit.Danmaku, Room: "r", Role: "host"}, n.subject(limit.ScopeRoom, "r")).Verdict == limit.Allow {
				had++
			}
		}
		if had < 50 || had > 80 {
			t.Errorf("%d of a host's 50", had)
		}
		w.close()
	})
}

// New rules at saturation, many times: the bound is that of the rules.
func TestClusterReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRule(""), time.Millisecond)
		var wg sync.WaitGroup
		wg.Go(func() { w.saturate(5*time.Second, 5*time.Millisecond) })
		for i := range 100 {
			time.Sleep(45 * time.Millisecond)
			spec, err := limit.Parse([]byte(strings.Replace(roomRule(""), "rules:", "version: "+string(rune('1'+i%9))+"\nrules:", 1)))
			if err != nil {
				t.Fatal(err)
			}
			spec.Version = int64(i + 1)
			rules, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range w.nodes {
				n.gate.Swap(rules)
			}
		}
		wg.Wait()
		w.bound(300, 300)
		if w.admitted() < 1800*98/100 {
			t.Errorf("admitted %d of 1,800", w.admitted())
		}
		w.close()
	})
}

// What has no form over all nodes is refused when it is loaded, by path.
func TestClusterRefusedAtLoad(t *testing.T) {
	for rule, path := range map[string]string{
		`{name: r, action: danmaku, scope: conn, rate: 1, burst: 1, cluster: true}`:                                                               "rules[0].cluster",
		`{name: r, action: danmaku, scope: room, rate: 1, per: 8784h, burst: 1000000000, cluster: true}`:                                          "rules[0].burst",
		`{name: r, action: danmaku, scope: room, rate: 1, burst: 1000000000000, multiply: {host: 2}, cluster: true}`:                              "rules[0].burst",
		`{name: r, action: danmaku, scope: room, algorithm: fixed_window, rate: 10, per: 10ms, cluster: true}`:                                    "rules[0].per",
		`{name: r, action: like, scope: room, algorithm: concurrency, burst: 3, cost: count, cluster: true}`:                                      "rules[0].cluster",
		`{name: r, action: [like, gift], scope: room, algorithm: concurrency, burst: 3, floor: {like: 1}, cluster: true}`:                         "rules[0].cluster",
		`{name: r, action: danmaku, scope: room, cluster: true, tiers: [{below: 10, rate: 7, per: 8783h, burst: 99999999}, {rate: 1, burst: 1}]}`: "rules[0].tiers[0].burst",
	} {
		spec, err := limit.Parse([]byte("rules:\n  - " + rule))
		if err != nil {
			t.Fatal(rule, err)
		}
		_, err = spec.Compile()
		faults, _ := err.(limit.Faults)
		if len(faults) != 1 || faults[0].Path != path {
			t.Errorf("%s: have %v, want a fault at %s", rule, err, path)
		}
	}
}
