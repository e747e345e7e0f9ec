package room

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func (v *viewer) moderate(a protocol.Action, change func(*protocol.Request)) event {
	v.w.t.Helper()
	req := protocol.Request{Op: protocol.OpModerate, Action: a}
	if change != nil {
		change(&req)
	}
	return v.ask(req)
}

func target(user string, seconds int) func(*protocol.Request) {
	return func(r *protocol.Request) { r.User, r.Seconds = user, seconds }
}

func TestOnlyHostsModeratorsAndAdminsModerate(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	for role, code := range map[protocol.Role]protocol.Code{
		protocol.RoleViewer: protocol.Forbidden, protocol.RoleService: protocol.Forbidden,
		protocol.RoleHost: protocol.OK, protocol.RoleModerator: protocol.OK, protocol.RoleAdmin: protocol.OK,
	} {
		v := w.join("demo", "as-"+string(role), as(role))
		if e := v.moderate(protocol.ActionMute, target("u-"+string(role), 60)); e.Code != int(code) {
			t.Errorf("%s: want %d, have %+v", role, code, e)
		}
	}
}

// A mute holds on every node and over a restart, ends by itself, and its user is told.
func TestMuteHoldsEverywhereUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
		host := n1.join("demo", "host", as(protocol.RoleHost))
		a1, a2, b := n1.join("demo", "a"), n2.join("demo", "a"), n2.join("demo", "b")
		wantCode(t, host.moderate(protocol.ActionMute, target("a", 60)), protocol.OK, "")
		for i, v := range []*viewer{a1, a2} {
			if got := v.told("muted"); len(got) != 1 || got[0].Seconds != 60 {
				t.Fatalf("node %d: want one muted of 60 s, have %+v", i+1, got)
			}
			e := v.say("let me")
			wantCode(t, e, protocol.Forbidden, protocol.ReasonMuted)
			if e.Retry < 60_001 || e.Retry > 62_001 {
				t.Fatalf("want the rest of the mute, have %+v", e)
			}
			wantCode(t, v.like(1), protocol.OK, "")
		}
		wantCode(t, b.say("I may"), protocol.OK, "")
		if got := b.told("muted"); len(got) != 0 {
			t.Fatalf("told to somebody else: %+v", got)
		}
		n3 := newWorld(t, bus, nil)
		wantCode(t, n3.join("demo", "a").say("elsewhere"), protocol.Forbidden, protocol.ReasonMuted)
		time.Sleep(61 * time.Second)
		wantCode(t, a1.say("again"), protocol.OK, "")

		wantCode(t, host.moderate(protocol.ActionMute, target("a", 60)), protocol.OK, "")
		wantCode(t, host.moderate(protocol.ActionUnmute, target("a", 0)), protocol.OK, "")
		wantCode(t, a2.say("unmuted"), protocol.OK, "")
		if got := a2.told("muted"); len(got) != 3 || got[2].Seconds != 0 {
			t.Fatalf("want the end told, have %+v", got)
		}
		for _, n := range []*world{n1, n2, n3} {
			n.stop()
		}
	})
}

// CASES 15, in part: a ban cuts live sockets on every node and keeps them out until it ends.
func TestBanCutsLiveSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
		host, a := n1.join("demo", "host", as(protocol.RoleHost)), n2.join("demo", "a")
		wantCode(t, host.moderate(protocol.ActionBan, target("a", 60)), protocol.OK, "")
		if r := a.end(); r == nil || r.Code != protocol.CloseForbidden {
			t.Fatalf("want 4403, have %+v", r)
		}
		a.Leave()
		if _, r := n1.tryJoin("demo", "a"); r == nil || r.Code != protocol.CloseForbidden {
			t.Fatalf("back in: %+v", r)
		}
		c := Caller{Who: Identity{User: "a", Role: protocol.RoleViewer}}
		if ack := n2.hub.Speak(context.Background(), "demo", c, danmakuOf("1", "1")); ack.Err == nil || ack.Err.Reason != protocol.ReasonBanned {
			t.Fatalf("over HTTP: %+v", ack)
		}
		if got := n1.join("demo", "b").room.Info().Bans; len(got) != 1 || got[0].User != "a" || got[0].By != "host" {
			t.Fatalf("bans: %+v", got)
		}
		time.Sleep(61 * time.Second)
		n1.join("demo", "a")
		wantCode(t, host.moderate(protocol.ActionBan, target("a", 0)), protocol.OK, "")
		time.Sleep(2 * time.Hour)
		if _, r := n1.tryJoin("demo", "a"); r == nil {
			t.Fatal("a ban without end has ended")
		}
		wantCode(t, host.moderate(protocol.ActionUnban, target("a", 0)), protocol.OK, "")
		n1.join("demo", "a")
		n1.stop()
		n2.stop()
	})
}

func TestKickAndAnnounceReachEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
		host, a, b := n1.join("demo", "host", as(protocol.RoleHost)), n2.join("demo", "a"), n2.join("demo", "b")
		wantCode(t, host.moderate(protocol.ActionKick, target("a", 0)), protocol.OK, "")
		if r := a.end(); r == nil || r.Code != protocol.CloseKicked || b.end() != nil {
			t.Fatalf("want a closed with 4004 and b not, have %+v, %+v", r, b.end())
		}
		wantCode(t, host.moderate(protocol.ActionAnnounce, func(r *protocol.Request) { r.Text = " hello  all " }), protocol.OK, "")
		time.Sleep(time.Second)
		if got := b.seen("announce"); len(got) != 1 || got[0].Text != "hello all" {
			t.Fatalf("announcement: %+v", got)
		}
		bus.set(func(b *memoryBus) { b.down = true })
		wantCode(t, host.moderate(protocol.ActionKick, target("b", 0)), protocol.Unavailable, protocol.ReasonTryLater)
		wantCode(t, host.moderate(protocol.ActionSlowMode, target("", 5)), protocol.Unavailable, protocol.ReasonTryLater)
		wantCode(t, host.moderate(protocol.ActionBan, target("b", 0)), protocol.Degraded, protocol.ReasonHereOnly)
		n1.stop()
		n2.stop()
	})
}

func TestDeletedAndPinnedMessages(t *testing.T) {
	bus := newMemoryBus()
	w := newWorld(t, bus, nil)
	host, a := w.join("demo", "host", as(protocol.RoleModerator)), w.join("demo", "a")
	one, two := a.say("one"), a.say("two")
	mid := func(mid string) func(*protocol.Request) { return func(r *protocol.Request) { r.MID = mid } }
	wantCode(t, host.moderate(protocol.ActionPin, mid(two.MID)), protocol.OK, "")
	wantCode(t, host.moderate(protocol.ActionPin, mid("nothing")), protocol.NotFound, protocol.ReasonNotFound)
	wantCode(t, host.moderate(protocol.ActionDelete, mid(one.MID)), protocol.OK, "")
	eventually(t, func() bool { return len(a.seen("deleted")) == 1 && len(a.seen("room")) == 1 })
	if e := a.seen("deleted")[0]; e.MID != one.MID {
		t.Fatalf("deleted: %+v", e)
	}
	if e := a.seen("room")[0]; e.Pinned == nil || e.Pinned.Text != "two" {
		t.Fatalf("pinned: %+v", e)
	}
	for _, n := range []*world{w, newWorld(t, bus, nil)} { // the second opens from what the bus remembers
		b := n.join("demo", "b")
		if got := texts(b.at("danmaku")); len(got) != 1 || got[0] != "two" {
			t.Fatalf("a newcomer sees %q", got)
		}
		if got := b.at("welcome")[0].Room.Pinned; protocol.EventMID(got) != two.MID {
			t.Fatalf("a newcomer's pinned: %s", got)
		}
	}
	wantCode(t, host.moderate(protocol.ActionDelete, mid(two.MID)), protocol.OK, "")
	eventually(t, func() bool { all := a.seen("room"); return len(all) == 2 && all[1].Pinned == nil })
	if r := a.room.policy.Load(); len(r.Deleted) != 2 {
		t.Fatalf("deletions: %+v", r.Deleted)
	}
}

func TestClosedRoomsTakeNothing(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	host, a := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "a")
	wantCode(t, host.moderate(protocol.ActionClose, nil), protocol.OK, "")
	wantCode(t, a.say("x"), protocol.Conflict, protocol.ReasonRoomClosed)
	wantCode(t, a.give("g", "rose", 1), protocol.Conflict, protocol.ReasonRoomClosed)
	wantCode(t, a.like(1), protocol.Conflict, protocol.ReasonRoomClosed)
	if b := w.join("demo", "b"); !b.at("welcome")[0].Room.Closed {
		t.Fatal("a newcomer is not told")
	}
	wantCode(t, host.moderate(protocol.ActionOpen, nil), protocol.OK, "")
	wantCode(t, a.say("x"), protocol.OK, "")
	title, slow, closed := "<b>Title</b>", int64(1000), true
	set := func(c Settings) event {
		return host.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &c })
	}
	wantCode(t, set(Settings{Title: &title}), protocol.OK, "")
	if got := a.room.Summary().Title; got != "<b>Title</b>" {
		t.Fatalf("title: %q", got)
	}
	revision := a.room.policy.Load().revision
	title = "Show"
	wantCode(t, set(Settings{Title: &title, SlowModeMS: &slow, Closed: &closed}), protocol.OK, "")
	if p := a.room.policy.Load(); p.Title != "Show" || p.SlowMode != 1000 || !p.Closed || p.revision != revision+1 {
		t.Fatalf("after one change of three settings: %+v, revision %d after %d", p.stored, p.revision, revision)
	}
}

