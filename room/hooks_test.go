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

// platform answers what it is asked about danmaku, and remembers it.
type platform struct {
	answer func(call int, d *Draft) Verdict
	takes  func(call int) time.Duration

	mu    sync.Mutex
	calls [][]string // texts
	began []time.Time
}

func (p *platform) Check(_ string, drafts []*Draft) []Verdict {
	p.mu.Lock()
	n := len(p.calls)
	var said []string
	for _, d := range drafts {
		said = append(said, d.Request.Text)
	}
	p.calls, p.began = append(p.calls, said), append(p.began, time.Now())
	p.mu.Unlock()
	if p.takes != nil {
		time.Sleep(p.takes(n))
	}
	out := make([]Verdict, len(drafts))
	for i, d := range drafts {
		if p.answer != nil {
			out[i] = p.answer(n, d)
		}
	}
	return out
}

func asking(p *platform) func(*Config) {
	return func(c *Config) { c.DanmakuHook = p }
}

// speak has each of some viewers say one thing of its own, all at once, and returns the acks by viewer.
func speak(viewers []*viewer, text func(i int) string) []event {
	acks := make([]event, len(viewers))
	var all sync.WaitGroup
	for i, v := range viewers {
		all.Go(func() { acks[i] = v.say(text(i)) })
	}
	all.Wait()
	return acks
}

// TestVerdicts: each message of a call has its own, and what is replaced is what everybody ever sees of it.
func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{answer: func(_ int, d *Draft) Verdict {
			switch d.Request.Text {
			case "replace":
				return Verdict{Text: "***"}
			case "mine":
				return Verdict{SenderOnly: true}
			case "wait":
				return Verdict{Held: &Cause{By: "hook", Detail: "a name"}}
			case "no":
				return Verdict{Refused: &protocol.Error{Reason: protocol.ReasonRejected, Detail: "be nice"}}
			}
			return Verdict{}
		}}
		bus := newMemoryBus()
		w := newWorld(t, bus, func(c *Config) { asking(p)(c); c.Gate = gateOf(t, unlimited) })
		defer w.stop()
		a, b := w.join("demo", "a"), w.join("demo", "b")
		wantCode(t, a.say("plain"), protocol.OK, "")
		replaced := a.ask(*danmakuOf("r1", "replace"))
		wantCode(t, replaced, protocol.OK, "")
		if again := a.ask(*danmakuOf("r1", "replace")); again.MID != replaced.MID || again.TS != replaced.TS || again.Code != replaced.Code {
			t.Errorf("the same again: %+v, was %+v", again, replaced)
		}
		own := a.say("mine")
		wantCode(t, own, protocol.OK, "") // who shall not know
		mod := w.join("demo", "mod", as(protocol.RoleModerator))
		held := a.ask(*danmakuOf("h1", "wait"))
		wantCode(t, held, protocol.Degraded, protocol.ReasonHeld)
		if again := a.ask(*danmakuOf("h1", "wait")); again.MID != held.MID || again.Reason != held.Reason {
			t.Errorf("the same again: %+v, was %+v", again, held)
		}
		refused := a.say("no")
		wantCode(t, refused, protocol.Forbidden, protocol.ReasonRejected)
		wantCode(t, a.say("no"), protocol.Forbidden, protocol.ReasonRejected) // no repeated text: it was not said
		time.Sleep(time.Second)
		if got := texts(b.seen("danmaku")); !slices.Equal(got, []string{"plain", "***"}) {
			t.Errorf("another sees %q", got)
		}
		wantCode(t, mod.ask(protocol.Request{Op: protocol.OpModerate, Action: protocol.ActionRelease, MID: held.MID}), protocol.OK, "")
		time.Sleep(time.Second)
		if got := texts(b.seen("danmaku")); !slices.Equal(got, []string{"plain", "***", "wait"}) {
			t.Errorf("once it is released, another sees %q", got)
		}
		if got := ofKind(a.told(""), "danmaku"); len(got) != 1 || got[0].MID != own.MID || got[0].Text != "mine" {
			t.Errorf("the sender alone is shown %+v", got)
		}
		if got := texts(w.join("demo", "late").at("danmaku")); !slices.Equal(got, []string{"plain", "***", "wait"}) {
			t.Errorf("the history has %q", got)
		}
		if kept, _ := bus.Recent(t.Context(), "demo", 10); strings.Contains(fmt.Sprintf("%s", kept), "replace") {
			t.Errorf("the store has %s", kept)
		}
		if n := len(p.calls); n != 6 {
			t.Errorf("%d calls: %q", n, p.calls)
		}
	})
}

