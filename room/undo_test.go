package room

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func (v *viewer) undo(seq uint64) event {
	return v.moderate(protocol.ActionUndo, func(r *protocol.Request) { r.Seq = seq })
}

// Each act that leaves something behind is taken back by its number in the audit, and taken back again, until somebody changes the same.
func TestEachActIsUndone(t *testing.T) {
	title, on, followers := "Show", true, protocol.SpeakMembers
	for _, c := range []struct {
		name   string
		before func(v *viewer, mid string)
		act    func(*protocol.Request)
	}{
		{"mute", nil, func(r *protocol.Request) { r.Action, r.User, r.Seconds = protocol.ActionMute, "v", 600 }},
		{"unmute", func(v *viewer, mid string) { v.moderate(protocol.ActionMute, target("v", 600)) }, func(r *protocol.Request) { r.Action, r.User = protocol.ActionUnmute, "v" }},
		{"ban again", func(v *viewer, mid string) { v.moderate(protocol.ActionBan, target("v", 600)) }, func(r *protocol.Request) { r.Action, r.User = protocol.ActionBan, "v" }},
		{"unban", func(v *viewer, mid string) { v.moderate(protocol.ActionBan, target("v", 0)) }, func(r *protocol.Request) { r.Action, r.User = protocol.ActionUnban, "v" }},
		{"appoint", nil, func(r *protocol.Request) { r.Action, r.User = protocol.ActionAppoint, "v" }},
		{"dismiss", func(v *viewer, mid string) { v.moderate(protocol.ActionAppoint, target("v", 0)) }, func(r *protocol.Request) { r.Action, r.User = protocol.ActionDismiss, "v" }},
		{"slow_mode", nil, func(r *protocol.Request) { r.Action, r.Seconds = protocol.ActionSlowMode, 5 }},
		{"close", nil, func(r *protocol.Request) { r.Action = protocol.ActionClose }},
		{"settings", nil, func(r *protocol.Request) {
			r.Action, r.Settings = protocol.ActionSettings, &Settings{Title: &title, Speak: &followers, EmojiOnly: &on, LinksOff: &on}
		}},
		{"delete", nil, func(r *protocol.Request) { r.Action, r.MID = protocol.ActionDelete, "said" }},
		{"pin", nil, func(r *protocol.Request) { r.Action, r.MID = protocol.ActionPin, "said" }},
		{"unpin", func(v *viewer, mid string) {
			v.moderate(protocol.ActionPin, func(r *protocol.Request) { r.MID = mid })
		}, func(r *protocol.Request) { r.Action = protocol.ActionUnpin }},
	} {
		w := newWorld(t, newMemoryBus(), nil)
		mid := w.join("demo", "v").say("said").MID
		host, mod := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "mod", as(protocol.RoleModerator))
		if c.before != nil {
			c.before(host, mid)
		}
		is := func() string {
			s := host.room.policy.Load().stored.clone()
			s.Deleted = slices.DeleteFunc(s.Deleted, func(d deletion) bool { return d.Back })
			s.Opened, s.Shut, s.Acts = 0, 0, 0 // times are not undone
			for i := range s.Deleted {
				s.Deleted[i].At = 0
			}
			raw, _ := json.Marshal(s)
			return string(raw)
		}
		start := is()
		req := protocol.Request{Op: protocol.OpModerate}
		if c.act(&req); req.MID != "" {
			req.MID = mid
		}
		acted := host.ask(req)
		wantCode(t, acted, protocol.OK, "")
		done := is()
		wantCode(t, mod.undo(acted.Seq), protocol.Forbidden, protocol.ReasonForbidden) // a host decided it
		undone := host.undo(acted.Seq)
		wantCode(t, undone, protocol.OK, "")
		if got := is(); got != start || done == start {
			t.Errorf("%s: was %s, then %s, undone %s", c.name, start, done, got)
		}
		wantCode(t, host.undo(acted.Seq), protocol.Conflict, protocol.ReasonConflict) // it is not as the act left it
		wantCode(t, host.undo(undone.Seq), protocol.OK, "")
		if got := is(); got != done {
			t.Errorf("%s: was %s, done again %s", c.name, done, got)
		}
		entry, _ := host.room.audited(context.Background(), undone.Seq)
		if entry == nil || entry.Action != protocol.ActionUndo || entry.Undoes != acted.Seq || entry.Undid != req.Action || entry.By != "host" {
			t.Errorf("%s: the audit says %+v", c.name, entry)
		}
		w.stop()
	}
}

func TestWhatCantBeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		defer w.stop()
		host := w.join("demo", "host", as(protocol.RoleHost))
		said := w.join("demo", "v").say("said")
		kicked := host.moderate(protocol.ActionKick, target("v", 0))
		deleted := host.moderate(protocol.ActionDelete, func(r *protocol.Request) { r.MID = said.MID })
		muted := host.moderate(protocol.ActionMute, target("v", 10))
		for _, entry := range w.hub.bus.(*memoryBus).audit {
			if strings.Contains(entry, "said") {
				t.Error("the audit quotes a message:", entry)
			}
		}
		wantCode(t, host.undo(kicked.Seq), protocol.Conflict, protocol.ReasonConflict)
		wantCode(t, host.undo(99), protocol.NotFound, protocol.ReasonNotFound)
		time.Sleep(w.hub.showing.HistoryAge + time.Minute)
		host.say("later")
		time.Sleep(time.Second)
		wantCode(t, host.undo(deleted.Seq), protocol.Conflict, protocol.ReasonConflict) // the history has forgotten it
		wantCode(t, host.undo(muted.Seq), protocol.Conflict, protocol.ReasonConflict)   // over
	})
}

// A message whose deletion is undone is shown again where it was, to everybody on every node.
func TestAnUndoneDeletion(t *testing.T) {
	bus := newMemoryBus()
	n1, n2 := newWorld(t, bus, nil), newWorld(t, bus, nil)
	host, v := n1.join("demo", "host", as(protocol.RoleHost)), n2.join("demo", "v")
	one := v.say("one")
	v.say("two")
	deleted := host.moderate(protocol.ActionDelete, func(r *protocol.Request) { r.MID = one.MID })
	wantCode(t, host.undo(deleted.Seq), protocol.OK, "")
	for i, who := range []*viewer{host, v} {
		eventually(t, func() bool { return len(who.seen("restored")) == 1 })
		if m := who.seen("restored")[0].Message; m == nil || m.MID != one.MID || m.Text != "one" {
			t.Errorf("node %d: %+v", i+1, m)
		}
	}
	for i, n := range []*world{n1, n2, newWorld(t, bus, nil)} {
		if got := texts(n.join("demo", "x").at("danmaku")); len(got) != 2 || got[0] != "one" {
			t.Errorf("node %d shows a newcomer %q", i+1, got)
		}
	}
}

// Whoever is as strict as the room is told why, in words of their own.
func TestWhoMaySpeakAndHow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Followed = "follows" })
		defer w.stop()
		host, mod := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "mod", as(protocol.RoleModerator))
		follows := func(since string) func(*JoinRequest) {
			return func(j *JoinRequest) { j.Who.Attrs = protocol.Attrs(`{"follows":` + since + `}`) }
		}
		now := time.Now().Unix()
		people := map[string]*viewer{
			"guest": w.join("demo", "guest-1"), "member": w.join("demo", "m"),
			"new": w.join("demo", "n", follows(jsonInt(now-60))), "old": w.join("demo", "o", follows(jsonInt(now-700))), "odd": w.join("demo", "p", follows(`"x"`)),
		}
		minutes := 10
		n := 0
		for speak, want := range map[protocol.Speakers]map[string]protocol.Reason{
			protocol.SpeakAll:     {},
			protocol.SpeakMembers: {"guest": protocol.ReasonMembersOnly},
			protocol.SpeakFollowers: {
				"guest": protocol.ReasonFollowersOnly, "member": protocol.ReasonFollowersOnly, "new": protocol.ReasonFollowersOnly, "odd": protocol.ReasonFollowersOnly,
			},
			protocol.SpeakStaff: {
				"guest": protocol.ReasonStaffOnly, "member": protocol.ReasonStaffOnly, "new": protocol.ReasonStaffOnly, "old": protocol.ReasonStaffOnly, "odd": protocol.ReasonStaffOnly,
			},
		} {
			wantCode(t, host.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Speak: &speak, FollowMinutes: &minutes} }), protocol.OK, "")
			time.Sleep(5 * time.Second)
			for name, v := range people {
				n++
				e := v.say(jsonInt(int64(n)))
				if e.Reason != string(want[name]) {
					t.Errorf("%s: a %s is answered %q", speak, name, e.Reason)
				}
				if name == "new" && speak == protocol.SpeakFollowers && (e.Retry < 500_000 || e.Retry > 600_000) {
					t.Errorf("a follower of a minute may come back in %d ms", e.Retry)
				}
			}
			wantCode(t, mod.say(jsonInt(int64(-n))), protocol.OK, "")
			wantCode(t, people["guest"].like(1), protocol.OK, "")
		}
		all, on := protocol.SpeakAll, true
		wantCode(t, host.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Speak: &all, LinksOff: &on} }), protocol.OK, "")
		wantCode(t, people["old"].say("see example.com"), protocol.Forbidden, protocol.ReasonLinksOff)
		wantCode(t, host.say("see example.com"), protocol.OK, "")
		wantCode(t, host.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{EmojiOnly: &on} }), protocol.OK, "")
		wantCode(t, people["old"].say("words"), protocol.Forbidden, protocol.ReasonEmojiOnly)
		wantCode(t, people["old"].say("🎉"), protocol.OK, "")
		if b := w.join("demo", "b").at("welcome")[0].Room; !b.EmojiOnly || !b.LinksOff || b.FollowMinutes != 10 {
			t.Errorf("a newcomer is told %+v", b.Speech)
		}
	})
	w := newWorld(t, newMemoryBus(), nil)
	followers := protocol.SpeakFollowers
	e := w.join("demo", "host", as(protocol.RoleHost)).moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Speak: &followers} })
	wantCode(t, e, protocol.BadRequest, protocol.ReasonBadRequest)
}

