package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// hold has a viewer say something that waits for staff.
func (v *viewer) hold(text string) protocol.Ack {
	v.w.t.Helper()
	req := &protocol.Request{Op: protocol.OpDanmaku, ID: fmt.Sprintf("c%d", v.w.ids.Add(1)), Text: text}
	m := protocol.Said{MID: v.w.hub.cfg.MIDs.Next(), User: v.who.Load().shown(), TS: v.w.hub.cfg.Now().UnixMilli(), Request: req}
	by := Speaker{who: v.who.Load(), user: v.user, place: v.place, conn: v.conn, echo: v.fakeSession}
	return v.room.withhold(context.Background(), &by, m, Cause{By: "filter", Detail: "a word"})
}

func (v *viewer) decide(a protocol.Action, mid string) event {
	v.w.t.Helper()
	return v.moderate(a, func(r *protocol.Request) { r.MID = mid })
}

func states(events []event) (out []string) {
	for _, e := range events {
		out = append(out, e.MID+" "+e.State+" "+e.By)
	}
	return out
}

func wantHeld(t testing.TB, ack protocol.Ack) string {
	t.Helper()
	if ack.Code != protocol.Degraded || ack.Err == nil || ack.Err.Reason != protocol.ReasonHeld || ack.MID == "" {
		t.Fatalf("want 202 held, have %+v", ack)
	}
	return ack.MID
}

// Staff on every node is told of what waits and of who decided; one of two decides; viewers see what is released where its instant says.
func TestAHeldMessageIsDecidedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
		defer n2.stop()
		defer n1.stop()
		m1, m2 := n1.join("demo", "m1", as(protocol.RoleModerator)), n2.join("demo", "m2", as(protocol.RoleModerator))
		a, b := n1.join("demo", "a"), n2.join("demo", "b")
		kept := wantHeld(t, a.hold("one"))
		time.Sleep(time.Second)
		wantCode(t, b.say("two"), protocol.OK, "")
		gone := wantHeld(t, a.hold("three"))
		time.Sleep(time.Second)
		if got := texts(b.seen("danmaku")); !slices.Equal(got, []string{"two"}) {
			t.Fatalf("a viewer saw %v", got)
		}
		wantCode(t, m1.decide(protocol.ActionRelease, kept), protocol.OK, "")
		if e := m2.decide(protocol.ActionDrop, kept); e.Reason != "decided" || e.Code != 409 {
			t.Errorf("the slower one is told %+v", e)
		}
		wantCode(t, m2.decide(protocol.ActionDrop, gone), protocol.OK, "")
		wantCode(t, m1.decide(protocol.ActionRelease, "nowhere"), protocol.NotFound, protocol.ReasonNotFound)
		time.Sleep(time.Second)
		for _, m := range []*viewer{m1, m2} {
			want := []string{kept + " waiting ", gone + " waiting ", kept + " released m1", gone + " dropped m2"}
			if got := states(m.told("held")); !slices.Equal(got, want) {
				t.Errorf("staff is told %v", got)
			}
		}
		if got := states(a.told("held")); !slices.Equal(got, []string{gone + " dropped "}) {
			t.Errorf("the sender is told %v", got)
		}
		if got := states(b.told("held")); len(got) != 0 {
			t.Errorf("a viewer is told %v", got)
		}
		for _, v := range []*viewer{a, b} {
			got := v.seen("danmaku")
			if !slices.Equal(texts(got), []string{"two", "one"}) || !got[1].Released || got[1].MID != kept || got[1].TS >= got[0].TS {
				t.Errorf("seen: %+v", got)
			}
		}
		late := n2.join("demo", "late") // sees what was said where it was said
		if got := texts(late.at("danmaku")); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("history: %v", got)
		}
		back := n2.join("demo", "back", resuming(protocol.Cursor{Last: b.seen("danmaku")[0].MID})) // left before the release
		if got := texts(back.at("danmaku")); !slices.Contains(got, "one") {
			t.Errorf("resumed: %v", got)
		}
		if n := strings.Count(strings.Join(bus.notes, "\n"), `{"ev":"held"`); n != 4 { // told as it was held, and as it was decided
			t.Errorf("%d entries of the journal: %v", n, bus.notes)
		}
		audit := strings.Join(bus.audit, "\n")
		for _, said := range []string{`"by":"m1","role":"moderator","action":"release","user":"a","mid":"` + kept + `","text":"one"`, `"action":"drop"`} {
			if !strings.Contains(audit, said) {
				t.Errorf("the audit lacks %s:\n%s", said, audit)
			}
		}
		if n := n1.hub.queue.len() + n2.hub.queue.len(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// Nobody releases what is his own, or decides on somebody of his rank or above.
func TestHeldMessagesAreDecidedByThoseAbove(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	host, m, other, v := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "m", as(protocol.RoleModerator)), w.join("demo", "o", as(protocol.RoleModerator)), w.join("demo", "v")
	of := wantHeld(t, m.hold("mine"))
	wantCode(t, v.decide(protocol.ActionRelease, of), protocol.Forbidden, protocol.ReasonForbidden)
	wantCode(t, m.decide(protocol.ActionRelease, of), protocol.Forbidden, protocol.ReasonForbidden)
	wantCode(t, other.decide(protocol.ActionRelease, of), protocol.Forbidden, protocol.ReasonForbidden)
	wantCode(t, m.decide(protocol.ActionDrop, of), protocol.OK, "")
	of = wantHeld(t, m.hold("mine again"))
	wantCode(t, host.decide(protocol.ActionRelease, of), protocol.OK, "")
}

