package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// ways are the ways of a store to be away.
var ways = []struct {
	name   string
	set    func(*link)
	unset  func(*link)
	writes bool // calls arrive
}{
	{"silent", func(l *link) { l.silent.Store(true) }, func(l *link) { l.silent.Store(false) }, false},
	{"answers lost", func(l *link) { l.deafened.Store(true) }, func(l *link) { l.deafened.Store(false) }, true},
	{"read only", func(l *link) { err := errReadOnly; l.fail.Store(&err) }, func(l *link) { l.fail.Store(nil) }, false},
}

func roomRule(more string) string {
	return `
rules:
  - {name: danmaku-room, action: danmaku, scope: room, rate: 300, burst: 300, cluster: true` + more + `}
`
}

// However the store is away, each decision answers within the budget, three
// nodes go on at a third of the rate each, and nothing bursts when it is back.
func TestOutageShare(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 3, roomRule(""), time.Millisecond)
				start := w.clock()
				const before, during, after = 3 * time.Second, 8 * time.Second, 5 * time.Second
				var wg sync.WaitGroup
				for _, n := range w.nodes {
					for range 4 {
						wg.Go(func() {
							for w.clock().Sub(start) < before+during+after {
								asked := w.clock()
								n.room("r", 1)
								if took := w.clock().Sub(asked); took > 31*time.Millisecond {
									t.Errorf("a decision took %s", took)
								}
								time.Sleep(10 * time.Millisecond)
							}
						})
					}
				}
				time.Sleep(before)
				way.set(w.link)
				time.Sleep(time.Second)
				for _, n := range w.nodes {
					if _, reason, yes := n.cluster.Degraded(); !yes || reason == "" {
						t.Errorf("not degraded within a second")
					}
					if s := n.cluster.Stats(); s.Breaker == cluster.BreakerClosed {
						t.Errorf("breaker %s", s.Breaker)
					}
				}
				had := w.admitted()
				time.Sleep(during - time.Second)
				if got, want := w.admitted()-had, int64(300*(during-time.Second)/time.Second); got < want*97/100 || got > want+3 {
					t.Errorf("admitted %d while away, want %d", got, want)
				}
				way.unset(w.link)
				wg.Wait()
				for _, n := range w.nodes {
					if _, _, yes := n.cluster.Degraded(); yes {
						t.Error("still degraded")
					}
				}
				w.bound(300, 300)
				most := 300 + 300*int64((before+during+after)/time.Second)
				t.Logf("admitted %d of %d", w.admitted(), most)
				if w.admitted() < most*93/100 {
					t.Errorf("admitted %d of %d", w.admitted(), most)
				}
				w.close()
			})
		})
	}
}

// After an outage in a quiet room the store hears of what was spent meanwhile.
func TestOutageDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, roomRule(""), time.Millisecond)
		w.nodes[0].room("r", 1)
		w.link.silent.Store(true)
		time.Sleep(2 * time.Second)
		had := 0
		for _, n := range w.nodes {
			for range 150 {
				if n.room("r", 1).Verdict == limit.Allow {
					had++
				}
			}
		}
		if had != 300 {
			t.Errorf("the nodes' parts were %d together, want 300", had)
		}
		w.link.silent.Store(false)
		time.Sleep(600 * time.Millisecond)
		for range 10 {
			for _, n := range w.nodes {
				for range 50 {
					n.room("r", 1)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		w.bound(300, 300)
		w.close()
	})
}

// CASES 26: the grace counts from the first failure, and a store that comes and
// goes does not begin it anew.
func TestOutageOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, roomRule(", on_outage: open, grace: 3s"), time.Millisecond)
		n := w.nodes[0]
		n.room("r", 1)
		w.link.silent.Store(true)
		start := w.clock()
		perSecond := make([]int, 8)
		for w.clock().Sub(start) < 8*time.Second {
			if n.room("r", 1).Verdict == limit.Allow {
				perSecond[min(w.clock().Sub(start)/time.Second, 7)]++
			}
			time.Sleep(time.Millisecond)
			away := w.clock().Sub(start)
			w.link.silent.Store(away%(2*time.Second) < 1800*time.Millisecond)
		}
		t.Log(perSecond)
		for i, had := range perSecond {
			if open := i < 2; open && had < 700 || i > 3 && had > 700 {
				t.Errorf("second %d: %d admitted", i, had)
			}
		}
		w.close()
	})
}

func TestOutageClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, roomRule(", on_outage: closed"), time.Millisecond)
		n := w.nodes[0]
		n.room("r", 1)
		time.Sleep(time.Second)
		w.link.silent.Store(true)
		for i := range 20 {
			d := n.room("r", 1)
			if d.Verdict != limit.Reject || !d.Unavailable || d.RetryAfter <= 0 {
				t.Fatalf("message %d: %+v", i, d)
			}
			time.Sleep(50 * time.Millisecond)
		}
		w.link.silent.Store(false)
		time.Sleep(time.Second)
		if d := n.room("r", 1); d.Verdict != limit.Allow || d.Unavailable {
			t.Errorf("after it: %+v", d)
		}
		w.close()
	})
}

