package room

import (
	"context"
	"fmt"
	"os"
	"strings"
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

// The table of docs/protocol.md is the one that the code goes by.
func TestTheTableOfRanksIsTheDocuments(t *testing.T) {
	doc, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[reach]string{0: "–", acts: "acts", acts | appoints: "acts, appoints"}
	_, table, _ := strings.Cut(string(doc), "| by \\ on |")
	lines := strings.Split(table, "\n")[2:]
	for by := range ranks {
		cells := strings.Split(lines[by], "|")
		own := map[bool]string{false: "–", true: "delete"}[by > rankViewer]
		for on := range ranks {
			if got := strings.TrimSpace(cells[on+2]); got != words[decides[by][on]] {
				t.Errorf("%s on rank %d: the page says %s, the code %s", cells[1], on, got, words[decides[by][on]])
			}
		}
		if got := strings.TrimSpace(cells[ranks+2]); got != own {
			t.Errorf("%s on oneself: %s", cells[1], got)
		}
	}
}

// The table cell by cell, on both roads, for targets on the same node and on another.
func TestNobodyActsOnAnEqualOrHigherRank(t *testing.T) {
	ranks := []protocol.Role{protocol.RoleViewer, protocol.RoleModerator, protocol.RoleHost, protocol.RoleAdmin}
	onUser := []protocol.Action{protocol.ActionMute, protocol.ActionUnmute, protocol.ActionKick, protocol.ActionBan, protocol.ActionUnban, protocol.ActionDelete, protocol.ActionAppoint, protocol.ActionDismiss}
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
							if action == protocol.ActionAppoint || action == protocol.ActionDismiss {
								allowed = actor > 1 && target < 2
							}
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

// A room's own moderators are so at once, on every node and road, and over a restart; a token is judged at each act.
func TestAppointedAndDismissed(t *testing.T) {
	for road, act := range roads {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
		host, mod := n1.join("demo", "host", as(protocol.RoleHost)), n1.join("demo", "mod", as(protocol.RoleModerator))
		v := n2.join("demo", "v")
		n2.join("demo", "w")
		mute := func(who string) protocol.Request {
			return protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionMute, User: who, Seconds: 60}
		}
		wantCode(t, mod.moderate(protocol.ActionAppoint, target("v", 0)), protocol.Forbidden, protocol.ReasonForbidden)
		wantCode(t, host.moderate(protocol.ActionAppoint, target("v", 0)), protocol.OK, "")
		if got := v.told("role"); len(got) != 1 || got[0].Role != "moderator" {
			t.Fatalf("%s: told %+v", road, got)
		}
		if code := act(v, mute("w")); code != protocol.OK {
			t.Errorf("%s: who was appointed is answered %d", road, code)
		}
		if code := act(v, mute("mod")); code != protocol.Forbidden {
			t.Errorf("%s: on an equal: %d", road, code)
		}
		if code := act(v, protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionAppoint, User: "w"}); code != protocol.Forbidden {
			t.Errorf("%s: a moderator appoints: %d", road, code)
		}
		v.say("hello")
		eventually(t, func() bool { return len(host.seen("danmaku")) == 1 })
		if got := host.seen("danmaku")[0].User.Role; got != "moderator" {
			t.Errorf("%s: shown as %q", road, got)
		}
		if got := newWorld(t, bus, nil).join("demo", "v").at("welcome"); len(got) != 1 || got[0].User.Role != "moderator" {
			t.Errorf("%s: after a restart: %+v", road, got)
		}
		wantCode(t, host.moderate(protocol.ActionDismiss, target("mod", 0)), protocol.OK, "")
		wantCode(t, host.moderate(protocol.ActionDismiss, target("v", 0)), protocol.OK, "")
		for _, who := range []*viewer{v, mod} {
			if code := act(who, mute("w")); code != protocol.Forbidden {
				t.Errorf("%s: who was dismissed is answered %d", road, code)
			}
		}
		if got := host.room.policy.Load().Appointed; len(got) != 1 || got[0].User != "mod" {
			t.Errorf("%s: only a token's moderator is remembered as dismissed: %+v", road, got)
		}
	}
	s := stored{}
	for i := range maxAppointed + 1 {
		if err := s.appoint(fmt.Sprint(i), protocol.RoleModerator, protocol.RoleViewer); (err != nil) != (i == maxAppointed) {
			t.Fatalf("%d: %v", i, err)
		}
	}
}

func TestAHigherRanksSanctionStays(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	host, mod := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "mod", as(protocol.RoleModerator))
	wantCode(t, host.moderate(protocol.ActionBan, target("v", 0)), protocol.OK, "")
	wantCode(t, mod.moderate(protocol.ActionUnban, target("v", 0)), protocol.Forbidden, protocol.ReasonForbidden)
	wantCode(t, mod.moderate(protocol.ActionBan, target("v", 1)), protocol.Forbidden, protocol.ReasonForbidden)
	wantCode(t, host.moderate(protocol.ActionUnban, target("v", 0)), protocol.OK, "")
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
