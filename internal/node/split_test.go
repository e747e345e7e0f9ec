package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout"
	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// seat is a session that only knows whether it was closed.
type seat struct{ closed atomic.Bool }

func (*seat) Open([]byte)                 {}
func (*seat) Deliver(*protocol.Broadcast) {}
func (*seat) Release()                    {}
func (*seat) Control([]byte)              {}
func (*seat) Hold([]byte)                 {}
func (*seat) Await(f func()) bool         { f(); return true }
func (*seat) Aside(f func()) bool         { f(); return true }
func (s *seat) Close(protocol.Refusal)    { s.closed.Store(true) }

// roomsNode is the rooms of one node over NATS servers.
type roomsNode struct {
	t      testing.TB
	fabric *fanout.Fabric
	hub    *room.Hub
}

func newRoomsNode(t testing.TB, id, url string) *roomsNode {
	t.Helper()
	f, err := fanout.Open(t.Context(), fanout.Config{NodeID: id, DataDir: t.TempDir(), URLs: []string{url}, Shared: true, ProbeEvery: 20 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := limit.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := room.New(room.Config{Bus: newBus(f), Gate: limit.NewGate(rules, limit.NewClock()), Node: id, MarkKey: []byte("shared"), AutoCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	return &roomsNode{t, f, hub}
}

func (n *roomsNode) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.hub.Close(ctx); err != nil {
		n.t.Error(err)
	}
	if err := n.fabric.Close(ctx); err != nil {
		n.t.Error(err)
	}
}

func (n *roomsNode) join(user string) (*seat, *protocol.Refusal) {
	s := &seat{}
	m, refusal := n.hub.Join(n.t.Context(), room.JoinRequest{
		Session: s, SessionID: user, Conn: &limit.Subject{Scope: limit.ScopeConn},
		Hello: &protocol.Request{Op: protocol.OpHello, ID: "1", Room: "demo"}, Who: room.Identity{User: user, Name: user, Role: protocol.RoleViewer},
	})
	if m != nil {
		n.t.Cleanup(m.Leave)
	}
	return s, refusal
}

// ban has a host ban somebody, and returns the answer's code.
func (n *roomsNode) ban(user string) protocol.Code {
	req := &protocol.Request{Op: protocol.OpModerate, ID: "ban-" + user, Action: protocol.ActionBan, User: user, Reason: "spam"}
	return n.hub.Speak(n.t.Context(), "demo", room.Caller{Who: room.Identity{User: "host", Role: protocol.RoleHost}}, req).Code
}

func (n *roomsNode) bans() (out string) {
	n.hub.With(n.t.Context(), "demo", nil, func(r *room.Room) *protocol.Error {
		for _, s := range r.Sanctions(protocol.ActionBan, "", "", 10) {
			out = s.User + " " + out
		}
		return nil
	})
	return out
}

func within(t *testing.T, bound time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !is(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(what)
		}
	}
}

// With NATS split both sides ban; healed, both sides' bans hold on both, on live sockets as for newcomers, in the audit, and after a restart.
func TestBansOfBothSidesOfASplitHold(t *testing.T) {
	server, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer server.WaitForShutdown()
	defer server.Shutdown()
	if !server.ReadyForConnections(time.Minute) {
		t.Fatal("no NATS server")
	}
	proxy := redistest.NewProxy(t, server.Addr().String())
	here, cutOff := newRoomsNode(t, "n1", server.ClientURL()), newRoomsNode(t, "n2", "nats://"+proxy.Addr)
	defer here.close()
	sockets := map[string][2]*seat{}
	for _, user := range []string{"a", "b", "c"} {
		one, refused := here.join(user)
		other, refusedToo := cutOff.join(user)
		if refused != nil || refusedToo != nil {
			t.Fatal(refused, refusedToo)
		}
		sockets[user] = [2]*seat{one, other}
	}
	gone := func(user string, where int) func() bool { return sockets[user][where].closed.Load }
	if code := here.ban("c"); code != protocol.OK {
		t.Fatal(code)
	}
	within(t, 10*time.Second, "a ban on the other node", gone("c", 1))

	proxy.Refuse(true)
	proxy.Cut()
	within(t, 30*time.Second, "the split is not noticed", func() bool { return !cutOff.fabric.Link.Healthy() })
	if code := here.ban("a"); code != protocol.OK {
		t.Errorf("on the side of the store: %d", code)
	}
	if code := cutOff.ban("b"); code != protocol.Degraded {
		t.Errorf("on the side without: %d", code)
	}
	within(t, 10*time.Second, "b's socket on the node that was asked", gone("b", 1))
	if _, refusal := cutOff.join("b"); refusal == nil {
		t.Error("b is back on the side that banned it")
	}
	if sockets["b"][0].closed.Load() || sockets["a"][1].closed.Load() {
		t.Error("the sides are not apart")
	}

	proxy.Refuse(false)
	within(t, 30*time.Second, "a's socket on the side that was cut off", gone("a", 1))
	within(t, 30*time.Second, "b's socket on the side of the store", gone("b", 0))
	third := newRoomsNode(t, "n3", server.ClientURL())
	defer third.close()
	for i, n := range []*roomsNode{here, cutOff, third} {
		within(t, 10*time.Second, fmt.Sprint("node ", i+1), func() bool { return len(n.bans()) == len("a b c ") })
		for _, user := range []string{"a", "b", "c"} {
			if _, refusal := n.join(user); refusal == nil {
				t.Errorf("%s is back on node %d", user, i+1)
			}
		}
	}
	within(t, 10*time.Second, "the audit has all three", func() bool {
		kept, err := here.fabric.Store.Audit.AuditOf(t.Context(), "demo", 0, 10)
		return err == nil && len(kept.Records) == 3
	})
	cutOff.close()
	again := newRoomsNode(t, "n2", server.ClientURL())
	defer again.close()
	within(t, 10*time.Second, "all three after a restart", func() bool { return len(again.bans()) == len("a b c ") })
}
