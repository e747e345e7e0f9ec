package room

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// CASES 24: user 1, room 10; one sends 20, one passes; another is served and nine are left.
func TestRefusalTakesNothingFromAnybody(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: user, action: danmaku, scope: user, rate: 0, burst: 1}
  - {name: room, action: danmaku, scope: room, rate: 0, burst: 10}
`)
	})
	a := w.join("demo", "a")
	for i := range 20 {
		e := a.say(fmt.Sprint("text ", i))
		if i == 0 {
			wantCode(t, e, protocol.OK, "")
			continue
		}
		wantCode(t, e, protocol.TooMany, protocol.ReasonRateLimited)
		if e.Rule != "user" || e.Scope != "user" || e.Retry != 0 {
			t.Fatalf("want the user's rule without a time, since none helps; have %+v", e)
		}
	}
	for i := range 10 {
		e := w.join("demo", fmt.Sprint("other", i)).say("hello")
		if i < 9 {
			wantCode(t, e, protocol.OK, "")
		} else if e.Rule != "room" {
			t.Fatalf("the tenth: want the room's rule, have %+v", e)
		}
	}
}

func TestLimitedIsToldWhenToComeBackAndMayRepeatTheID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		a := w.join("demo", "a")
		for i := range 3 {
			wantCode(t, a.say(fmt.Sprint(i)), protocol.OK, "")
		}
		req := protocol.Request{Op: protocol.OpDanmaku, ID: "again", Text: "fourth"}
		e := a.ask(req)
		wantCode(t, e, protocol.TooMany, protocol.ReasonRateLimited)
		if e.Rule != "danmaku-user-room" || e.Scope != "user_room" || e.Retry < 1001 || e.Retry > 1200 {
			t.Fatalf("want one second and a little by danmaku-user-room, have %+v", e)
		}
		time.Sleep(time.Duration(e.Retry) * time.Millisecond)
		wantCode(t, a.ask(req), protocol.OK, "")
		w.stop()
	})
}

// Reconnecting refills nothing, and a user goes when there is nothing left to remember.
func TestUserOutlivesItsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		a := w.join("demo", "a")
		for i := range 3 {
			wantCode(t, a.say(fmt.Sprint(i)), protocol.OK, "")
		}
		a.Leave()
		a = w.join("demo", "a")
		wantCode(t, a.say("after coming back"), protocol.TooMany, protocol.ReasonRateLimited)
		a.Leave()
		time.Sleep(time.Minute)
		if _, users := w.hub.sizes(); users != 1 {
			t.Fatal("a user went before its answers had aged")
		}
		time.Sleep(2 * time.Minute)
		if rooms, users := w.hub.sizes(); users != 0 || rooms != 0 {
			t.Fatalf("want nobody left, have %d users, %d rooms", users, rooms)
		}
		w.stop()
	})
}

func TestDegradedIsSeenByItsSenderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate = gateOf(t, `
rules:
  - {name: room, action: danmaku, scope: room, rate: 0, burst: 1, degrade: {rate: 0, burst: 1}}
