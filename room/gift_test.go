package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func TestGiftHasOneEffectAndOneSequence(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	first := a.give("g1", "rose", 3)
	wantCode(t, first, protocol.OK, "")
	if first.Seq != 1 || first.MID != "g1" || first.Duplicate {
		t.Fatalf("first: %+v", first)
	}
	again := a.give("g1", "rose", 3)
	if again.Seq != 1 || !again.Duplicate || again.TS != first.TS || w.bus.stores != 1 {
		t.Fatalf("again, after %d stores: %+v", w.bus.stores, again)
	}
	wantCode(t, a.give("g1", "rose", 4), protocol.Conflict, protocol.ReasonConflict)
	wantCode(t, a.give("g2", "yacht", 1), protocol.NotFound, protocol.ReasonNotFound)

	// A new node remembers nothing but what the ledger has.
	next := newWorld(t, w.bus, nil)
	b := next.join("demo", "a")
	again = b.give("g1", "rose", 3)
	if again.Seq != 1 || !again.Duplicate || again.TS != first.TS {
		t.Fatalf("after a restart: %+v", again)
	}
	wantCode(t, b.give("g1", "rocket", 1), protocol.Conflict, protocol.ReasonConflict)
	fresh := newWorld(t, w.bus, nil)
	wantCode(t, fresh.join("demo", "a").give("g1", "rocket", 1), protocol.Conflict, protocol.ReasonConflict)
	eventually(t, func() bool { return len(a.seen("gift")) == 1 })
	if g := a.seen("gift")[0]; g.Seq != 1 || g.Prev != 0 || g.Gift != "rose" || g.Count != 3 || g.Combo != 3 || g.MID != first.MID {
		t.Fatalf("event: %+v", g)
	}
}

func TestGiftInFlightIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.gate = make(chan struct{})
		w := newWorld(t, bus, func(c *Config) { c.GiftTimeout = 10 * time.Second })
		tabs := []*viewer{w.join("demo", "a"), w.join("demo", "a"), w.join("demo", "a")}
		var done sync.WaitGroup
		for _, v := range tabs {
			done.Go(func() {
				v.Receive(&protocol.Request{Op: protocol.OpGift, ID: "g1", Gift: "rose", Count: 1})
				v.given.Wait()
			})
		}
		synctest.Wait()
		wantCode(t, w.join("demo", "a").give("g1", "rocket", 1), protocol.Conflict, protocol.ReasonConflict)
		close(bus.gate)
		done.Wait()
		firsts := 0
		for _, v := range tabs {
			acks := v.told("ack")
			last := acks[len(acks)-1]
			if last.Code != 200 || last.Seq != 1 {
				t.Fatalf("want seq 1 for all, have %+v", acks)
			}
			if !last.Duplicate {
				firsts++
			}
		}
		if bus.stores != 1 || firsts != 1 {
			t.Fatalf("want one store and one first answer, have %d, %d", bus.stores, firsts)
		}
		w.stop()
	})
}

// A session's gifts wait beside what else it says, and are admitted and lined up one after the other.
func TestGiftsOfASessionKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gifts = 20
		bus := newMemoryBus()
		bus.gate = make(chan struct{})
		w := newWorld(t, bus, nil)
		v := w.join("demo", "a")
		for i := range gifts {
			v.Receive(&protocol.Request{Op: protocol.OpGift, ID: fmt.Sprint("g", i), Gift: "rose", Count: 1})
		}
		v.Receive(&protocol.Request{Op: protocol.OpGift, ID: "none", Gift: "no such", Count: 1})
		synctest.Wait()
		if acks := v.told("ack"); len(acks) != 1 || acks[0].ID != "none" {
			t.Errorf("while the ledger is busy: %+v", acks)
		}
		v.Receive(&protocol.Request{Op: protocol.OpDanmaku, ID: "d", Text: "meanwhile"})
		v.fakeSession.Release()
		if acks := v.told("ack"); len(acks) != 2 || acks[1].ID != "d" || acks[1].Code != int(protocol.OK) {
			t.Errorf("danmaku: %+v", acks)
		}
		if got := strings.Join(bus.lined, " "); got != "g0 g1 g2 g3 g4 g5 g6 g7 g8 g9 g10 g11 g12 g13 g14 g15 g16 g17 g18 g19" {
			t.Error("lined up as", got)
		}
		close(bus.gate)
		v.given.Wait()
		if acks := v.told("ack"); len(acks) != gifts+2 {
			t.Errorf("%d answers", len(acks))
		}
		w.stop()
	})
}