// Moderators on two nodes at once lose none of their decisions.
func TestConcurrentModerationLosesNothing(t *testing.T) {
	bus := newMemoryBus()
	nodes := []*world{newWorld(t, bus, nil), newWorld(t, bus, nil), newWorld(t, bus, nil)}
	var done sync.WaitGroup
	for i, n := range nodes {
		host := n.join("demo", "host", as(protocol.RoleHost))
		done.Go(func() {
			for u := range 20 {
				req := protocol.Request{Op: protocol.OpModerate, ID: fmt.Sprint(i, "-", u), Action: protocol.ActionMute, User: fmt.Sprint("u", i, "-", u), Seconds: 600}
				for {
					if ack := host.room.Handle(context.Background(), &Speaker{who: host.who.Load(), user: host.user, place: host.place}, &req); ack.Code == protocol.OK {
						break
					}
				}
			}
		})
	}
	done.Wait()
	for i, n := range nodes {
		if got := len(n.join("demo", "x").room.policy.Load().muted); got != 60 {
			t.Fatalf("node %d knows %d of 60 mutes", i, got)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	r := w.join("demo", "a").room
	by := &Speaker{who: &Identity{User: "host"}}
	s := stored{}
	for i := range maxSanctions + 1 {
		err := r.amend(&s, 0, by, &protocol.Request{Action: protocol.ActionBan, User: fmt.Sprint(i)})
		if (err != nil) != (i == maxSanctions) {
			t.Fatalf("ban %d: %v", i, err)
		}
	}
	for i := range 2 * maxDeleted {
		if err := r.amend(&s, int64(i), by, &protocol.Request{Action: protocol.ActionDelete, MID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		s.prune(int64(i))
	}
	s.prune(1 << 62) // by a clock that is ahead
	if len(s.Deleted) != maxDeleted || s.Deleted[0].MID != fmt.Sprint(maxDeleted) {
		t.Fatalf("%d deletions from %s on", len(s.Deleted), s.Deleted[0].MID)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"title":"t","slow_mode_ms":5000,"closed":true,"pinned":{"ev":"danmaku"},"mutes":[{"user":"u","until":5}],"bans":[{"user":"v"}],"deleted":[{"mid":"m","at":3}]}`))
	f.Add([]byte(`{"pinned":null}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := parsePolicy(value, 1)
		if err != nil {
			return
		}
		if len(p.muted) > len(p.Mutes) || len(p.banned) > len(p.Bans) || len(p.deleted) > len(p.Deleted) {
			t.Fatal("more than was stored")
		}
		difference("r", &policy{}, p, 1)
		s := p.stored.clone()
		s.prune(1)
	})
}

func FuzzCommand(f *testing.F) {
	w := newWorld(f, newMemoryBus(), nil)
	a := w.join("demo", "a")
	f.Add([]byte(`{"kick":"u"}`))
	f.Add([]byte(`{"announce":"text"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(_ *testing.T, message []byte) { (*feed)(a.room).Message(protocol.ClassControl, message) })
}

// A ban that comes between the question whether somebody is banned and the seat holds.
func TestABanDuringAJoinHolds(t *testing.T) {
	var ban atomic.Pointer[func()]
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.SweepEvery = time.Hour // which asks for the time as well
		c.Now = func() time.Time {
			if f := ban.Swap(nil); f != nil {
				(*f)()
			}
			return time.Now()
		}
	})
	w.join("demo", "a").Leave()
	r, _ := w.hub.Room("demo")
	comes := func() { r.adopt([]byte(`{"bans":[{"user":"b"}]}`), 100) }
	ban.Store(&comes) // when a join asks for the time, with the settings in hand
	if _, refusal := w.tryJoin("demo", "b"); refusal == nil || refusal.Code != protocol.CloseForbidden {
		t.Fatalf("want refused as banned, have %+v", refusal)
	}
	if n := r.Online(); n != 0 {
		t.Errorf("%d are in the room", n)
	}
	if err := w.hub.check(); err != nil {
		t.Error(err)
	}
}