`)
		})
		a, b := w.join("demo", "a"), w.join("demo", "b")
		wantCode(t, a.say("one"), protocol.OK, "")
		e := a.say("two")
		wantCode(t, e, protocol.Degraded, protocol.ReasonRoomBusy)
		wantCode(t, a.say("three"), protocol.TooMany, protocol.ReasonRateLimited)
		time.Sleep(time.Second)
		if got := a.told("danmaku"); len(got) != 1 || got[0].MID != e.MID || got[0].Text != "two" {
			t.Fatalf("want its own echo, have %+v", got)
		}
		for _, v := range []*viewer{a, b} {
			if got := texts(v.seen("danmaku")); len(got) != 1 || got[0] != "one" {
				t.Fatalf("want the admitted one alone, have %q", got)
			}
		}
		info := a.room.Info()
		if r := info.Rates.TenSeconds; r.Admitted != .1 || r.Degraded != .1 || r.Refused != .1 {
			t.Fatalf("rates: %+v", r)
		}
		if q := info.Quota; len(q) != 1 || q[0] != (Quota{Rule: "room", Action: "danmaku", Level: 0, Burst: 1}) {
			t.Fatalf("quota: %+v", q)
		}
		if len(info.Refusals) != 1 || info.Refusals[0].Rule != "room" || info.Refusals[0].Name != "Name of a" {
			t.Fatalf("refusals: %+v", info.Refusals)
		}
		w.stop()
	})
}

func TestRefusalsOfAUserByARuleAreOneLine(t *testing.T) {
	var s stats
	for i := range 200 {
		s.refuse(Refused{User: fmt.Sprint("u", i%2), Action: "danmaku", Rule: "r", Count: 1, Time: -int64(i), at: limit.Instant(i)})
	}
	if got := s.newest(limit.Instant(199 + 3*time.Millisecond)); len(got) != 2 || got[0].Count != 100 || got[0].User != "u1" || got[0].Time != -199 || got[0].AgeMS != 3 {
		t.Fatalf("want two lines of 100, have %+v", got)
	}
	for i := range 500 {
		s.refuse(Refused{User: fmt.Sprint("v", i), Count: 1, at: 1000})
	}
	if got := s.newest(1000); len(got) != MaxRefusals || got[0].User != "v499" {
		t.Fatalf("want %d lines, the newest first, have %d, %+v", MaxRefusals, len(got), got[0])
	}
}

func TestRepeatedTextAndSlowMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a, host := w.join("demo", "a"), w.join("demo", "host", as(protocol.RoleHost))
		wantCode(t, a.say("same"), protocol.OK, "")
		e := a.say("  same ")
		wantCode(t, e, protocol.TooMany, protocol.ReasonRepeatedText)
		if e.Retry < 5001 || e.Retry > 6000 {
			t.Fatalf("want 5 s and a little, have %d ms", e.Retry)
		}
		wantCode(t, w.join("other", "a").say("same"), protocol.OK, "")
		time.Sleep(time.Duration(e.Retry) * time.Millisecond)
		wantCode(t, a.say("same"), protocol.OK, "")

		wantCode(t, host.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionSlowMode, Seconds: 30}), protocol.OK, "")
		e = a.say("other")
		wantCode(t, e, protocol.TooMany, protocol.ReasonSlowMode)
		if e.Retry < 30_001 || e.Retry > 33_000 {
			t.Fatalf("want 30 s and a little, have %d ms", e.Retry)
		}
		wantCode(t, host.say("a host"), protocol.OK, "")
		wantCode(t, host.say("is exempt"), protocol.OK, "")
		time.Sleep(time.Duration(e.Retry) * time.Millisecond)
		wantCode(t, a.say("other"), protocol.OK, "")
		w.stop()
	})
}

func TestCallersSpeakForUsers(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	c := Caller{Who: Identity{User: "u", Name: "U", Role: protocol.RoleViewer}}
	for i := range 4 {
		ack := w.hub.Speak(context.Background(), "demo", c, danmakuOf(fmt.Sprint(i), fmt.Sprint(i)))
		if i < 3 && ack.Code != protocol.OK || i == 3 && ack.Code != protocol.TooMany {
			t.Fatalf("message %d: %+v", i, ack)
		}
	}
	eventually(t, func() bool { return len(a.seen("danmaku")) == 3 })
	if ack := w.hub.Speak(context.Background(), "demo", c, danmakuOf("0", "0")); ack.Code != protocol.OK {
		t.Fatalf("the first id again: %+v", ack)
	}
	if err := w.hub.check(); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedJoinsComeBackSpread: a room that takes a thousand a second is not run into by all the others a second later.
func TestRefusedJoinsComeBackSpread(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: join, action: join, scope: room, rate: 1000, burst: 1}
`)
	})
	w.join("demo", "first")
	tens := map[time.Duration]int{} // of the waits told, by tenth of a second
	refused := 0
	for i := range 200 {
		if _, r := w.tryJoin("demo", fmt.Sprint("u", i)); r != nil {
			refused++
			tens[r.Reconnect/(100*time.Millisecond)]++
		}
	}
	if refused < 20 || len(tens) < 5 {
		t.Fatalf("%d refused, told %v", refused, tens)
	}
}