// Who waits for a first answer that does not come in time is told that nobody knows.
func TestGiftInFlightForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		bus.gate = make(chan struct{})
		w := newWorld(t, bus, func(c *Config) { c.AnswersKept = 2 })
		a, b := w.join("demo", "a"), w.join("demo", "a")
		a.Receive(&protocol.Request{Op: protocol.OpGift, ID: "g1", Gift: "rose", Count: 1})
		b.Receive(&protocol.Request{Op: protocol.OpGift, ID: "g2", Gift: "rose", Count: 1})
		synctest.Wait()
		e := w.join("demo", "a").give("g3", "rose", 1)
		wantCode(t, e, protocol.Unavailable, protocol.ReasonTryLater)
		if e.Outcome != "refused" {
			t.Fatalf("a third of two in flight: %+v", e)
		}
		e = w.join("demo", "a").give("g1", "rose", 1)
		a.given.Wait()
		b.given.Wait()
		for _, e := range []event{e, a.told("ack")[0], b.told("ack")[0]} {
			wantCode(t, e, protocol.Unavailable, protocol.ReasonTryLater)
			if e.Outcome != "unknown" {
				t.Fatalf("want unknown, have %+v", e)
			}
		}
		close(bus.gate)
		wantCode(t, a.give("g1", "rose", 1), protocol.OK, "")
		w.stop()
	})
}

// An unknown outcome is stored again under the same id, and the gate is not asked a second time.
func TestGiftWithUnknownOutcomeMayBeSentAgain(t *testing.T) {
	bus := newMemoryBus()
	w := newWorld(t, bus, func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: gift, action: gift, scope: user, rate: 0, burst: 1}
`)
	})
	a, host := w.join("demo", "a"), w.join("demo", "h", as(protocol.RoleHost))
	bus.set(func(b *memoryBus) { b.mute = true })
	e := a.give("g1", "rose", 1)
	wantCode(t, e, protocol.Unavailable, protocol.ReasonTryLater)
	if e.Outcome != "unknown" || e.Retry <= 0 {
		t.Fatalf("want an unknown outcome and a time, have %+v", e)
	}
	// Neither a refusing bus nor a closed room may now claim that nothing happened.
	bus.set(func(b *memoryBus) { b.mute, b.down = false, true })
	if e = a.give("g1", "rose", 1); e.Outcome != "unknown" {
		t.Fatalf("still nobody knows, but: %+v", e)
	}
	bus.set(func(b *memoryBus) { b.down = false })
	wantCode(t, host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionClose}), protocol.OK, "")
	e = a.give("g1", "rose", 1)
	wantCode(t, e, protocol.OK, "")
	if e.Seq != 1 || !e.Duplicate || len(bus.ledger) != 1 {
		t.Fatalf("%d gifts in the ledger, %+v", len(bus.ledger), e)
	}
	wantCode(t, a.give("g2", "rose", 1), protocol.Conflict, protocol.ReasonRoomClosed)
}

func TestGiftWhileTheBusIsDownIsRefusedWithoutEffect(t *testing.T) {
	bus := newMemoryBus()
	w := newWorld(t, bus, nil)
	a := w.join("demo", "a")
	a.give("g0", "rose", 2)
	bus.set(func(b *memoryBus) { b.down = true })
	e := a.give("g1", "rose", 1)
	wantCode(t, e, protocol.Unavailable, protocol.ReasonTryLater)
	if e.Outcome != "refused" {
		t.Fatalf("want refused, have %+v", e)
	}
	wantCode(t, a.say("danmaku go on"), protocol.OK, "")
	eventually(t, func() bool { return len(a.seen("danmaku")) == 1 })
	bus.set(func(b *memoryBus) { b.down = false })
	wantCode(t, a.give("g1", "rose", 1), protocol.OK, "")
	eventually(t, func() bool { return len(a.seen("gift")) == 2 })
	if g := a.seen("gift")[1]; g.Combo != 3 {
		t.Fatalf("a refused gift is no part of the combo: %+v", g)
	}
}

// A gift that the store would come to too late, or that has no place to wait for the platform, is refused before it has spent anything; one
// whose outcome is unknown stays so.
func TestGiftThatMayNotWait(t *testing.T) {
	refused := func(t *testing.T, e event, outcome protocol.Outcome) {
		t.Helper()
		wantCode(t, e, protocol.Unavailable, protocol.ReasonTryLater)
		if e.Outcome != string(outcome) || e.Retry <= 0 {
			t.Fatalf("want %s and a time, have %+v", outcome, e)
		}
	}
	bus := newMemoryBus()
	w := newWorld(t, bus, func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: gift, action: gift, scope: user, rate: 0, burst: 2}
`)
	})
	a := w.join("demo", "a")
	late := func(v bool) { bus.set(func(b *memoryBus) { b.late = v }) }
	late(true)
	for i := range 3 {
		refused(t, a.give(fmt.Sprint("late", i), "rose", 1), protocol.OutcomeRefused)
	}
	late(false)
	wantCode(t, a.give("g1", "rose", 1), protocol.OK, "")
	bus.set(func(b *memoryBus) { b.mute = true })
	refused(t, a.give("g2", "rose", 1), protocol.OutcomeUnknown)
	late(true)
	refused(t, a.give("g2", "rose", 1), protocol.OutcomeUnknown)
	if len(bus.ledger) != 2 {
		t.Errorf("the ledger has %d gifts", len(bus.ledger))
	}

	f := &till{answers: []error{nil}}
	b := newWorld(t, newMemoryBus(), func(c *Config) { c.GiftsBy, c.Till = protocol.GiftsByHook, f }).join("demo", "b")
	b.fakeSession.full = true
	refused(t, b.give("g1", "rose", 1), protocol.OutcomeRefused)
	b.fakeSession.full = false
	wantCode(t, b.give("g1", "rose", 1), protocol.OK, "")
}