// What nobody decides on is decided by the room's policy as it was, also by a node that came later and does not have the room, once.
func TestHeldMessagesEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1 := newWorld(t, bus, nil)
		host, a := n1.join("demo", "host", as(protocol.RoleHost)), n1.join("demo", "a")
		gone := wantHeld(t, a.hold("dropped")) // after ten minutes
		short := protocol.Review{Seconds: 60, Then: protocol.ActionRelease}
		wantCode(t, host.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Review: &short} }), protocol.OK, "")
		if got := host.room.Info().Review; got != short {
			t.Errorf("the room says %+v", got)
		}
		kept := wantHeld(t, a.hold("released"))
		time.Sleep(62 * time.Second)
		if got := texts(a.seen("danmaku")); !slices.Equal(got, []string{"released"}) {
			t.Fatalf("seen: %v", got)
		}
		n1.stop()
		n2 := newWorld(t, bus, nil)
		defer n2.stop()
		if !n2.hub.queue.any("demo") {
			t.Fatal("what waits is not known after a restart")
		}
		time.Sleep(10 * time.Minute)
		if m, _, err := n2.hub.readHeld(t.Context(), "demo", gone); err != nil || m.State != protocol.HeldDropped || m.By != "" {
			t.Errorf("%+v, %v", m, err)
		}
		if m, _, err := n2.hub.readHeld(t.Context(), "demo", kept); err != nil || m.State != protocol.HeldReleased || !m.Shown {
			t.Errorf("%+v, %v", m, err)
		}
		if n := strings.Count(strings.Join(bus.audit, "\n"), "nobody decided in time"); n != 2 {
			t.Errorf("%d entries of the audit: %v", n, bus.audit)
		}
	})
}

// A node that ends between a decision and the showing of it leaves it to another; who has seen it sees it once.
func TestWhatWasReleasedIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		w := newWorld(t, bus, nil)
		defer w.stop()
		m, a := w.join("demo", "m", as(protocol.RoleModerator)), w.join("demo", "a")
		mid := wantHeld(t, a.hold("hello"))
		bus.set(func(b *memoryBus) { b.mute = true }) // shown, and the word of it is not stored
		wantCode(t, m.decide(protocol.ActionRelease, mid), protocol.OK, "")
		time.Sleep(time.Second)
		bus.set(func(b *memoryBus) { b.mute = false })
		if !w.hub.queue.any("demo") {
			t.Fatal("nobody remembers that it may not be shown")
		}
		time.Sleep(15 * time.Second)
		if got := texts(a.seen("danmaku")); !slices.Equal(got, []string{"hello"}) || w.hub.queue.any("demo") {
			t.Errorf("seen: %v, %d wait", got, w.hub.queue.len())
		}
	})
}

// A room holds ten thousand; one more is refused, in words, and takes nothing from other rooms.
func TestHeldMessagesAreBounded(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	var mid string
	for i := range maxHeld {
		mid = wantHeld(t, a.hold(fmt.Sprint("spam ", i)))
	}
	ack := a.hold("one more")
	if ack.Code != protocol.Unavailable || ack.Err.Reason != protocol.ReasonTryLater || ack.Err.RetryAfter < heldRetry || !strings.Contains(ack.Err.Detail, "as many messages wait") {
		t.Errorf("%+v", ack.Err)
	}
	wantHeld(t, w.join("other", "a").hold("elsewhere"))
	wantCode(t, w.join("demo", "host", as(protocol.RoleHost)).decide(protocol.ActionDrop, mid), protocol.OK, "")
	wantHeld(t, a.hold("there is a place"))
	w.bus.set(func(b *memoryBus) { b.down = true })
	if ack := w.join("third", "a").hold("not stored"); ack.Code != protocol.Unavailable || w.hub.queue.any("third") {
		t.Errorf("%+v", ack)
	}
}
