package room

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func TestLikesAreFoldedAndNeverFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.likes["demo"] = 1000
		w := newWorld(t, bus, func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a")
		if got := a.at("welcome")[0].Room.Likes; got != 1000 {
			t.Fatalf("welcome: want 1000 likes, have %d", got)
		}
		for range 100 {
			a.like(10)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		events := a.seen("like")
		if len(events) < 9 || len(events) > 12 {
			t.Fatalf("ten seconds of likes: want about one event per second, have %d", len(events))
		}
		total := int64(1000)
		for _, e := range events {
			total += e.Delta
			if e.Total != total {
				t.Fatalf("deltas and totals disagree: %+v", events)
			}
		}
		if total != 2000 || bus.total("demo") != 2000 {
			t.Fatalf("want 2000, shown %d, stored %d", total, bus.total("demo"))
		}
		(*feed)(a.room).Likes(1500) // late
		time.Sleep(2 * time.Second)
		if got := a.room.Summary().Likes; got != 2000 || len(a.seen("like")) != len(events) {
			t.Fatalf("a late total was taken: %d", got)
		}
		w.stop()
	})
}

func TestLikesWaitForTheBusAndAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.down = true
		w := newWorld(t, bus, func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a")
		a.like(7)
		a.Leave()
		time.Sleep(time.Minute)
		if rooms, _ := w.hub.sizes(); rooms != 1 {
			t.Fatal("the room went with likes in hand")
		}
		bus.set(func(b *memoryBus) { b.down = false })
		time.Sleep(2 * time.Second)
		if bus.total("demo") != 7 {
			t.Fatalf("want 7 likes, have %d", bus.total("demo"))
		}
		a = w.join("demo", "b")
		a.like(1)
		a.like(1)
		w.stop() // hands over the rest at once
		if bus.total("demo") != 9 {
			t.Fatalf("after close: want 9 likes, have %d", bus.total("demo"))
		}
	})
}

func TestLikesCountedInPart(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: like, action: like, scope: user, rate: 0, burst: 13, cost: count, fold: true}
`)
	})
	a := w.join("demo", "a")
	wantCode(t, a.like(10), protocol.OK, "")
	e := a.like(10)
	wantCode(t, e, protocol.Degraded, protocol.ReasonFolded)
	if e.Counted != 3 {
		t.Fatalf("want 3 of 10, have %+v", e)
	}
}

func TestOnlineIsToldOnChangeAndSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var elsewhere atomic.Int64
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Elsewhere = func(string) Others { return Others{Sessions: int(elsewhere.Load())} } })
		a := w.join("demo", "a")
		time.Sleep(time.Minute)
		if got := a.seen("online"); len(got) != 0 {
			t.Fatalf("alone, and told by the welcome: %+v", got)
		}
		for i := range 20 {
			w.join("demo", string(rune('b'+i)))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		counts := a.seen("online")
		if len(counts) != 2 || counts[0].Count != 2 || counts[1].Count != 21 {
			t.Fatalf("want one event at once and one two seconds later, have %+v", counts)
		}
		time.Sleep(time.Minute)
		elsewhere.Store(100)
		time.Sleep(2 * time.Second)
		if counts = a.seen("online"); len(counts) != 3 || counts[2].Count != 121 {
			t.Fatalf("want those of other nodes, have %+v", counts)
		}
		w.stop()
	})
}