// TestWhoMayGive, by who pays: a back end always, since it has seen to that.
func TestWhoMayGive(t *testing.T) {
	by := func(who protocol.GiftAuthority) *world {
		return newWorld(t, newMemoryBus(), func(c *Config) { c.GiftsBy, c.Till = who, &till{} })
	}
	backend := by("")
	for _, user := range []string{"ann", "guest-1"} {
		wantCode(t, backend.join("demo", user).give("g1", "rose", 1), protocol.Forbidden, protocol.ReasonByBackend)
	}
	if backend.bus.stores != 0 {
		t.Fatal("the ledger was asked")
	}
	ack := backend.hub.Speak(t.Context(), "demo", Caller{Who: Identity{User: "ann", Role: protocol.RoleViewer}}, &protocol.Request{Op: protocol.OpGift, ID: "g2", Gift: "rose", Count: 1})
	if ack.Code != protocol.OK || backend.bus.stores != 1 {
		t.Errorf("by a back end: %+v", ack)
	}
	wantCode(t, by(protocol.GiftsByHook).join("demo", "guest-1").give("g1", "rose", 1), protocol.Forbidden, protocol.ReasonForbidden)
	for _, user := range []string{"ann", "guest-1"} {
		wantCode(t, by(protocol.GiftsOpen).join("demo", user).give("g1", "rose", 1), protocol.OK, "")
	}
}

// till answers in turn.
type till struct {
	answers []error
	sales   []Sale
}

func (f *till) Sell(_ context.Context, s *Sale) (protocol.Receipt, error) {
	f.sales = append(f.sales, *s)
	err := f.answers[len(f.sales)-1]
	return protocol.Receipt{Seq: 7, Duplicate: err == nil && len(f.sales) > 1}, err
}

// TestASocketsGiftIsSold: what the platform refuses had no effect, and what nobody knows is asked again under the same id.
func TestASocketsGiftIsSold(t *testing.T) {
	funds := &protocol.Error{Reason: protocol.ReasonFunds, Detail: "top up"}
	f := &till{answers: []error{funds, fmt.Errorf("no answer"), ErrRefused, nil}}
	w := newWorld(t, newMemoryBus(), func(c *Config) { c.GiftsBy, c.Till = protocol.GiftsByHook, f })
	a := w.join("demo", "ann")
	wantCode(t, a.give("g1", "rocket", 2), protocol.Unpaid, protocol.ReasonFunds)
	for range 2 { // the second refusal says nothing about the first try
		if e := a.give("g2", "rocket", 2); e.Reason != string(protocol.ReasonTryLater) || e.Outcome != "unknown" {
			t.Errorf("told %+v", e)
		}
	}
	wantCode(t, a.give("g2", "rocket", 2), protocol.OK, "")
	if s := f.sales[3]; len(f.sales) != 4 || s.Room != "demo" || s.ID != "g2" || s.Price != 100 || s.Gift.User.ID != "ann" || s.Gift.Count != 2 || s.Gift.Combo != 2 {
		t.Errorf("sold: %+v", f.sales)
	}
	if w.bus.stores != 0 {
		t.Error("the ledger was asked past the till")
	}
	if err := (Config{GiftsBy: protocol.GiftsByHook, Bus: w.bus, Gate: gateOf(t, "")}).Validate(); err == nil {
		t.Error("a hook without a till is taken")
	}
}

func TestCombosGoOnWithinSecondsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a")
		a.give("1", "rose", 3)
		time.Sleep(4 * time.Second)
		a.give("2", "rose", 3)
		a.give("3", "rocket", 1)
		time.Sleep(5 * time.Second)
		a.give("4", "rose", 1)
		time.Sleep(time.Second)
		var combos []int
		for _, g := range a.seen("gift") {
			combos = append(combos, g.Combo)
		}
		if !slices.Equal(combos, []int{3, 6, 1, 1}) {
			t.Fatalf("combos: %v", combos)
		}
		w.stop()
	})
}

