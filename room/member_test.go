package room

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// CASES 15: a token of 5 s: closed with 4401 then; refreshed: stays.
func TestTokensEndTheirSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Verify = func(room, token string) (Identity, *protocol.Error) {
				if room != "demo" || token == "bad" {
					return Identity{}, &protocol.Error{Reason: protocol.ReasonUnauthenticated}
				}
				return Identity{User: token, Role: protocol.RoleHost, Expires: time.Now().Add(10 * time.Second)}, nil
			}
		})
		short := func(j *JoinRequest) { j.Who.Expires = time.Now().Add(5 * time.Second) }
		a, b, c := w.join("demo", "a", short), w.join("demo", "b", short), w.join("demo", "c")
		gone := w.join("demo", "gone", short)
		gone.Leave()
		time.Sleep(4 * time.Second)
		wantCode(t, b.ask(protocol.Request{Op: protocol.OpRefresh, Token: "bad"}), protocol.Unauthenticated, protocol.ReasonUnauthenticated)
		wantCode(t, b.ask(protocol.Request{Op: protocol.OpRefresh, Token: "a"}), protocol.Forbidden, protocol.ReasonForbidden)
		wantCode(t, b.ask(protocol.Request{Op: protocol.OpRefresh, Token: "b"}), protocol.OK, "")
		wantCode(t, b.moderate(protocol.ActionClose, nil), protocol.OK, "")
		time.Sleep(time.Second)
		synctest.Wait()
		if r := a.end(); r == nil || r.Code != protocol.CloseToken {
			t.Fatalf("after 5 s: want 4401, have %+v", r)
		}
		if b.end() != nil || c.end() != nil || gone.end() != nil {
			t.Fatal("closed although refreshed, without end, or gone")
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if r := b.end(); r == nil || r.Code != protocol.CloseToken {
			t.Fatalf("after the second token's time: want 4401, have %+v", r)
		}
		w.stop()
	})
}

// TestTokensEndByTheServersClock: a wall clock that is set forward ends a session when the token's end is passed, within a
// sweep, and one that is set back does not end it before.
func TestTokensEndByTheServersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Int64
		now := func() time.Time { return time.Unix(0, time.Now().UnixNano()+set.Load()) }
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Now, c.SweepEvery = now, time.Second })
		for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": 2 * time.Hour} {
			set.Store(0)
			time.Sleep(2 * time.Second)
			v := w.join("demo", name, func(j *JoinRequest) { j.Who.Expires = now().Add(time.Hour) })
			longer := w.join("demo", "longer than "+name, func(j *JoinRequest) { j.Who.Expires = now().Add(4 * time.Hour) })
			left := w.join("demo", "left before "+name, func(j *JoinRequest) { j.Who.Expires = now().Add(time.Hour) })
			left.Leave()
			set.Store(int64(step))
			time.Sleep(time.Second)
			synctest.Wait()
			if ended := v.end() != nil; ended != (step > 0) {
				t.Errorf("clock set %s: ended is %v", name, ended)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if ended := v.end() != nil; ended != (step > 0) {
				t.Errorf("clock set %s, an hour later: ended is %v", name, ended)
			}
			if longer.end() != nil || left.end() != nil {
				t.Errorf("clock set %s: who has a longer token, or has left, is closed", name)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if r := v.end(); r == nil || r.Code != protocol.CloseToken {
				t.Errorf("clock set %s: after the token's end there is %+v", name, r)
			}
			v.Leave()
			longer.Leave()
		}
		w.stop()
	})
}

func TestPingHelloAndUnknownOps(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a")
	a.Receive(&protocol.Request{Op: protocol.OpPing, ID: "p"})
	if got := a.told("pong"); len(got) != 1 || got[0].ID != "p" || got[0].Time == 0 {
		t.Fatalf("pong: %+v", got)
	}
	wantCode(t, a.ask(protocol.Request{Op: protocol.OpHello}), protocol.BadRequest, protocol.ReasonBadRequest)
	wantCode(t, a.ask(protocol.Request{Op: "dance"}), protocol.BadRequest, protocol.ReasonBadRequest)
	wantCode(t, a.ask(protocol.Request{Op: protocol.OpRefresh, Token: "t"}), protocol.Unavailable, protocol.ReasonUnavailable)
}

func TestAcksSpeakTheSessionsLanguage(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a := w.join("demo", "a", func(j *JoinRequest) { j.Lang = protocol.ParseLang("zh") })
	a.Receive(danmakuOf("1", ""))
	a.fakeSession.mu.Lock()
	defer a.fakeSession.mu.Unlock()
	if got, want := string(a.own.frames[0]), protocol.Message(protocol.ParseLang("zh"), protocol.ReasonBadRequest, ""); !strings.Contains(got, want) {
		t.Fatalf("want %q in %s", want, got)
	}
}

func TestTheSameIDGetsTheFirstAnswer(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	a, tab := w.join("demo", "a"), w.join("demo", "a")
	first := a.ask(*danmakuOf("c1", "hello"))
	wantCode(t, first, protocol.OK, "")
	for _, v := range []*viewer{a, tab} {
		if again := v.ask(*danmakuOf("c1", "hello")); again.MID != first.MID || again.TS != first.TS {
			t.Fatalf("want the first answer, have %+v", again)
		}
	}
	wantCode(t, a.ask(*danmakuOf("c1", "other")), protocol.Conflict, protocol.ReasonConflict)
	wantCode(t, w.join("second", "a").ask(*danmakuOf("c1", "elsewhere")), protocol.OK, "")
	eventually(t, func() bool { return len(a.seen("danmaku")) == 1 })
}

// TestAFullRoomIsNobodysAbuse: who is refused because the room is full is neither muted nor closed.
func TestAFullRoomIsNobodysAbuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Gate = gateOf(t, "rules:\n  - {name: full, action: danmaku, scope: room, rate: 0, burst: 1}\n  - {name: join, action: join, scope: room, rate: 100, burst: 100}\n")
		})
		a := w.join("demo", "a")
		wantCode(t, a.say("the only one"), protocol.OK, "")
		for range 100 {
			wantCode(t, a.say(time.Now().String()), protocol.TooMany, protocol.ReasonRateLimited)
			time.Sleep(time.Millisecond)
		}
		if got := a.told("muted"); len(got) != 0 || a.end() != nil {
			t.Fatalf("punished for a full room: %+v, %+v", got, a.end())
		}
		w.stop()
	})
}

func TestAbuseMutesThenCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), nil)
		a := w.join("demo", "a")
		for range 3 {
			a.say(time.Now().String())
			time.Sleep(time.Millisecond)
		}
		for range 20 {
			wantCode(t, a.say(time.Now().String()), protocol.TooMany, protocol.ReasonRateLimited)
			time.Sleep(time.Millisecond)
		}
		if got := a.told("muted"); len(got) != 1 || got[0].Seconds != 30 {
			t.Fatalf("want one muted of 30 s, have %+v", got)
		}
		// A gift is paid for: the mute is about talking.
		wantCode(t, a.ask(protocol.Request{Op: protocol.OpGift, Gift: "rose", Count: 1}), protocol.OK, "")
		e := a.say("now?")
		wantCode(t, e, protocol.Forbidden, protocol.ReasonMuted)
		if e.Rule != abuseRule || e.Retry < 29_000 {
			t.Fatalf("muted: %+v", e)
		}
		for range 19 {
			a.say("now?")
		}
		if r := a.end(); r == nil || r.Code != protocol.CloseAbuse || r.Reconnect < abuseReconnect {
			t.Fatalf("want 4005 with a time to come back, have %+v", r)
		}
		w.stop()
	})
}