// TestOneCallForATick: the first after a quiet tick at once, then one for all that is said within a tick, at most 64 in it.
func TestOneCallForATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{}
		w := newWorld(t, newMemoryBus(), func(c *Config) { asking(p)(c); c.Gate = gateOf(t, unlimited) })
		defer w.stop()
		var all []*viewer
		for i := range 200 {
			all = append(all, w.join("demo", fmt.Sprint("u", i)))
		}
		time.Sleep(time.Second)
		began := time.Now()
		all[0].say("first")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the first waited %v", waited)
		}
		for _, ack := range speak(all[1:], func(i int) string { return fmt.Sprint("text ", i) }) {
			wantCode(t, ack, protocol.OK, "")
		}
		var sizes []int
		for _, c := range p.calls {
			sizes = append(sizes, len(c))
		}
		if !slices.Equal(sizes, []int{1, 64, 64, 64, 7}) {
			t.Errorf("calls of %v messages", sizes)
		}
		if took := p.began[4].Sub(began); took != w.hub.cfg.Audience.Tick {
			t.Errorf("what did not fill a call waited %v", took)
		}
	})
}

// TestASlowHookKeepsOrder: whatever each call takes, what a room says comes in the order in which it was asked about, a tick and the
// longest call late at most; other rooms, gifts and likes wait for nothing.
func TestASlowHookKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slowest = 150 * time.Millisecond
		p := &platform{takes: func(call int) time.Duration {
			return []time.Duration{slowest, 0, 90 * time.Millisecond, 10 * time.Millisecond}[call%4]
		}}
		w := newWorld(t, newMemoryBus(), func(c *Config) { asking(p)(c); c.Gate = gateOf(t, unlimited) })
		defer w.stop()
		watcher, giver := w.join("demo", "watcher"), w.join("demo", "giver")
		var talkers sync.WaitGroup
		for i := range 40 {
			v := w.join("demo", fmt.Sprint("u", i))
			talkers.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				began := time.Now()
				wantCode(t, v.say(fmt.Sprintf("%02d", i)), protocol.OK, "")
				if late := time.Since(began); late > slowest+w.hub.cfg.Audience.Tick {
					t.Errorf("%d waited %v", i, late)
				}
			})
		}
		began := time.Now()
		for i := range 20 {
			wantCode(t, giver.give(fmt.Sprint("g", i), "rose", 1), protocol.OK, "")
			wantCode(t, giver.like(1), protocol.OK, "")
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("gifts and likes waited %v", waited)
		}
		talkers.Wait()
		time.Sleep(time.Second)
		seen := texts(watcher.seen("danmaku"))
		if len(seen) != 40 || !slices.IsSorted(seen) {
			t.Errorf("seen: %q", seen)
		}
	})
}

// TestAFloodNeverReachesTheHook: limits, mutes, what is repeated and what its sender alone is shown cost no call.
func TestAFloodNeverReachesTheHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{}
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			asking(p)(c)
			c.Gate = gateOf(t, `
rules:
  - {name: mine, action: danmaku, scope: user_room, rate: 1, burst: 3}
  - {name: ours, action: danmaku, scope: room, rate: 1, burst: 4, degrade: {rate: 100, burst: 100}}
`)
		})
		defer w.stop()
		a, b, host := w.join("demo", "a"), w.join("demo", "b"), w.join("demo", "host", as(protocol.RoleHost))
		for i := range 50 {
			a.say(fmt.Sprint("a", i))
		}
		b.say("same")
		b.say("same")
		wantCode(t, b.say("hidden"), protocol.Degraded, protocol.ReasonRoomBusy)
		host.moderate(protocol.ActionMute, target("b", 60))
		b.say("muted")
		if got := slices.Concat(p.calls...); !slices.Equal(got, []string{"a0", "a1", "a2", "same"}) {
			t.Errorf("asked about %q", got)
		}
	})
}

