package fanout

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// A node is sent a room's messages while it has members there, each once however many they are, and none of other rooms.
func TestOnlyRoomsWithMembersAreSent(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	quiet := func(id string) Config { // no messages but the rooms'
		cfg := nodeConfig(s, id)
		cfg.AnnounceEvery, cfg.NodeTimeout, cfg.ProbeEvery, cfg.ProbeTimeout = never, 2*never, never, 2*never
		return cfg
	}
	n1, n2 := open(t, quiet("n1")), open(t, quiet("n2"))
	eventually(t, "nodes know each other", func() bool { return len(n1.Presence.Nodes()) == 1 && len(n2.Presence.Nodes()) == 1 })
	l1, _ := subscribe(t, n1, "demo")
	l2, other := subscribe(t, n2, "other")
	const each = 200
	round := func() (got1, got2 uint64) {
		if err := n2.Link.Live.Flush(); err != nil { // the server knows what n2 wants
			t.Fatal(err)
		}
		in1, in2 := n1.Link.Live.Stats().InMsgs, n2.Link.Live.Stats().InMsgs
		for i := range each {
			if err := n1.Feeds.Publish(protocol.ClassDanmaku, "demo", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		for range each {
			receive(t, l1.events)
		}
		if err := n2.Link.Live.Flush(); err != nil { // whatever was sent to n2 before has arrived
			t.Fatal(err)
		}
		return n1.Link.Live.Stats().InMsgs - in1, n2.Link.Live.Stats().InMsgs - in2
	}
	if a, b := round(); a != each || b != 0 {
		t.Errorf("%d messages to the node with members, %d to the other; want %d and none", a, b, each)
	}
	demo, err := n2.Feeds.Subscribe(testContext(t), "demo", l2)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := round(); a != each || b != each {
		t.Errorf("%d and %d messages, want %d each", a, b, each)
	}
	demo.Close()
	other.Close()
	if a, b := round(); a != each || b != 0 {
		t.Errorf("after leaving %d and %d messages, want %d and none", a, b, each)
	}
}

// CASES 12: 20 senders with 500 numbered gifts each, into two nodes, of which one cannot follow: all 10,000 arrive on
// both, each once and in order; what the slow one lost on the way is counted exactly, and was read from the ledger.
func TestTenThousandGifts(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1 := node(t, s, "n1")
	cfg := nodeConfig(s, "n2")
	cfg.PendingMessages = 100
	n2 := open(t, cfg)
	l1, _ := subscribe(t, n1, "demo")
	slow := &slowGifts{listener: newListener(), hold: make(chan struct{})}
	sub, err := n2.Feeds.Subscribe(testContext(t), "demo", slow)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	const senders, each = 20, 500
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			f := []*Fabric{n1, n2}[sender%2]
			for i := range each {
				if sender == 0 && i == each/2 {
					close(slow.hold)
				}
				id := fmt.Sprint(sender, ".", i)
				for { // as patient clients do: the same id until it is acknowledged
					_, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", id, []byte(id))
					if err == nil {
						break
					}
					if !errors.Is(err, link.ErrUnknown) && !errors.Is(err, link.ErrRefused) {
						t.Error(err)
						break
					}
				}
			}
		})
	}
	wg.Wait()
	for i, l := range []*listener{l1, slow.listener} {
		next, prev := [senders]int{}, uint64(0)
		for range senders * each {
			g := receive(t, l.gifts)
			var sender, number int
			if _, err := fmt.Sscanf(string(g.Event), "%d.%d", &sender, &number); err != nil || g.Prev != prev || g.Seq <= prev || next[sender] != number {
				t.Fatalf("node %d: gift %d %q after %d, said to be after %d; %d of that sender: %v", i+1, g.Seq, g.Event, prev, g.Prev, next[sender], err)
			}
			prev, next[sender] = g.Seq, number+1
		}
	}
	if err := n2.Link.Live.Flush(); err != nil {
		t.Fatal(err)
	}
	n2.bus.CountDropped()
	dropped := counted(t, n2, "liveroom_bus_dropped_total", "pending")
	if dropped == 0 {
		t.Error("nothing was dropped: the slow node was not slow")
	}
	t.Logf("%.0f of %d deliveries were dropped and read from the ledger", dropped, senders*each)
}

// slowGifts does nothing before hold is closed.
type slowGifts struct {
	*listener
	hold chan struct{}
}

func (h *slowGifts) Gift(g protocol.StoredGift) {
	<-h.hold
	h.listener.Gift(g)
}

