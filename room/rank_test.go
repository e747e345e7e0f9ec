package room

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// roads are the ways by which an act of moderation comes: a socket, and HTTP.
var roads = map[string]func(v *viewer, req protocol.Request) protocol.Code{
	"socket": func(v *viewer, req protocol.Request) protocol.Code { return protocol.Code(v.ask(req).Code) },
	"http": func(v *viewer, req protocol.Request) protocol.Code {
		req.ID = fmt.Sprintf("h%d", v.w.ids.Add(1))
		return v.w.hub.Speak(context.Background(), "demo", Caller{Who: *v.who.Load()}, &req).Code
	},
}

// The table of docs/protocol.md, cell by cell, on both roads, for targets on the same node and on another.
func TestNobodyActsOnAnEqualOrHigherRank(t *testing.T) {
	ranks := []protocol.Role{protocol.RoleViewer, protocol.RoleModerator, protocol.RoleHost, protocol.RoleAdmin}
	onUser := []protocol.Action{protocol.ActionMute, protocol.ActionUnmute, protocol.ActionKick, protocol.ActionBan, protocol.ActionUnban, protocol.ActionDelete}
	for road, act := range roads {
		for actor, actorRole := range ranks {
			for target, targetRole := range ranks {
				for _, action := range onUser {
					synctest.Test(t, func(t *testing.T) {
						bus := newMemoryBus()
						n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
						defer n2.stop()
						defer n1.stop()
						by := n1.join("demo", "actor", as(actorRole))
						here, there := n1.join("demo", "target", as(targetRole)), n2.join("demo", "other", as(targetRole))
						said := here.say("hello")
						for _, v := range []*viewer{here, there} {
							req := protocol.Request{Op: protocol.OpModerate, Action: action, User: v.user.id, Seconds: 60}
							if action == protocol.ActionDelete {
								req.User, req.Seconds, req.MID = "", 0, said.MID
							}
							allowed := actor > 0 && actor > target
							if code := act(by, req); allowed != (code == protocol.OK) || !allowed && code != protocol.Forbidden {
								t.Errorf("%s: a %s's %s of a %s: %d", road, actorRole, action, targetRole, code)
							}
							cut := allowed && (action == protocol.ActionBan || action == protocol.ActionKick)
							if (v.end() != nil) != cut {
								t.Errorf("%s: a %s's %s of a %s: closed with %v", road, actorRole, action, targetRole, v.end())
							}
						}
					})
				}
			}
		}
	}
}

func TestWhoIsSanctionedModeratesNothingOnAnyRoad(t *testing.T) {
	for road, act := range roads {
		for _, how := range []protocol.Action{protocol.ActionMute, protocol.ActionBan} {
			w := newWorld(t, newMemoryBus(), nil)
			host, m := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "m", as(protocol.RoleModerator))
			w.join("demo", "v")
			wantCode(t, host.moderate(how, target("m", 600)), protocol.OK, "")
			for _, req := range []protocol.Request{
				{Action: protocol.ActionUnban, User: "m"}, {Action: protocol.ActionUnmute, User: "m"}, {Action: protocol.ActionMute, User: "v", Seconds: 60},
				{Action: protocol.ActionClose}, {Action: protocol.ActionAnnounce, Text: "mine"},
			} {
				req.Op = protocol.OpModerate
				if code := act(m, req); code != protocol.Forbidden {
					t.Errorf("%s: after %s, %s is answered %d", road, how, req.Action, code)
				}
			}
			if err := w.hub.With(context.Background(), "demo", nil, func(r *Room) *protocol.Error { return r.MayModerate(*m.who.Load()) }); err == nil {
				t.Error("settings can be changed")
			}
		}
	}
}

// A sanction made while nobody knew the target's rank has no effect on it.
func TestASanctionStaysBelowWhoMadeIt(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	mod := w.join("demo", "mod", as(protocol.RoleModerator))
	for _, a := range []protocol.Action{protocol.ActionMute, protocol.ActionBan} {
		wantCode(t, mod.moderate(a, target("star", 600)), protocol.OK, "")
	}
	if _, refusal := w.tryJoin("demo", "star"); refusal == nil {
		t.Error("as a viewer the user is banned")
	}
	star := w.join("demo", "star", as(protocol.RoleHost))
	wantCode(t, star.say("mine"), protocol.OK, "")
	wantCode(t, star.moderate(protocol.ActionUnban, target("star", 0)), protocol.Forbidden, protocol.ReasonForbidden) // on oneself
	wantCode(t, star.moderate(protocol.ActionMute, target("mod", 60)), protocol.OK, "")
}

func TestStaffThatComesAsAViewerIsStaffNoMore(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	host := w.join("demo", "host", as(protocol.RoleHost))
	w.join("demo", "m", as(protocol.RoleModerator)).Leave()
	other := w.join("demo", "other", as(protocol.RoleModerator))
	wantCode(t, other.moderate(protocol.ActionMute, target("m", 60)), protocol.Forbidden, protocol.ReasonForbidden)
	w.join("demo", "m")
	wantCode(t, other.moderate(protocol.ActionMute, target("m", 60)), protocol.OK, "")
	if staff := host.room.policy.Load().Staff; len(staff) != 2 {
		t.Errorf("staff %+v", staff)
	}
	for i := range maxStaff + 10 {
		w.join("demo", fmt.Sprint("s", i), as(protocol.RoleModerator)).Leave()
	}
	staff := host.room.policy.Load().Staff
	if n := len(staff); n != maxStaff || staff[n-1].User != fmt.Sprint("s", maxStaff+9) {
		t.Errorf("%d are remembered, the last is %s", n, staff[n-1].User)
	}
}

// Viewers go on seeing what has left the room's history.
func TestAnOldMessageOfAHostIsNoModerators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		defer w.stop()
		host, mod := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "mod", as(protocol.RoleModerator))
		said := host.say("mine")
		viewers := w.join("demo", "v").say(`"role":"host"`)
		time.Sleep(2 * w.hub.showing.HistoryAge)
		mod.say("later")
		time.Sleep(time.Second)
		if host.room.audience.Find(said.MID) != nil {
			t.Fatal("the history still has it")
		}
		for mid, want := range map[string]protocol.Code{said.MID: protocol.Forbidden, viewers.MID: protocol.OK} {
			if ack := mod.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionDelete, MID: mid}); protocol.Code(ack.Code) != want {
				t.Errorf("a moderator's delete: %d, want %d", ack.Code, want)
			}
		}
	})
}
