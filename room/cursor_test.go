package room

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// twoClocks are two nodes on one bus; the second one's clock is ahead of the first one's by that much.
func twoClocks(t *testing.T, ahead time.Duration) (n1, n2 *world) {
	bus := newMemoryBus()
	unbound := func(c *Config) { c.Gate = gateOf(t, unlimited) }
	return newWorld(t, bus, unbound), newWorld(t, bus, func(c *Config) {
		unbound(c)
		c.Now = func() time.Time { return time.Now().Add(ahead) }
	})
}

// asOf is what a client sends: a new one its positions, an old one the numbers that it knows, moved on by each ts.
var asOf = map[string]func(c protocol.Cursor, seen []event) protocol.Cursor{
	"position": func(c protocol.Cursor, seen []event) protocol.Cursor {
		if len(seen) > 0 {
			c.Last, c.Chat = seen[len(seen)-1].MID, seen[len(seen)-1].TS
		}
		return c
	},
	"time": func(c protocol.Cursor, seen []event) protocol.Cursor {
		for _, e := range seen {
			c.Chat = max(c.Chat, e.TS)
		}
		return protocol.Cursor{Gift: c.Gift, Chat: c.Chat}
	},
}

// Whatever the nodes' clocks say, and whatever a message says of its time, a viewer that comes back gets what it missed,
// or is told that this is not known.
func TestNoClockMakesAResumeSkipThePresent(t *testing.T) {
	for form, cursor := range asOf {
		for _, ahead := range []time.Duration{0, 30 * time.Second, -30 * time.Second, 10 * time.Minute} {
			for _, before := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s, node 2 %v ahead, %d said before", form, ahead, before), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { comesBack(t, ahead, before, cursor) })
				})
			}
		}
	}
}

func comesBack(t *testing.T, ahead time.Duration, before int, cursor func(protocol.Cursor, []event) protocol.Cursor) {
	n1, n2 := twoClocks(t, ahead)
	host1, host2 := n1.join("demo", "host"), n2.join("demo", "host")
	a := n2.join("demo", "a") // where the clock is ahead
	for i := range before {
		host2.say(fmt.Sprint("before ", i))
	}
	time.Sleep(time.Second)
	seen := append(a.at("danmaku"), a.seen("danmaku")...)
	at := cursor(a.at("welcome")[0].Cursor, seen)
	a.Leave()
	time.Sleep(5 * time.Second)
	for i := range 5 {
		host1.say(fmt.Sprint("missed ", i))
	}
	time.Sleep(5 * time.Second)
	a = n1.join("demo", "a", resuming(at))
	got, whole := texts(a.at("danmaku")), a.at("welcome")[0].Recovered.Chat
	missing := 0
	for i := range 5 {
		if !slices.Contains(got, fmt.Sprint("missed ", i)) {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of 5 are missing (recovered.chat %t): %q", missing, whole, got)
	}
	if before > 0 && !whole {
		t.Errorf("all came, and recovered.chat is false: %+v", at)
	}
	n1.stop()
	n2.stop()
}

// A message that says it is from the future is one message more.
func TestAMessageFromTheFutureIsOneMessageMore(t *testing.T) {
	for form, cursor := range asOf {
		for _, ahead := range []time.Duration{30 * time.Second, 10 * time.Minute, 100 * 365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(form, " ", ahead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, other := twoClocks(t, 0)
					host, a := w.join("demo", "host"), w.join("demo", "a")
					host.say("before")
					future := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "future", Text: "future", TS: time.Now().Add(ahead).UnixMilli()})
					if err := w.bus.Publish(protocol.ClassDanmaku, "demo", future); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
					if got := texts(w.join("demo", "b").at("danmaku")); !slices.Equal(got, []string{"before", "future"}) {
						t.Errorf("a newcomer sees %q", got)
					}
					at := cursor(a.at("welcome")[0].Cursor, a.seen("danmaku"))
					a.Leave()
					for i := range 5 {
						host.say(fmt.Sprint(i))
					}
					time.Sleep(20 * time.Second)
					for _, n := range []*world{w, other} { // the second opens the room only now
						back := n.join("demo", "a", resuming(at))
						got := texts(back.at("danmaku"))
						if want := []string{"0", "1", "2", "3", "4"}; len(got) < 5 || !slices.Equal(got[len(got)-5:], want) || !back.at("welcome")[0].Recovered.Chat {
							t.Errorf("back, with %+v: %q, %+v", at, got, back.at("welcome")[0].Recovered)
						}
						back.Leave()
					}
					w.stop()
					other.stop()
				})
			})
		}
	}
}