// CASES 17: gifts at a steady rate over a restart of the broker: each that is acknowledged arrives once on all nodes, and
// what is sent again with its id is stored once.
func TestGiftsOverABrokerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natsServerAt(t, dir, -1)
	port := s.Addr().(*net.TCPAddr).Port
	cfg := func(id string) Config {
		c := nodeConfig(s, id)
		c.StoreTimeout = time.Second
		return c
	}
	n1, n2 := open(t, cfg("n1")), open(t, cfg("n2"))
	l1, _ := subscribe(t, n1, "demo")
	l2, _ := subscribe(t, n2, "demo")
	gifts := startGifts(t, n1, n2)
	eventually(t, "gifts flow", func() bool { return gifts.count() > 20 })
	for range 2 {
		stopNats(s)
		before := gifts.count()
		eventually(t, "the loss is noticed", func() bool { return !n1.Link.Connected() && !n2.Link.Connected() })
		s = natsServerAt(t, dir, port)
		eventually(t, "gifts flow again", func() bool { return gifts.count() > before+20 })
	}
	expectAll(t, n1, gifts.stop(), l1, l2)
}

// A gift whose re-publishing reached nobody else, the last one of its room: the other node learns of it from presence alone.
func TestGiftThatWasNotHeard(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	n1 := node(t, s, "n1")
	cfg := nodeConfig(s, "n2")
	cfg.URLs, cfg.ProbeTimeout, cfg.NodeTimeout = []string{p.url()}, never, never // it must not find out by a reconnect
	n2 := open(t, cfg)
	has(n1, map[string]int{"demo": 1})
	l1, _ := subscribe(t, n1, "demo")
	l2, _ := subscribe(t, n2, "demo")
	first := storeGift(t, n1, "demo", "u", "1", "heard")
	receive(t, l1.gifts)
	receive(t, l2.gifts)
	p.swallow.Store(true)
	r := storeGift(t, n1, "demo", "u", "2", "not heard")
	receive(t, l1.gifts)
	eaten := p.eaten.Load()
	// What n1 announces after the gift is swallowed too: n2 learns that it has missed something, and asks.
	eventually(t, "a beat of presence was swallowed", func() bool { return p.eaten.Load() > eaten+500 })
	if len(l2.gifts) > 0 {
		t.Fatal("it was heard")
	}
	p.swallow.Store(false)
	if g := receive(t, l2.gifts); g.Seq != r.Seq || g.Prev != first.Seq {
		t.Errorf("%+v, want %d after %d", g, r.Seq, first.Seq)
	}
}

// CASES 21: the same cursor twice brings nothing the second time, and who has received nothing gets what it missed.
func TestResume(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	n1, n2 := node(t, s, "n1"), node(t, s, "n2")
	_, sub := subscribe(t, n1, "demo")
	cursor := sub.Opening().LastGift
	sub.Close()
	for i := range 3 {
		storeGift(t, n2, "demo", "u", fmt.Sprint(i), "x")
		storeGift(t, n2, "other", "u", fmt.Sprint(i), "x")
	}
	for i, want := range []int{3, 0} {
		gifts, err := n1.Store.Gifts.Gifts(testContext(t), "demo", cursor, 100)
		if err != nil || len(gifts) != want {
			t.Fatalf("time %d: %d gifts, %v; want %d", i+1, len(gifts), err, want)
		}
		for _, g := range gifts {
			if g.Prev != cursor {
				t.Errorf("gift %d follows %d, want %d", g.Seq, g.Prev, cursor)
			}
			cursor = g.Seq
		}
	}
}

// While nothing comes through, a node knows since when, and it is not well again by what was held up on the way.
func TestHeardSelf(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	cfg := nodeConfig(s, "n1")
	cfg.URLs, cfg.ProbeEvery, cfg.ProbeTimeout = []string{p.url()}, 20*time.Millisecond, 300*time.Millisecond
	f := open(t, cfg)
	opened := time.Now()
	eventually(t, "it hears itself", func() bool { return f.Link.Healthy() && f.Link.HeardSelf().After(opened) })
	p.hold()
	held := time.Now()
	eventually(t, "it hears nothing", func() bool { return !f.Link.Healthy() })
	if heard := f.Link.HeardSelf(); heard.After(held.Add(cfg.ProbeEvery)) {
		t.Errorf("heard %v after nothing passed", heard.Sub(held))
	}
	p.release()
	p.cut()
	eventually(t, "it hears itself again", func() bool { return f.Link.Healthy() && f.Link.HeardSelf().After(held.Add(cfg.ProbeTimeout)) })
}