// TestAPlatformIsNotAskedOfItsOwn: what it says by the HTTP API goes out as it is.
func TestAPlatformIsNotAskedOfItsOwn(t *testing.T) {
	p := &platform{}
	w := newWorld(t, newMemoryBus(), asking(p))
	ack := w.hub.Speak(t.Context(), "demo", Caller{Who: Identity{User: "u", Role: protocol.RoleViewer}}, danmakuOf("1", "hello"))
	if ack.Code != protocol.OK || len(p.calls) != 0 {
		t.Errorf("%+v, asked %q", ack, p.calls)
	}
}

// TestWhatIsBarredMeanwhileIsNotShown, and what was said by who has left is.
func TestWhatIsBarredMeanwhileIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{takes: func(int) time.Duration { return 100 * time.Millisecond }}
		w := newWorld(t, newMemoryBus(), asking(p))
		defer w.stop()
		a, b, host := w.join("demo", "a"), w.join("demo", "b"), w.join("demo", "host", as(protocol.RoleHost))
		time.Sleep(time.Second)
		var said sync.WaitGroup
		said.Go(func() { wantCode(t, a.say("bad"), protocol.Forbidden, protocol.ReasonMuted) })
		said.Go(func() { wantCode(t, b.say("good"), protocol.OK, "") })
		time.Sleep(50 * time.Millisecond)
		host.moderate(protocol.ActionMute, target("a", 60))
		b.Leave()
		said.Wait()
		time.Sleep(time.Second)
		if got := texts(host.seen("danmaku")); !slices.Equal(got, []string{"good"}) {
			t.Errorf("seen: %q", got)
		}
	})
}

// TestNoMoreWaitThanMay: beyond the room's bound and the session's, a danmaku is told to come later, and was not said.
func TestNoMoreWaitThanMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &platform{takes: func(int) time.Duration { return time.Second }}
		w := newWorld(t, newMemoryBus(), func(c *Config) { asking(p)(c); c.Gate = gateOf(t, unlimited) })
		defer w.stop()
		var all []*viewer
		for i := range mostVetted + 10 {
			all = append(all, w.join("demo", fmt.Sprint("u", i)))
		}
		later := 0
		for _, ack := range speak(all, func(i int) string { return fmt.Sprint("text ", i) }) {
			if ack.Reason == string(protocol.ReasonTryLater) && ack.Retry > 0 {
				later++
			}
		}
		if later != 10 {
			t.Errorf("%d were told to come later", later)
		}
		all[0].full = true
		wantCode(t, all[0].say("another"), protocol.Unavailable, protocol.ReasonTryLater)
		all[0].full = false
		wantCode(t, all[0].say("another"), protocol.OK, "")
		if n := w.hub.opened()[0].vetted.waiting; n != 0 {
			t.Errorf("%d wait in the end", n)
		}
	})
}

// joinHook grants by user.
type joinHook func(room string, who *Identity) (Grant, *protocol.Error)

func (f joinHook) MayJoin(_ context.Context, room string, who *Identity) (Grant, *protocol.Error) {
	return f(room, who)
}

