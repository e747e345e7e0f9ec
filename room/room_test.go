package room

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a hub on a bus, and those who join it.
type world struct {
	t   testing.TB
	bus *memoryBus
	hub *Hub
	ids atomic.Int64
}

// newWorld starts a hub, which ends with the test. Inside a bubble the test must call stop itself before it returns.
func newWorld(t testing.TB, bus *memoryBus, change func(*Config)) *world {
	t.Helper()
	w := &world{t: t, bus: bus}
	cfg := Config{
		Bus: bus, Gate: gateOf(t, ""), Node: "n1", AutoCreate: true, GiftsBy: protocol.GiftsOpen,
		Gifts: []protocol.CatalogueGift{{ID: "rose", Name: "Rose", Price: 1}, {ID: "rocket", Name: "Rocket", Price: 100}},
	}
	if change != nil {
		change(&cfg)
	}
	hub, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.hub = hub
	bus.set(func(b *memoryBus) {
		for at, was := range b.held {
			room, _, _ := strings.Cut(at, "/")
			hub.HeardHeld(room, was.revision, was.value, true)
		}
		b.heard = append(b.heard, func(room string, seq uint64, value []byte) { hub.HeardHeld(room, seq, value, false) })
	})
	t.Cleanup(w.stop)
	return w
}

func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.hub.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// gateOf compiles rules, the default ones for "".
func gateOf(t testing.TB, yaml string) *limit.Gate {
	t.Helper()
	spec := limit.Default()
	if yaml != "" {
		var err error
		if spec, err = limit.Parse([]byte(yaml)); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit.NewGate(rules, limit.NewClock())
}

// unlimited lets everything pass, with one rule per action because there must be some.
const unlimited = `
rules:
  - {name: danmaku, action: danmaku, scope: room, rate: 1000000000, burst: 1000000000}
  - {name: gift, action: gift, scope: room, rate: 1000000000, burst: 1000000000}
  - {name: like, action: like, scope: room, rate: 1000000000, burst: 1000000000}
  - {name: join, action: join, scope: room, rate: 1000000000, burst: 1000000000}
`

// viewer is a member and its session.
type viewer struct {
	*fakeSession
	*Member
	w *world
}

func (w *world) join(room, user string, change ...func(*JoinRequest)) *viewer {
	w.t.Helper()
	v, refusal := w.tryJoin(room, user, change...)
	if refusal != nil {
		w.t.Fatalf("join of %s: %s", user, refusal.Reason())
	}
	return v
}

func (w *world) tryJoin(room, user string, change ...func(*JoinRequest)) (*viewer, *protocol.Refusal) {
	s := &fakeSession{t: w.t}
	n := int(w.ids.Add(1))
	j := JoinRequest{
		Session: s, SessionID: fmt.Sprintf("s%d", n), Order: n, Conn: &limit.Subject{Scope: limit.ScopeConn},
		Hello: &protocol.Request{Op: protocol.OpHello, ID: "hello", Room: room},
		Who:   Identity{User: user, Name: "Name of " + user, Role: protocol.RoleViewer},
	}
	for _, f := range change {
		f(&j)
	}
	if j.Who.Traits == nil {
		j.Who.Traits = limit.NewTraits(string(j.Who.Attrs))
	}
	m, refusal := w.hub.Join(context.Background(), j)
	if refusal != nil {
		return nil, refusal
	}
	return &viewer{s, m, w}, nil
}

func as(role protocol.Role) func(*JoinRequest) { return func(j *JoinRequest) { j.Who.Role = role } }

func resuming(c protocol.Cursor) func(*JoinRequest) {
	return func(j *JoinRequest) { j.Hello.Resume = &c }
}

// ask sends a request with a new id and returns its ack.
func (v *viewer) ask(req protocol.Request) event {
	v.w.t.Helper()
	if req.ID == "" {
		req.ID = fmt.Sprintf("c%d", v.w.ids.Add(1))
	}
	before := len(v.told(""))
	v.Receive(&req)
	v.given.Wait()
	v.fakeSession.Release() // what is held while the node is behind
	acks := ofKind(v.told("")[before:], "ack")
	if len(acks) != 1 || acks[0].ID != req.ID {
		v.w.t.Fatalf("%s %s: want one ack, have %+v", req.Op, req.ID, acks)
	}
	return acks[0]
}

func (v *viewer) say(text string) event {
	v.w.t.Helper()
	return v.ask(protocol.Request{Op: protocol.OpDanmaku, Text: text})
}

func (v *viewer) give(id, gift string, count int) event {
	v.w.t.Helper()
	return v.ask(protocol.Request{Op: protocol.OpGift, ID: id, Gift: gift, Count: count})
}

func (v *viewer) like(n int) event {
	v.w.t.Helper()
	return v.ask(protocol.Request{Op: protocol.OpLike, Count: n})
}

func wantCode(t testing.TB, e event, code protocol.Code, reason protocol.Reason) {
	t.Helper()
	if e.Code != int(code) || e.Reason != string(reason) {
		t.Fatalf("want %d %s, have %+v", code, reason, e)
	}
}

func texts(events []event) []string {
	var out []string
	for _, e := range events {
		out = append(out, e.Text)
	}
	return out
}

// Over any joins and leaves, online equals the members, on the room, at the gate and in the list.
func TestJoinLeaveModel(t *testing.T) {
	w := newWorld(t, newMemoryBus(), func(c *Config) {
		c.Gate = gateOf(t, unlimited)
		c.SweepEvery, c.RoomIdle = 1e6, 1e6 // a millisecond: rooms and users come and go while others join
	})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		var in []*viewer
		count := map[string]int{}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := w.hub.check(); err != nil {
					t.Fatal(err)
				}
				for id, n := range count {
					r, ok := w.hub.Room(id)
					if n > 0 && !ok || ok && r.Online() != n {
						t.Fatalf("room %s: joined are %d, online says otherwise", id, n)
					}
				}
			},
			"join": func(t *rapid.T) {
				room := fmt.Sprint("r", run, "-", rapid.IntRange(0, 3).Draw(t, "room"))
				v := w.join(room, fmt.Sprint("u", rapid.IntRange(0, 3).Draw(t, "user")))
				in = append(in, v)
				count[room]++
			},
			"leave": func(t *rapid.T) {
				if len(in) == 0 {
					return
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "who")
				in[i].Leave()
				in[i].Leave() // the second must do nothing
				count[in[i].room.id]--
				in = slices.Delete(in, i, i+1)
			},
		})
		for _, v := range in {
			v.Leave()
		}
	})
	eventually(t, func() bool {
		rooms, users := w.hub.sizes()
		return rooms+users == 0
	})
	w.bus.set(func(b *memoryBus) {
		if n := len(b.feeds); n != 0 {
			t.Fatalf("%d subscriptions are left of rooms that are gone", n)
		}
	})
}
