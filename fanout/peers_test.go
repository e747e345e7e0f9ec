package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// refused opens a node that must not be let in, and returns why.
func refused(t *testing.T, cfg Config) error {
	t.Helper()
	f, err := Open(testContext(t), cfg, testLog(t))
	if err == nil {
		closeNow(t, f)
		t.Fatal("opened")
	}
	return err
}

func TestSecondNodeNeedsASharedQuotaStore(t *testing.T) {
	for _, c := range []struct{ first, second bool }{{false, false}, {false, true}, {true, false}} {
		t.Run(fmt.Sprint(c.first, c.second), func(t *testing.T) {
			t.Parallel()
			s := natsServer(t)
			cfg := nodeConfig(s, "n1")
			cfg.Shared = c.first
			n1 := open(t, cfg)
			cfg = nodeConfig(s, "n2")
			cfg.Shared = c.second
			if err := refused(t, cfg); !errors.Is(err, ErrNotShared) || !strings.Contains(err.Error(), "n1") {
				t.Error(err)
			}
			if err := n1.Conflict(); err != nil {
				t.Error("the first:", err)
			}
			if err := n1.Health().Err(); err != nil {
				t.Error("the first:", err)
			}
		})
	}
}

// A node id that lives is taken; one that crashed or said goodbye is free at once.
func TestNodeIDInUse(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1 := openUnclosed(t, nodeConfig(s, "n1"))
	node(t, s, "n2")
	if err := refused(t, nodeConfig(s, "n1")); !errors.Is(err, ErrNodeTaken) {
		t.Error(err)
	}
	if err := n1.Conflict(); err != nil {
		t.Error("the first:", err)
	}
	kill(n1)
	n1 = openUnclosed(t, nodeConfig(s, "n1"))
	closeNow(t, n1)
	closeNow(t, openUnclosed(t, nodeConfig(s, "n1")))
}

// Of nodes that start at the same moment, and so do not see each other at the start, the first one is left.
func TestNodesThatStartAtOnce(t *testing.T) {
	for name, change := range map[string]func(i int, c *Config){
		"one id":     func(_ int, c *Config) { c.NodeID = "n" },
		"not shared": func(_ int, c *Config) { c.Shared = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natsServer(t)
			var bystander *Fabric
			if name == "one id" {
				bystander = node(t, s, "bystander")
			}
			const nodes = 4
			type result struct {
				f   *Fabric
				err error
			}
			results := make(chan result, nodes)
			for i := range nodes {
				cfg := nodeConfig(s, fmt.Sprint("n", i))
				cfg.NodeTimeout = wait // young for the whole of the test, however slow the machine
				change(i, &cfg)
				go func() {
					f, err := Open(testContext(t), cfg, testLog(t))
					results <- result{f, err}
				}()
			}
			var living []*Fabric
			for range nodes {
				r := receive(t, results)
				if r.err == nil {
					living = append(living, r.f)
					defer closeNow(t, r.f)
				} else if !errors.Is(r.err, ErrNodeTaken) && !errors.Is(r.err, ErrNotShared) {
					t.Error(r.err)
				}
			}
			left := func() (n int) {
				for _, f := range living {
					if f.Conflict() == nil {
						n++
					}
				}
				return n
			}
			eventually(t, "one is left", func() bool { return left() == 1 })
			first := living[0]
			for _, f := range living {
				if f.incarnation < first.incarnation {
					first = f
				}
			}
			if err := first.Conflict(); err != nil {
				t.Error("the first one ends:", err)
			}
			if name == "one id" { // the goodbyes of the others have not taken it away
				has(first, map[string]int{"demo": 1})
				eventually(t, "the first one is seen", func() bool { return bystander.Online("demo") == 1 })
			}
			for _, f := range living {
				if f != first {
					receive(t, f.Ended())
					if f.Health().Err() == nil {
						t.Error("a node that must end is well")
					}
				}
			}
		})
	}
}

// Who was silent while another was let in under its id ends, not the one that was let in.
func TestSilentNodeLosesItsID(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	cfg := nodeConfig(s, "n1")
	cfg.URLs = []string{p.url()}
	old := open(t, cfg)
	p.hold()
	other := node(t, s, "n2")
	eventually(t, "n1 is gone", func() bool { return len(other.Nodes()) == 0 })
	young := node(t, s, "n1")
	eventually(t, "n1 is let in", func() bool { return time.Since(young.began) > 2*cfg.NodeTimeout })
	p.release()
	receive(t, old.Ended())
	if err := old.Conflict(); !errors.Is(err, ErrNodeTaken) {
		t.Error(err)
	}
	if err := young.Conflict(); err != nil {
		t.Error("the one that was let in:", err)
	}
}