func jsonInt(n int64) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

func TestEmojiAndLinksAreTold(t *testing.T) {
	for text, want := range map[string]bool{
		"🎉": true, "👩‍👩‍👧‍👦 👍🏽": true, "🇨🇳🇫🇷": true, "❤️": true, "3️⃣": true, "☺": true, "🏴󠁧󠁢󠁥󠁮󠁧󠁿": true, "🫠": true, "3": false, "a🎉": false, "好🎉": false, "!": false, "#️": false,
	} {
		if onlyEmoji(text) != want {
			t.Errorf("only emoji: %q is told %t", text, !want)
		}
	}
	for text, want := range map[string]bool{
		"see https://a.b": true, "www.example.com": true, "看example.com吧": true, "ＥＸＡＭＰＬＥ．ＣＯＭ": true, "example。com": true, "a.co.uk/x?y": true, "x.github.io": true,
		"node.js is 3.14, e.g. fast": false, "ok...well": false, "1.2.3": false, "so. then": false, "com": false, "co.uk": false, "哈哈。好": false,
	} {
		if hasLink(text) != want {
			t.Errorf("link: %q is told %t", text, !want)
		}
	}
}

func TestRepliesNameWhomTheyAnswer(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a, b := w.join("demo", "a"), w.join("demo", "b")
	said := a.say("one")
	reply := func(mid, text string) event {
		return b.ask(protocol.Request{Op: protocol.OpDanmaku, Text: text, Reply: mid})
	}
	wantCode(t, reply(said.MID, "two"), protocol.OK, "")
	wantCode(t, reply("nothing", "three"), protocol.NotFound, protocol.ReasonNotFound)
	eventually(t, func() bool { return len(a.seen("danmaku")) == 2 })
	if e := a.seen("danmaku")[1]; e.Reply != said.MID || e.ReplyTo == nil || e.ReplyTo.ID != "a" || e.Text != "two" {
		t.Errorf("%+v", e)
	}
}

func TestSanctionsAndPersons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		defer w.stop()
		host, v := w.join("demo", "host", as(protocol.RoleHost)), w.join("demo", "v")
		v.say("one")
		v.say("one")
		for _, user := range []string{"a", "b", "c"} {
			host.moderate(protocol.ActionMute, target(user, 600))
			host.moderate(protocol.ActionBan, target(user, 0))
			time.Sleep(time.Second)
		}
		host.moderate(protocol.ActionMute, target("v", 1))
		time.Sleep(2 * time.Second)
		var got []string
		after := ""
		for {
			page := host.room.Sanctions("", "", after, 2)
			if len(page) == 0 {
				break
			}
			for _, s := range page {
				got = append(got, string(s.Kind)+" "+s.User)
				if (s.Kind == protocol.ActionMute) != (s.LeftMS > 590_000 && s.LeftMS < 600_000) || s.By != "host" {
					t.Errorf("%+v", s)
				}
			}
			after = page[len(page)-1].Cursor
		}
		if want := "ban c, mute c, ban b, mute b, ban a, mute a"; strings.Join(got, ", ") != want {
			t.Errorf("want %s, have %s", want, strings.Join(got, ", "))
		}
		if one := host.room.Sanctions(protocol.ActionBan, "b", "", 10); len(one) != 1 {
			t.Errorf("%+v", one)
		}
		p := host.room.Person("v")
		if p.Sessions != 1 || p.Admitted != 1 || p.Refused != 1 || len(p.Messages) != 1 || len(p.Refusals) != 1 || time.Since(time.UnixMilli(p.Since)) < 5*time.Second {
			t.Errorf("%+v", p)
		}
		p.Join(Person{Since: 1, Admitted: 2, Sessions: 3, Role: protocol.RoleModerator})
		if p.Since != 1 || p.Admitted != 3 || p.Sessions != 4 || p.Role != protocol.RoleModerator {
			t.Errorf("over two nodes: %+v", p)
		}
		if p := host.room.Person("nobody"); p.Since != 0 || p.Sessions != 0 || p.Role != protocol.RoleViewer {
			t.Errorf("%+v", p)
		}
	})
}
