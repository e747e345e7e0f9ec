package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

var service = Caller{Who: Identity{User: "svc", Role: protocol.RoleService}}

func customs(c *Config) { c.EventTypes = []string{"poll"} }

func poll(id string, change ...func(*protocol.Custom)) *protocol.Custom {
	e := &protocol.Custom{ID: id, Type: "poll", Data: json.RawMessage(`{"n":1}`)}
	for _, f := range change {
		f(e)
	}
	return e
}

func to(who protocol.To, user string) func(*protocol.Custom) {
	return func(e *protocol.Custom) { e.To, e.User = who, user }
}

func wantAck(t testing.TB, a protocol.Ack, code protocol.Code, reason protocol.Reason) {
	t.Helper()
	if a.Code != code || a.Err == nil != (reason == "") || a.Err != nil && a.Err.Reason != reason {
		t.Fatalf("want %d %s, have %+v", code, reason, a)
	}
}

// A custom event reaches whom it is for on every node, once, by whichever node it is sent again.
func TestCustomEventsReachThoseTheyAreFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		n1, n2 := newWorld(t, bus, customs), newWorld(t, bus, customs)
		host := n1.join("demo", "host", as(protocol.RoleHost))
		u1, u2, other := n1.join("demo", "u"), n2.join("demo", "u"), n2.join("demo", "v")
		elsewhere := n1.join("aside", "u")
		all := map[string]*viewer{"host": host, "u1": u1, "u2": u2, "other": other, "elsewhere": elsewhere}
		counts := func() (out string) {
			time.Sleep(100 * time.Millisecond)
			for _, name := range []string{"host", "u1", "u2", "other", "elsewhere"} {
				out += fmt.Sprint(len(all[name].seen("custom")), "/", len(all[name].told("custom")), " ")
			}
			return out
		}
		emit := func(w *world, e *protocol.Custom) protocol.Ack { return w.hub.Emit(t.Context(), "demo", service, e) }

		first := emit(n1, poll("1"))
		wantAck(t, first, protocol.OK, "")
		if got := counts(); got != "1/0 1/0 1/0 1/0 0/0 " {
			t.Fatalf("to the room: %s", got)
		}
		if e := other.seen("custom")[0]; e.MID != first.MID || e.TS != first.TS {
			t.Errorf("acknowledged %+v, shown %+v", first, e)
		}
		for _, w := range []*world{n1, n2} {
			if again := emit(w, poll("1")); again.MID != first.MID || again.TS != first.TS || !again.Duplicate {
				t.Errorf("again: %+v", again)
			}
			wantAck(t, emit(w, poll("1", to(protocol.ToHosts, ""))), protocol.Conflict, protocol.ReasonConflict)
		}
		wantAck(t, emit(n2, poll("2", to(protocol.ToUser, "u"))), protocol.OK, "")
		wantAck(t, emit(n2, poll("3", to(protocol.ToHosts, ""))), protocol.OK, "")
		wantAck(t, emit(n1, poll("4", func(e *protocol.Custom) { e.Class = "danmaku" })), protocol.OK, "")
		if got := counts(); got != "2/1 2/1 2/1 2/0 0/0 " {
			t.Fatalf("to user, hosts and room: %s", got)
		}
		if late := n2.join("demo", "late"); len(late.at("custom")) != 0 {
			t.Error("an event is told to who came later")
		}
		wantAck(t, emit(n1, poll("5", func(e *protocol.Custom) { e.Type = "pol" })), protocol.BadRequest, protocol.ReasonBadRequest)
		bus.set(func(b *memoryBus) { b.down = true })
		wantAck(t, emit(n1, poll("6")), protocol.Unavailable, protocol.ReasonTryLater)
		n1.stop()
		n2.stop()
	})
}

// What was sent is known among the newest of the room, and the memory of it is bounded.
func TestHeardEventsAreBounded(t *testing.T) {
	var h heard
	once := func(mid string) (fresh bool) {
		h.take(&custom{MID: mid}, func() bool { fresh = true; return true })
		return fresh
	}
	for n := range 3 * heardMost {
		if !once(fmt.Sprint(n)) {
			t.Fatalf("%d is known", n)
		}
	}
	if n := len(h.known); n != heardMost || len(h.order) != heardMost {
		t.Fatalf("%d are known, %d in order", n, len(h.order))
	}
	if once(fmt.Sprint(2*heardMost)) || !once(fmt.Sprint(2*heardMost-1)) {
		t.Error("the newest are known, and no others")
	}
	if h.take(&custom{MID: "refused"}, func() bool { return false }) {
		t.Error("taken by nobody")
	}
	if !once("refused") {
		t.Error("what nobody took is known")
	}
}

func TestCustomEventsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) {
			customs(c)
			c.Gate = gateOf(t, "rules:\n  - {name: event-room, action: event, scope: room, rate: 1, burst: 2}\n")
		})
		defer w.stop()
		for id, code := range []protocol.Code{protocol.OK, protocol.OK, protocol.TooMany} {
			if ack := w.hub.Emit(t.Context(), "demo", service, poll(fmt.Sprint(id))); ack.Code != code || ack.Err != nil && ack.Err.Rule != "event-room" {
				t.Fatalf("%d: %+v", id, ack)
			}
		}
		wantAck(t, w.hub.Emit(t.Context(), "demo", service, poll("1")), protocol.OK, "") // was let in, and is free
		time.Sleep(time.Second)
		wantAck(t, w.hub.Emit(t.Context(), "demo", service, poll("2")), protocol.OK, "")
	})
}

// A broadcast reaches every room of every node, never all of a node's sessions in one tick, and again only where it has not been.
func TestBroadcastIsPacedAndComesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []*world
		deaf := map[int]bool{}
		everywhere := func(c *Config) {
			customs(c)
			c.Everywhere = func(_ context.Context, message []byte) error {
				var faults []error
				for i, w := range nodes {
					if deaf[i] {
						faults = append(faults, errors.New("does not answer"))
						continue
					}
					faults = append(faults, w.hub.Heard(message))
				}
				return errors.Join(faults...)
			}
		}
		bus := newMemoryBus()
		nodes = []*world{newWorld(t, bus, everywhere), newWorld(t, bus, everywhere)}
		var all []*viewer
		for i := range 80 {
			all = append(all, nodes[i%2].join(fmt.Sprint("room", i%16), fmt.Sprint("u", i%8)))
		}
		told := func() (n int) {
			for _, v := range all {
				n += len(v.seen("custom")) + len(v.told("custom"))
			}
			return n
		}
		deaf[1] = true
		first := nodes[0].hub.Cast(t.Context(), service.Who, poll("1"))
		wantAck(t, first, protocol.Unavailable, protocol.ReasonTryLater)
		time.Sleep(time.Second)
		if n := told(); n != 40 {
			t.Fatalf("%d of the first node's 40 are told", n)
		}
		deaf[1] = false
		began := time.Now()
		done := nodes[1].hub.Cast(t.Context(), service.Who, poll("1"))
		wantAck(t, done, protocol.OK, "")
		most, before := 0, told()
		for time.Since(began) < time.Second {
			time.Sleep(25 * time.Millisecond)
			now := told()
			most, before = max(most, now-before), now
		}
		if before != 80 || most > 10 {
			t.Errorf("%d of 80 are told, up to %d of a node's 40 in one tick", before, most)
		}
		wantAck(t, nodes[0].hub.Cast(t.Context(), service.Who, poll("1", to(protocol.ToHosts, ""))), protocol.Conflict, protocol.ReasonConflict)

		wantAck(t, nodes[0].hub.Cast(t.Context(), service.Who, poll("2", to(protocol.ToUser, "u3"))), protocol.OK, "")
		time.Sleep(time.Second)
		if n := told(); n != 90 {
			t.Errorf("%d told, want 80 and the ten sessions of u3", n)
		}
		for _, w := range nodes {
			w.stop()
		}
	})
}

// More broadcasts than may wait are refused, and what was refused may be sent again.
func TestBroadcastsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), customs)
		defer w.stop()
		for i := range 16 { // so that one takes eight ticks
			w.join(fmt.Sprint("room", i), fmt.Sprint("u", i))
		}
		refused := ""
		for i := range maxCasts + 2 {
			ack := w.hub.Cast(t.Context(), service.Who, poll(fmt.Sprint(i)))
			synctest.Wait()
			if ack.Code != protocol.OK {
				wantAck(t, ack, protocol.Unavailable, protocol.ReasonTryLater)
				refused = ack.ID
			}
		}
		if refused != fmt.Sprint(maxCasts+1) {
			t.Fatalf("refused is %q, want the one beyond %d that wait and one under way", refused, maxCasts)
		}
		time.Sleep(time.Minute)
		wantAck(t, w.hub.Cast(t.Context(), service.Who, poll(refused)), protocol.OK, "")
	})
}