// Who was where the ring is no more, or at a message that nobody else has, is told so; who was at a deleted one is not.
func TestAPositionIsFoundOrItIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited); c.Audience.HistoryCount = 10 })
		host := w.join("demo", "host", as(protocol.RoleHost))
		var mids []string
		for i := range 30 {
			mids = append(mids, host.say(fmt.Sprint(i)).MID)
			time.Sleep(10 * time.Millisecond)
		}
		host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionDelete, MID: mids[24]})
		time.Sleep(time.Second)
		now := time.Now().UnixMilli()
		for last, want := range map[string]bool{mids[29]: true, mids[24]: true, mids[20]: true, mids[19]: true, mids[18]: false, "elsewhere": false} {
			if got := w.join("demo", "v", resuming(protocol.Cursor{Last: last, Chat: now})).at("welcome")[0].Recovered.Chat; got != want {
				t.Errorf("last seen %s: recovered.chat %t", last, got)
			}
		}
		time.Sleep(6 * time.Minute)
		v := w.join("demo", "late", resuming(protocol.Cursor{Last: mids[25]}))
		if v.at("welcome")[0].Recovered.Chat || v.at("welcome")[0].Cursor.Last != mids[29] {
			t.Errorf("what is too old to be shown: %+v", v.at("welcome")[0])
		}
		if v = w.join("demo", "late", resuming(v.at("welcome")[0].Cursor)); !v.at("welcome")[0].Recovered.Chat {
			t.Errorf("nothing was said since: %+v", v.at("welcome")[0])
		}
		w.stop()
	})
}

// A gift's seq says nothing in another ledger, nor beyond the end of this one: that is told once.
func TestAGiftCursorIsOfItsLedger(t *testing.T) {
	bus := newMemoryBus()
	bus.ledgerID = "new"
	w := newWorld(t, bus, func(c *Config) { c.Gate = gateOf(t, unlimited) })
	host := w.join("demo", "host")
	for i := range 3 {
		host.give(fmt.Sprint(i), "rose", 1)
	}
	eventually(t, func() bool { return len(host.seen("gift")) == 3 })
	for _, c := range []struct {
		at    protocol.Cursor
		whole bool
		gifts int
	}{
		{protocol.Cursor{Gift: 1, Ledger: "new"}, true, 2},
		{protocol.Cursor{Gift: 1}, true, 2},
		{protocol.Cursor{Gift: 3, Ledger: "new"}, true, 0},
		{protocol.Cursor{Gift: 1, Ledger: "old"}, false, 0},
		{protocol.Cursor{Gift: 3, Ledger: "old"}, false, 0},
		{protocol.Cursor{Gift: 4, Ledger: "new"}, false, 0},
		{protocol.Cursor{Gift: 41}, false, 0},
	} {
		v := w.join("demo", "a", resuming(c.at))
		told := v.at("welcome")[0]
		if told.Recovered.Gift != c.whole || len(v.at("gift")) != c.gifts || told.Cursor.Gift != 3 || told.Cursor.Ledger != "new" {
			t.Errorf("%+v: %+v with %d gifts", c.at, told, len(v.at("gift")))
		}
		v.Leave()
		if v = w.join("demo", "a", resuming(told.Cursor)); !v.at("welcome")[0].Recovered.Gift {
			t.Errorf("%+v: told twice", c.at)
		}
		v.Leave()
	}
}

// Another node has shown what this one is about to show.
func TestAGiftAheadOfThisNodeIsWhole(t *testing.T) {
	bus := newMemoryBus()
	w := newWorld(t, bus, func(c *Config) { c.Gate = gateOf(t, unlimited) })
	host := w.join("demo", "host")
	bus.set(func(b *memoryBus) { b.unheard = true })
	host.give("1", "rose", 1)
	v := w.join("demo", "a", resuming(protocol.Cursor{Gift: 1}))
	if told := v.at("welcome")[0]; !told.Recovered.Gift || told.Cursor.Gift != 0 {
		t.Errorf("%+v", told)
	}
	bus.set(func(b *memoryBus) { b.down = true })
	if told := w.join("demo", "b", resuming(protocol.Cursor{Gift: 1})).at("welcome")[0]; told.Recovered.Gift {
		t.Errorf("the ledger does not answer, and %+v", told)
	}
}
