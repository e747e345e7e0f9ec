package fanout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"liveroom/fanout/presence"
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
	t.Parallel()
	for _, c := range []struct{ first, second bool }{{false, false}, {false, true}, {true, false}} {
		t.Run(fmt.Sprint(c.first, c.second), func(t *testing.T) {
			t.Parallel()
			s := natsServer(t)
			cfg := nodeConfig(s, "n1")
			cfg.Shared = c.first
			n1 := open(t, cfg)
			cfg = nodeConfig(s, "n2")
			cfg.Shared = c.second
			if err := refused(t, cfg); !errors.Is(err, presence.ErrNotShared) || !strings.Contains(err.Error(), "n1") {
				t.Error(err)
			}
			if err := n1.Presence.Conflict(); err != nil {
				t.Error("the first:", err)
			}
			if err := n1.Health(); err != nil {
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
	if err := refused(t, nodeConfig(s, "n1")); !errors.Is(err, presence.ErrNodeTaken) {
		t.Error(err)
	}
	if err := n1.Presence.Conflict(); err != nil {
		t.Error("the first:", err)
	}
	kill(n1)
	n1 = openUnclosed(t, nodeConfig(s, "n1"))
	closeNow(t, n1)
	closeNow(t, openUnclosed(t, nodeConfig(s, "n1")))
}

// Of nodes that start at the same moment, and so do not see each other at the start, the first one is left.
func TestNodesThatStartAtOnce(t *testing.T) {
	t.Parallel()
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
				} else if !errors.Is(r.err, presence.ErrNodeTaken) && !errors.Is(r.err, presence.ErrNotShared) {
					t.Error(r.err)
				}
			}
			left := func() (n int) {
				for _, f := range living {
					if f.Presence.Conflict() == nil {
						n++
					}
				}
				return n
			}
			eventually(t, "one is left", func() bool { return left() == 1 })
			first := living[0]
			for _, f := range living {
				if f.Store.Incarnation() < first.Store.Incarnation() {
					first = f
				}
			}
			if err := first.Presence.Conflict(); err != nil {
				t.Error("the first one ends:", err)
			}
			if name == "one id" { // the goodbyes of the others have not taken it away
				has(first, map[string]int{"demo": 1})
				eventually(t, "the first one is seen", func() bool { return bystander.Presence.Online("demo").Sessions == 1 })
			}
			for _, f := range living {
				if f != first {
					receive(t, f.Presence.Ended())
					if f.Health() == nil {
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
	eventually(t, "n1 is gone", func() bool { return len(other.Presence.Nodes()) == 0 })
	young, began := node(t, s, "n1"), time.Now()
	eventually(t, "n1 is let in", func() bool { return time.Since(began) > 2*cfg.NodeTimeout })
	p.release()
	receive(t, old.Presence.Ended())
	if err := old.Presence.Conflict(); !errors.Is(err, presence.ErrNodeTaken) {
		t.Error(err)
	}
	if err := young.Presence.Conflict(); err != nil {
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
		return func() bool { return f.Presence.Online("demo").Sessions == online && len(f.Presence.Nodes()) == nodes }
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
		if n := n1.Presence.NodeCount(); n != 3 {
			t.Errorf("the one that is cut off counts %d nodes", n)
		}
		p.release()
		p.cut() // what nats.go would find with its own pings
		eventually(t, "all see all again", all)
	}
}