// CASES 28: a server that was made read only and then writes again is used
// within five seconds.
func TestOutageEndsSoon(t *testing.T) {
	for _, way := range ways {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 1, roomRule(", on_outage: closed"), time.Millisecond)
			n := w.nodes[0]
			n.room("r", 1)
			way.set(w.link)
			time.Sleep(time.Minute)
			way.unset(w.link)
			start := w.clock()
			for n.room("r", 1).Unavailable {
				time.Sleep(10 * time.Millisecond)
			}
			if took := w.clock().Sub(start); took > time.Second {
				t.Errorf("%s: back after %s", way.name, took)
			}
			w.close()
		})
	}
}

// A store that hangs for less than the breaker's patience, now and then, as a
// busy machine's does: nothing goes over the bound.
func TestOutageHiccups(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 3, roomRule(""), time.Millisecond)
				start := w.clock()
				var wg sync.WaitGroup
				for _, n := range w.nodes {
					for range 4 {
						wg.Go(func() { n.flood("r", 7*time.Millisecond, start.Add(10*time.Second)) })
					}
				}
				for range 40 {
					time.Sleep(180 * time.Millisecond)
					way.set(w.link)
					time.Sleep(20 * time.Millisecond)
					way.unset(w.link)
				}
				wg.Wait()
				w.bound(300, 300)
				t.Logf("admitted %d of %d", w.admitted(), 3300)
				w.close()
			})
		})
	}
}

// The store restarts empty, or an older replica takes over, under load. The
// second exceeds at most by what the unreplicated interval granted, once.
func TestOutageLosses(t *testing.T) {
	losses := []struct {
		name string
		do   func(*link)
		more int64
	}{
		{"empty", func(l *link) { l.Wipe("a") }, 0},
		{"replica", func(l *link) { l.FailOver("a", 300*time.Millisecond, 0) }, 90},
		{"clock forward", func(l *link) { l.Step("a", time.Hour) }, 0},
		{"clock back", func(l *link) { l.Step("a", -time.Hour) }, 0},
	}
	for _, loss := range losses {
		t.Run(loss.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 3, roomRule(""), time.Millisecond)
				w.link.Replicate(time.Second)
				start := w.clock()
				var wg sync.WaitGroup
				for _, n := range w.nodes {
					for range 4 {
						wg.Go(func() { n.flood("r", 7*time.Millisecond, start.Add(10*time.Second)) })
					}
				}
				time.Sleep(5 * time.Second)
				loss.do(w.link)
				wg.Wait()
				w.bound(300+loss.more, 300)
				t.Logf("admitted %d of %d", w.admitted(), 3300)
				if w.admitted() < 3300*85/100 {
					t.Errorf("admitted %d", w.admitted())
				}
				w.close()
			})
		})
	}
}

// A node that is paused beyond its leases spends nothing of them afterwards.
func TestOutagePausedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 2, roomRule(""), time.Millisecond)
		start := w.clock()
		var wg sync.WaitGroup
		wg.Go(func() {
			for w.clock().Sub(start) < 5*time.Second {
				w.nodes[0].flood("r", time.Millisecond, w.clock().Add(300*time.Millisecond))
				time.Sleep(400 * time.Millisecond)
			}
		})
		wg.Go(func() { w.nodes[1].flood("r", time.Millisecond, start.Add(5*time.Second)) })
		wg.Wait()
		w.bound(300, 300)
		w.close()
	})
}

// A node that dies holding tokens takes them with it; the others go on.
func TestOutageDeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 3, roomRule(""), time.Millisecond)
		start := w.clock()
		var wg sync.WaitGroup
		for i, n := range w.nodes {
			wg.Go(func() { n.flood("r", time.Millisecond, start.Add(time.Duration(i+1)*2*time.Second)) })
			wg.Go(func() {
				time.Sleep(time.Duration(i+1) * 2 * time.Second)
				n.dead.Store(true)
				n.cluster.Close(cancelled())
			})
		}
		wg.Wait()
		w.bound(300, 300)
		if most := int64(300 + 6*300); w.admitted() < most*95/100 {
			t.Errorf("admitted %d of %d", w.admitted(), most)
		}
	})
}

// Every label is there from the start.
func TestClusterStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1, roomRule(""), time.Millisecond)
		seen := map[string]bool{}
		for _, c := range w.nodes[0].cluster.Stats().Calls {
			seen[c.Op+" "+c.Result] = true
		}
		for _, op := range []string{"room", "user", "other"} {
			for _, result := range []string{"ok", "error", "timeout"} {
				if !seen[fmt.Sprint(op, " ", result)] {
					t.Errorf("%s %s is missing", op, result)
				}
			}
		}
		w.close()
	})
}

// A shard whose keys another has taken over is nobody's outage, also when it was
// away before.
func TestOutageShardMoves(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newTown(t, 1, roomRule(", on_outage: closed"), time.Millisecond)
			n := w.nodes[0]
			n.room("r", 1)
			if away {
				w.link.silent.Store(true)
				for range 20 {
					n.room("r", 1)
					time.Sleep(50 * time.Millisecond)
				}
			}
			w.link.moved.Store(true)
			w.link.silent.Store(false)
			time.Sleep(time.Second)
			if d := n.room("r", 1); d.Verdict != limit.Allow {
				t.Errorf("away %t: %+v", away, d)
			}
			if _, reason, yes := n.cluster.Degraded(); yes {
				t.Errorf("away %t: degraded: %s", away, reason)
			}
			w.close()
		})
	}
}