// Both sides of a partition see nobody in time, and each other again when it heals.
func TestPartition(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	cfg := nodeConfig(s, "n1")
	cfg.URLs, cfg.ProbeEvery, cfg.ProbeTimeout = []string{p.url()}, 20*time.Millisecond, 200*time.Millisecond
	n1, n2, n3 := open(t, cfg), node(t, s, "n2"), node(t, s, "n3")
	has(n1, map[string]int{"demo": 1})
	has(n2, map[string]int{"demo": 20})
	has(n3, map[string]int{"demo": 300})
	sees := func(f *Fabric, online, nodes int) func() bool {
		return func() bool { return f.Online("demo") == online && len(f.Nodes()) == nodes }
	}
	all := func() bool { return sees(n1, 320, 2)() && sees(n2, 301, 2)() && sees(n3, 21, 2)() }
	eventually(t, "all see all", all)
	for range 2 {
		p.hold()
		cut := time.Now()
		eventually(t, "the one that is cut off sees nobody", sees(n1, 0, 0))
		eventually(t, "the others do not see it", func() bool { return sees(n2, 300, 1)() && sees(n3, 20, 1)() })
		if took := time.Since(cut); took > cfg.NodeTimeout+3*time.Second { // the exact bound is the roster model's
			t.Errorf("took %v", took)
		}
		if n := n1.NodeCount(); n != 3 {
			t.Errorf("the one that is cut off counts %d nodes", n)
		}
		p.release()
		p.cut() // what nats.go would find with its own pings
		eventually(t, "all see all again", all)
	}
}

// A node that starts knows the others' rooms at once, and one that missed a change asks.
func TestPresenceOfChanges(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	slow := func(id string) Config {
		cfg := nodeConfig(s, id)
		cfg.AnnounceEvery, cfg.NodeTimeout = 5*time.Second, 2*wait
		return cfg
	}
	n1 := open(t, slow("n1"))
	has(n1, map[string]int{"a": 1, "b": 2})
	n2 := open(t, slow("n2"))
	eventually(t, "the new node knows", func() bool { return n2.Online("a") == 1 && n2.Online("b") == 2 })
	has(n1, map[string]int{"b": 3, "c": 4}) // asks for a beat, which says the changes
	eventually(t, "changes arrive", func() bool { return n2.Online("a") == 0 && n2.Online("b") == 3 && n2.Online("c") == 4 })
	n2.roster.mu.Lock()
	p := n2.roster.peers["n1"]
	p.beat-- // as if the last one had been lost
	n2.roster.changeLocked(p, map[string]announced{"c": {9}})
	n2.roster.mu.Unlock()
	has(n1, map[string]int{"b": 3, "c": 4})
	eventually(t, "the loss is repaired", func() bool { return n2.Online("c") == 4 })
}

// What presence costs with many rooms: bytes and time for one beat.
func BenchmarkPresence(b *testing.B) {
	const rooms = 10_000
	for name, changed := range map[string]int{"whole": rooms, "tenth": rooms / 10, "quiet": 0} {
		b.Run(name, func(b *testing.B) {
			said, now := map[string]announced{}, map[string]announced{}
			for i := range rooms {
				room, v := fmt.Sprintf("room-%08d", i), announced{int64(i % 500), int64(1_000_000 + i), int64(i), int64(i * 37)}
				said[room] = v
				if i < changed {
					v[3]++
				}
				now[room] = v
			}
			f := &Fabric{cfg: Config{NodeID: "n1"}}
			bytes := 0
			for b.Loop() {
				bytes = 0
				parts := cutParts(now, said, false)
				for i, part := range parts {
					bytes += len(encoded(b, announcement{identity: f.identity(), Beat: 1, Part: i, Parts: len(parts), Rooms: part}))
				}
			}
			b.ReportMetric(float64(bytes), "B/beat")
			b.ReportMetric(float64(bytes)/2, "B/s") // a beat each two seconds
		})
	}
}

func encoded(b *testing.B, a announcement) []byte {
	body, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	return body
}