// The room never shows a gift twice nor one before another that it has shown.
func TestGiftsNeverGoBackwards(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	f := (*feed)(a.room)
	for _, seq := range []uint64{1, 2, 2, 1, 5, 4, 6} {
		f.Gift(protocol.StoredGift{Seq: seq, Prev: seq - 1, Event: protocol.AppendGift(nil, protocol.Gift{Gift: "rose", Count: 1})})
	}
	eventually(t, func() bool { return len(a.seen("gift")) == 4 })
	var seqs []uint64
	for _, g := range a.seen("gift") {
		seqs = append(seqs, g.Seq)
	}
	if !slices.Equal(seqs, []uint64{1, 2, 5, 6}) {
		t.Fatalf("seqs: %v", seqs)
	}
}

// CASES 21: the same cursor twice brings nothing the second time; who received nothing and missed three gets three.
func TestResumeBringsWhatWasMissed(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited); c.ResumeGifts = 5 })
	host := w.join("demo", "host")
	a := w.join("demo", "a")
	start := a.at("welcome")[0]
	if start.Cursor.Gift != 0 || start.Cursor.Chat == 0 || !start.Recovered.Gift || !start.Recovered.Chat {
		t.Fatalf("first welcome: %+v", start)
	}
	a.Leave()
	for i := range 3 {
		host.give(fmt.Sprint(i), "rose", 1)
		host.say(fmt.Sprint("text ", i))
	}
	eventually(t, func() bool { return len(host.seen("gift")) == 3 && len(host.seen("danmaku")) == 3 })

	a = w.join("demo", "a", resuming(start.Cursor))
	second := a.at("welcome")[0]
	if got := len(a.at("gift")); got != 3 || !second.Recovered.Gift || second.Cursor.Gift != 3 {
		t.Fatalf("want the three gifts, have %d, %+v", got, second)
	}
	if got := texts(a.at("danmaku")); len(got) != 3 || !second.Recovered.Chat {
		t.Fatalf("want the three danmaku, have %q, %+v", got, second)
	}
	for range 2 {
		a.Leave()
		a = w.join("demo", "a", resuming(second.Cursor))
		if got := a.at("gift"); len(got) != 0 || !a.at("welcome")[0].Recovered.Gift {
			t.Fatalf("nothing was missed, but: %+v", got)
		}
	}
	for i := range 6 {
		host.give(fmt.Sprint("more", i), "rose", 1)
	}
	eventually(t, func() bool { return len(host.seen("gift")) == 9 })
	a = w.join("demo", "a", resuming(second.Cursor))
	third := a.at("welcome")[0]
	if len(a.at("gift")) != 0 || third.Recovered.Gift || third.Cursor.Gift != 9 {
		t.Fatalf("too far back: want recovered.gift false and where to go on from, have %+v", third)
	}
}

func TestChatIsRecoveredOnlyAsFarAsItIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate = gateOf(t, unlimited)
			c.Audience.HistoryCount = 10
			c.Audience.ResumeOverlap = time.Second
		})
		host := w.join("demo", "host")
		a := w.join("demo", "a")
		for i := range 30 {
			host.say(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		now := time.Now().UnixMilli()
		v := w.join("demo", "b", resuming(protocol.Cursor{Chat: now - 6000}))
		if got := texts(v.at("danmaku")); len(got) != 7 || !v.at("welcome")[0].Recovered.Chat {
			t.Fatalf("want the five missed, the last seen and one of overlap, have %q", got)
		}
		v = w.join("demo", "c", resuming(protocol.Cursor{Chat: now - 20_000}))
		if got := texts(v.at("danmaku")); len(got) != 10 || v.at("welcome")[0].Recovered.Chat {
			t.Fatalf("want what is kept and recovered.chat false, have %q", got)
		}
		if v := w.join("demo", "gifts-only", resuming(protocol.Cursor{Gift: 1})); !v.at("welcome")[0].Recovered.Chat {
			t.Fatal("no danmaku were asked for, and recovered.chat is false")
		}
		if v = w.join("demo", "d"); len(v.at("danmaku")) != 10 || v.at("welcome")[0].Cursor.Chat != now-1000 {
			t.Fatalf("a newcomer: %+v", v.at("welcome")[0])
		}
		time.Sleep(10 * time.Minute)
		if v = w.join("demo", "e"); len(v.at("danmaku")) != 0 {
			t.Fatalf("ten minutes later: %q", texts(v.at("danmaku")))
		}
		_ = a
		w.stop()
	})
}