// TestThePlatformSaysWhoComesIn: as what, muted or not, over refreshed tokens too; and whom it does not want is told its words.
func TestThePlatformSaysWhoComesIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attrs := protocol.Attrs(`{"level":9}`)
		asked := 0
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			c.Verify = func(_, token string) (Identity, *protocol.Error) {
				return Identity{User: token, Role: protocol.RoleViewer, Attrs: `{"level":1}`}, nil
			}
			c.Gate = gateOf(t, unlimited+`
  - {name: high, action: danmaku, scope: user_room, rate: 1, burst: 1, where: {level: ">=9"}}
  - {name: joins, action: join, scope: user, algorithm: concurrency, burst: 1}
`)
			c.JoinHook = joinHook(func(room string, who *Identity) (Grant, *protocol.Error) {
				asked++
				switch who.User {
				case "mod":
					return Grant{Role: protocol.RoleModerator}, nil
				case "high":
					return Grant{Attrs: &attrs}, nil
				case "quiet":
					return Grant{Mute: time.Minute, Role: protocol.RoleModerator}, nil
				case "out":
					return Grant{}, &protocol.Error{Reason: protocol.ReasonRejected, Detail: "会员专享"}
				case "unknown":
					return Grant{}, &protocol.Error{Reason: protocol.ReasonUnavailable}
				}
				return Grant{}, nil
			})
		})
		defer w.stop()
		v, high := w.join("demo", "v"), w.join("demo", "high")
		wantCode(t, v.say("hello"), protocol.OK, "")
		for range 2 {
			wantCode(t, high.say(fmt.Sprint("one ", time.Now())), protocol.OK, "")
			wantCode(t, high.say("two"), protocol.TooMany, protocol.ReasonRateLimited) // by a rule for its level
			wantCode(t, high.ask(protocol.Request{Op: protocol.OpRefresh, Token: "high"}), protocol.OK, "")
			time.Sleep(time.Second)
		}
		if e := v.seen("danmaku"); len(e) < 2 || high.who.Load().Attrs != attrs {
			t.Errorf("attributes %s", high.who.Load().Attrs)
		}
		mod := w.join("demo", "mod")
		for range 2 {
			wantCode(t, mod.moderate(protocol.ActionMute, target("v", 60)), protocol.OK, "")
			wantCode(t, mod.ask(protocol.Request{Op: protocol.OpRefresh, Token: "mod"}), protocol.OK, "")
		}
		quiet := w.join("demo", "quiet")
		if told := quiet.told("muted"); len(told) != 1 || told[0].Seconds != 60 {
			t.Errorf("told %+v", told)
		}
		for range 2 {
			wantCode(t, quiet.say("psst"), protocol.Forbidden, protocol.ReasonMuted)
			wantCode(t, quiet.moderate(protocol.ActionUnmute, target("v", 0)), protocol.Forbidden, protocol.ReasonMuted)
			wantCode(t, quiet.ask(protocol.Request{Op: protocol.OpRefresh, Token: "quiet"}), protocol.OK, "")
		}
		wantCode(t, quiet.give("g1", "rose", 1), protocol.OK, "")
		time.Sleep(time.Minute)
		wantCode(t, quiet.say("at last"), protocol.OK, "")
		for range 3 { // and the place it took is free again
			_, refusal := w.tryJoin("demo", "out")
			if refusal == nil || refusal.Code != protocol.CloseForbidden || refusal.Answer().Reason != protocol.ReasonRejected || refusal.Answer().Detail != "会员专享" {
				t.Fatalf("who is not wanted: %+v", refusal)
			}
			if said := refusal.Reason(); said != `{"reason":"forbidden","detail":"rejected"}` {
				t.Errorf("closed with %s", said)
			}
			if _, refusal = w.tryJoin("demo", "unknown"); refusal == nil || refusal.Code != protocol.CloseOverloaded || refusal.Reconnect == 0 || refusal.Answer().Reason != protocol.ReasonUnavailable {
				t.Fatalf("when nobody knows: %+v", refusal)
			}
		}
		mod.Leave()
		w.join("demo", "mod") // as its token counted it in, so it was counted out
		n := asked
		host := w.join("demo", "host", as(protocol.RoleHost))
		host.moderate(protocol.ActionBan, target("v", 60))
		if _, refusal := w.tryJoin("demo", "v"); refusal == nil || asked != n+1 {
			t.Errorf("who is banned is asked about: %v", refusal)
		}
		if _, refusal := w.tryJoin("demo", "mod"); refusal == nil || refusal.Rule != "joins" || asked != n+1 {
			t.Errorf("who is over a limit is asked about: %+v", refusal)
		}
	})
}
