package fanout

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"slices"
	"sync"
	"testing"
	"time"

	"liveroom/protocol"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout/presence"
	"liveroom/fanout/store"
)

// node opens a node on a server of the test.
func node(t *testing.T, s *server.Server, id string) *Fabric {
	t.Helper()
	return open(t, nodeConfig(s, id))
}

func nodeConfig(s *server.Server, id string) Config {
	return Config{
		NodeID: id, URLs: []string{s.ClientURL()}, Shared: true, SweepEvery: never,
		AnnounceEvery: 50 * time.Millisecond, NodeTimeout: 500 * time.Millisecond,
	}
}

// has makes the node announce these counts.
func has(f *Fabric, rooms map[string]int) {
	f.Presence.Announce(func() iter.Seq2[string, presence.Crowd] {
		return func(yield func(string, presence.Crowd) bool) {
			for room, n := range rooms {
				if !yield(room, presence.Crowd{Sessions: n, People: n}) {
					return
				}
			}
		}
	})
}

// CASES 13: what one sender publishes keeps its order everywhere. Between senders on different nodes NATS promises none.
func TestSendersKeepTheirOrderOnAllNodes(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	l1, _ := subscribe(t, n1, "demo")
	l2, _ := subscribe(t, n2, "demo")
	const senders, each = 4, 500
	var wg sync.WaitGroup
	for sender := range senders {
		f := []*Fabric{n1, n2}[sender%2]
		wg.Go(func() {
			for i := range each {
				if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", fmt.Append(nil, sender, " ", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, l := range []*listener{l1, l2} {
		next := [senders]int{}
		for range senders * each {
			e := receive(t, l.events)
			var sender, number int
			if _, err := fmt.Sscanf(e, "danmaku %d %d", &sender, &number); err != nil || next[sender] != number {
				t.Fatalf("node %d: %q after %d of that sender: %v", i+1, e, next[sender], err)
			}
			next[sender]++
		}
	}
}

// CASES 22: a node that joins after another's death has all gifts, in order, none twice.
func TestResumeOnAnotherNode(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := openUnclosed(t, nodeConfig(s, "n1")), node(t, s, "n2")
	l, _ := subscribe(t, n1, "demo")
	var want []uint64
	for i := range 10 {
		want = append(want, storeGift(t, n1, "demo", "u", fmt.Sprint(i), "x").Seq)
		receive(t, l.gifts)
	}
	kill(n1)
	_, sub := subscribe(t, n2, "demo")
	gifts, err := n2.Store.Gifts.Gifts(testContext(t), "demo", want[3], 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(gifts) != 6 || gifts[0].Prev != want[3] || gifts[5].Seq != want[9] || sub.Opening().LastGift != want[9] {
		t.Errorf("gifts after %d: %+v, opening %+v", want[3], gifts, sub.Opening())
	}
}

// kill ends a node without a goodbye.
func kill(f *Fabric) {
	f.shut()
}

// CASES 10: a killed node's users are gone in time, and its reused id hides nothing.
func TestPresence(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := openUnclosed(t, nodeConfig(s, "n1")), node(t, s, "n2")
	has(n1, map[string]int{"demo": 100, "other": 1})
	has(n2, map[string]int{"demo": 7})
	eventually(t, "n2 sees n1", func() bool {
		return n2.Presence.Online("demo").Sessions == 100 && n2.Presence.Online("other").Sessions == 1
	})
	eventually(t, "n1 sees n2", func() bool { return n1.Presence.Online("demo").Sessions == 7 })
	if got := n2.Presence.Nodes(); !slices.Equal(got, []string{"n1"}) || n2.Presence.NodeCount() != 2 {
		t.Errorf("nodes %v, %d", got, n2.Presence.NodeCount())
	}

	kill(n1)
	killed := time.Now()
	eventually(t, "n1 is gone", func() bool { return n2.Presence.Online("demo").Sessions == 0 && len(n2.Presence.Rooms()) == 0 })
	// The exact bound is the roster model's; here a busy machine may take its time.
	if took := time.Since(killed); took > n2.cfg.NodeTimeout+3*time.Second {
		t.Errorf("gone after %v, timeout %v", took, n2.cfg.NodeTimeout)
	}

	eventually(t, "one node is left", func() bool { return n2.Presence.NodeCount() == 1 })

	first := n1.Store.Incarnation()
	n1 = openUnclosed(t, nodeConfig(s, "n1"))
	if n1.Store.Incarnation() <= first {
		t.Errorf("incarnation %d after %d", n1.Store.Incarnation(), first)
	}
	has(n1, map[string]int{"demo": 3})
	eventually(t, "n1 is back", func() bool { return n2.Presence.Online("demo").Sessions == 3 })

	kill(n1) // and at once another under its id
	n1 = openUnclosed(t, nodeConfig(s, "n1"))
	has(n1, map[string]int{"other": 5})
	eventually(t, "only the new one counts", func() bool {
		return n2.Presence.Online("demo").Sessions == 0 && n2.Presence.Online("other").Sessions == 5
	})

	closeNow(t, n1)
	eventually(t, "its goodbye is heard", func() bool { return n2.Presence.Online("other").Sessions == 0 && n2.Presence.NodeCount() == 1 })
}

// A node with more rooms than one announcement holds is counted whole.
func TestPresenceInParts(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	slow := func(id string) Config { // a busy machine needs a while for so many rooms
		cfg := nodeConfig(s, id)
		cfg.AnnounceEvery, cfg.NodeTimeout = 300*time.Millisecond, wait
		return cfg
	}
	n1, n2 := open(t, slow("n1")), open(t, slow("n2"))
	rooms := map[string]int{}
	for i := range 2*4096 + 1 {
		rooms[fmt.Sprint("room", i)] = 1 + i%9
	}
	has(n1, rooms)
	eventually(t, "all rooms are known", func() bool { return len(n2.Presence.Rooms()) == len(rooms) })
	if got := n2.Presence.Rooms(); len(got) != len(rooms) || got["room7"].Sessions != rooms["room7"] {
		t.Error("counts differ")
	}
}

func TestSettingsReachAllNodes(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	l, _ := subscribe(t, n2, "demo")
	ctx := testContext(t)
	rev, err := n1.Store.Settings.PutSettings(ctx, "demo", []byte("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l.settings); got != (setting{"one", rev}) {
		t.Errorf("%+v", got)
	}
	for name, put := range map[string]func() (uint64, error){
		"create again": func() (uint64, error) { return n2.Store.Settings.PutSettings(ctx, "demo", []byte("x"), 0) },
		"old revision": func() (uint64, error) { return n2.Store.Settings.PutSettings(ctx, "demo", []byte("x"), rev+9) },
	} {
		if _, err := put(); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	rev2, err := n2.Store.Settings.PutSettings(ctx, "demo", []byte("two"), rev)
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l.settings); got != (setting{"two", rev2}) {
		t.Errorf("%+v", got)
	}
	if payload, r, err := n1.Store.Settings.Settings(ctx, "demo"); err != nil || string(payload) != "two" || r != rev2 {
		t.Errorf("%q %d %v", payload, r, err)
	}
}

func TestLikesOfAllNodesAreSummed(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	l, _ := subscribe(t, n2, "demo")
	const each = 200
	var wg sync.WaitGroup
	for _, f := range []*Fabric{n1, n2} {
		wg.Go(func() {
			for range each {
				if err := f.Store.Likes.AddLikes("demo", 3); err != nil {
					t.Error(err)
				}
				if err := f.Store.Likes.Flush(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for total := int64(0); total < 2*each*3; {
		next := receive(t, l.likes)
		if next <= total {
			t.Fatalf("likes fell from %d to %d", total, next)
		}
		total = next
	}
	if total, err := n1.Store.Likes.Likes(testContext(t), "demo"); err != nil || total != 2*each*3 {
		t.Errorf("likes %d, %v", total, err)
	}
}