func TestJoinsAreLimited(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: join, action: join, scope: user, rate: 1, per: 1m, burst: 2}
`)
		c.MaxUsers, c.MaxRooms = 3, 2
	})
	w.join("demo", "a")
	w.join("demo", "a")
	if _, r := w.tryJoin("demo", "a"); r == nil || r.Code != protocol.CloseOverloaded || r.Reconnect < 59*time.Second || r.Detail != "join" || r.Rule != "join" || r.Scope == "" {
		t.Fatalf("third join: %+v", r)
	}
	w.join("demo", "b")
	w.join("second", "c")
	if _, r := w.tryJoin("demo", "d"); r == nil || r.Code != protocol.CloseOverloaded {
		t.Fatalf("fourth user of three: %+v", r)
	}
	if _, r := w.tryJoin("third", "c"); r == nil || r.Code != protocol.CloseOverloaded {
		t.Fatalf("third room of two: %+v", r)
	}
	if err := w.hub.check(); err != nil {
		t.Fatal(err)
	}
}

func TestRoomsAreMadeWhereTheyMay(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	no := &protocol.Error{Reason: protocol.ReasonRateLimited, Rule: "rooms", RetryAfter: 3 * time.Second}
	asked := 0
	create := func(j *JoinRequest) { j.Create = func() *protocol.Error { asked++; return no } }
	if _, r := w.tryJoin("demo", "a", create); r == nil || r.Code != protocol.CloseOverloaded || r.Reconnect != 3*time.Second {
		t.Fatalf("a room that may not be made: %+v", r)
	}
	w.join("demo", "a")
	w.join("demo", "b", create)
	if asked != 1 || len(w.hub.rooms) != 1 {
		t.Fatalf("want one question and one room, have %d, %d", asked, len(w.hub.rooms))
	}

	shut := newWorld(t, w.bus, func(c *Config) { c.AutoCreate = false })
	if _, r := shut.tryJoin("nowhere", "a"); r == nil || r.Code != protocol.CloseNoRoom {
		t.Fatalf("without auto_create: %+v", r)
	}
	w.bus.set(func(b *memoryBus) { b.settings["titled"] = revised{[]byte(`{"title":"T"}`), 3} })
	if got := shut.join("titled", "a").at("welcome")[0].Room.Title; got != "T" {
		t.Fatalf("a room with settings: title %q", got)
	}
}

// A rule of concurrency on joins is a bound on members: slots come back when they leave, and those of messages at once.
func TestSlotsComeBack(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: seats, action: join, scope: room, algorithm: concurrency, burst: 2, rate: 0, per: 1h}
  - {name: at-once, action: [danmaku, like, gift], scope: user, algorithm: concurrency, burst: 1, rate: 0, per: 1h}
`)
	})
	a := w.join("demo", "a")
	w.join("demo", "b")
	if _, r := w.tryJoin("demo", "c"); r == nil || r.Detail != "seats" {
		t.Fatalf("a third in a room of two: %+v", r)
	}
	a.Leave()
	c := w.join("demo", "c")
	for i := range 5 {
		wantCode(t, c.say(fmt.Sprint(i)), protocol.OK, "")
		wantCode(t, c.like(1), protocol.OK, "")
		wantCode(t, c.give(fmt.Sprint("g", i), "rose", 1), protocol.OK, "")
	}
}

// Rules with where hold for a session by the attributes of its token, also after a refresh, and its messages carry them.
func TestRulesForUsersWithAttributes(t *testing.T) {
	const attrs = protocol.Attrs(`{"level":12}`)
	who := Identity{User: "a", Role: protocol.RoleViewer, Attrs: attrs, Traits: limit.NewTraits(string(attrs))}
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, unlimited+`
  - {name: few, action: danmaku, scope: user_room, rate: 0, burst: 1}
  - {name: more, action: danmaku, scope: user_room, rate: 0, burst: 3, where: {level: ">=10"}}
`)
		c.Verify = func(string, string) (Identity, *protocol.Error) {
			return Identity{User: "a", Role: protocol.RoleViewer}, nil
		}
	})
	low, high := w.join("demo", "b"), w.join("demo", "a", func(j *JoinRequest) { j.Who = who })
	wantCode(t, low.say("1"), protocol.OK, "")
	if e := low.say("2"); e.Code != int(protocol.TooMany) || e.Rule != "few" {
		t.Errorf("without attributes: %+v", e)
	}
	for i := range 3 {
		wantCode(t, high.say(fmt.Sprint(i)), protocol.OK, "")
	}
	if e := high.say("4"); e.Code != int(protocol.TooMany) || e.Rule != "more" {
		t.Errorf("of level 12: %+v", e)
	}
	wantCode(t, high.ask(protocol.Request{Op: protocol.OpRefresh, Token: "lower"}), protocol.OK, "")
	wantCode(t, high.say("5"), protocol.OK, "")
	if e := high.say("6"); e.Rule != "few" {
		t.Errorf("once its level is gone: %+v", e)
	}
}
