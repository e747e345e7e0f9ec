package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"liveroom/internal/redistest"
)

// natsServer starts a NATS server of the test's own, as an operator would run one, and returns its URL.
func natsServer(t *testing.T) string {
	t.Helper()
	return startNATS(t).ClientURL()
}

func startNATS(t *testing.T) *natsserver.Server {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30, SyncAlways: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server is not ready")
	}
	return s
}

func TestUnreachableNATSIsNamed(t *testing.T) {
	t.Parallel()
	err := run(context.Background(), append(serverArgs(t.TempDir()), "-nats", "nats://ann:hidden@127.0.0.1:1"), &lines{}, &lines{}, nil)
	if err == nil || !strings.Contains(err.Error(), "nats: allowed is servers that can be reached") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("the server ended with %v", err)
	}
}

// TestNodesThatMustNotLiveTogether: a second node without Redis, and one whose id is taken, end with the reason.
func TestNodesThatMustNotLiveTogether(t *testing.T) {
	t.Parallel()
	nats := natsServer(t)
	startServer(t, "", "-nats", nats, "-node-id", "n1")
	for id, want := range map[string]string{"n1": "node_id: allowed is one that no other", "n2": "redis: allowed is one that all nodes"} {
		err := run(context.Background(), append(serverArgs(t.TempDir()), "-nats", nats, "-node-id", id), &lines{}, &lines{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s ended with %v", id, err)
		}
	}
}

// startNodes starts several servers in this process that know nothing of one another but the NATS servers' address.
func startNodes(t *testing.T, n int, args ...string) []*server {
	t.Helper()
	nats, redis := natsServer(t), redistest.Start(t).URL()
	nodes := make([]*server, n)
	for i := range nodes {
		nodes[i] = startServer(t, "", append([]string{"-nats", nats, "-redis", redis, "-node-id", fmt.Sprintf("n%d", i+1)}, args...)...)
	}
	return nodes
}

// TestTwoNodesAreOneRoom follows each kind of message from one node to the other.
func TestTwoNodesAreOneRoom(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2)
	host := join(t, nodes[1].url, "demo", nodes[0].hostToken) // signed by the other node
	guest := join(t, nodes[0].url, "demo", "")
	guest.wait("both online", func(e event) bool { return e.kind() == "online" && e.num("count") == 2 })

	again := join(t, nodes[1].url, "demo", guest.welcome.str("guest_token"))
	if id := again.welcome.in("user").str("id"); id != guest.welcome.in("user").str("id") {
		t.Errorf("the guest is %s on the other node", id)
	}
	host.wait("two persons in three windows", func(e event) bool { return e.kind() == "online" && e.num("count") == 3 && e.num("people") == 2 })
	if list := nodes[0].call(t, http.MethodGet, "/rooms/demo/people", nodes[0].adminToken, "").body["people"].([]any); len(list) != 2 {
		t.Errorf("persons %v", list)
	}
	ack := guest.ask("danmaku", `,"text":"hello over there"`)
	if e := host.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }); e.str("mid") != ack.str("mid") || e.num("ts") != ack.num("ts") {
		t.Errorf("the other node shows %v after %v", e, ack)
	}
	ack = host.ask("gift", `,"gift":"rose","count":2`)
	if e := guest.wait("gift", func(e event) bool { return e.kind() == "gift" }); ack.num("code") != 200 || e.num("seq") != ack.num("seq") {
		t.Errorf("the other node shows %v after %v", e, ack)
	}
	for _, c := range []*client{host, guest} {
		if ack := c.ask("like", `,"count":2`); ack.num("code") != 200 {
			t.Errorf("like %v", ack)
		}
	}
	for _, c := range []*client{host, guest} {
		c.wait("all likes", func(e event) bool { return e.kind() == "like" && e.num("total") == 4 })
	}
	began := time.Now()
	if res := nodes[1].call(t, http.MethodPut, "/gifts", nodes[0].adminToken, `{"gifts":[{"id":"tea","name":"Tea","price":5}]}`, "If-Match", `"v1"`); res.status != 200 {
		t.Fatalf("catalogue: %v", res.body)
	}
	for _, c := range []*client{guest, host} {
		c.wait("the new catalogue", func(e event) bool { return e.kind() == "gifts" && e.num("gifts_version") == 2 })
	}
	t.Logf("told of the catalogue after %v", time.Since(began))
	if ack := guest.ask("gift", `,"gift":"rose"`); ack.str("reason") != "not_found" {
		t.Errorf("a gift that was taken away: %v", ack)
	}
	if ack := host.ask("gift", `,"gift":"tea"`); ack.num("code") != 200 {
		t.Errorf("a new gift: %v", ack)
	}
	began = time.Now()
	if res := nodes[1].call(t, http.MethodPut, "/filter", nodes[0].adminToken, `{"words":[{"word":"gold","action":"refuse"}]}`, "If-Match", `"v1"`); res.status != 200 {
		t.Fatalf("words: %v", res.body)
	}
	await(t, "the platform's words", func() bool {
		return nodes[0].call(t, http.MethodGet, "/filter", nodes[0].adminToken, "").body.num("version") == 2
	})
	t.Logf("the words were in force on the other node after %v", time.Since(began))
	began = time.Now()
	if res := nodes[1].call(t, http.MethodPut, "/rooms/demo", nodes[0].hostToken, `{"filter":{"words":[{"word":"silver","action":"refuse"}]}}`); res.status != 200 {
		t.Fatalf("the room's words: %v", res.body)
	}
	await(t, "the room's words", func() bool {
		return nodes[0].call(t, http.MethodGet, "/rooms/demo", nodes[0].hostToken, "").body.in("filter")["words"] != nil
	})
	t.Logf("and the room's after %v", time.Since(began))
	for _, text := range []string{"G O L D", "s.i.l.v.e.r"} {
		if ack := guest.ask("danmaku", fmt.Sprintf(`,"text":%q`, text)); ack.str("reason") != "filtered" {
			t.Errorf("%s on the other node: %v", text, ack)
		}
	}
	if ack := host.ask("moderate", `,"action":"slow_mode","seconds":5`); ack.num("code") != 200 {
		t.Errorf("slow mode %v", ack)
	}
	guest.wait("slow mode", func(e event) bool { return e.kind() == "room" && e.num("slow_mode_ms") == 5000 })
	began = time.Now()
	if ack := host.ask("moderate", fmt.Sprintf(`,"action":"mute","seconds":600,"user":%q`, guest.welcome.in("user").str("id"))); ack.num("code") != 200 {
		t.Errorf("mute %v", ack)
	}
	guest.wait("that it is muted", func(e event) bool { return e.kind() == "muted" })
	t.Logf("a mute was in force on the other node after %v", time.Since(began))
	if ack := guest.ask("danmaku", `,"text":"psst"`); ack.str("reason") != "muted" {
		t.Errorf("a muted one on the other node: %v", ack)
	}
	banned := join(t, nodes[0].url, "demo", "")
	began = time.Now()
	if ack := host.ask("moderate", fmt.Sprintf(`,"action":"ban","seconds":600,"user":%q`, banned.welcome.in("user").str("id"))); ack.num("code") != 200 {
		t.Errorf("ban %v", ack)
	}
	if code, why := banned.closed(); code != 4403 || why.str("detail") != "banned" {
		t.Errorf("banned with %d %v", code, why)
	}
	t.Logf("a ban closed the other node's socket after %v", time.Since(began))
	if ack := host.ask("moderate", fmt.Sprintf(`,"action":"kick","user":%q`, guest.welcome.in("user").str("id"))); ack.num("code") != 200 {
		t.Errorf("kick %v", ack)
	}
	for _, c := range []*client{guest, again} {
		if code, _ := c.closed(); code != 4004 {
			t.Errorf("kicked with %d", code)
		}
	}
}

// TestCustomEventsReachAllNodes: an event of the platform's own and a broadcast come to whom they are for wherever they are, once,
// whichever node is asked and asked again.
func TestCustomEventsReachAllNodes(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2, "-events-types", "poll,bell")
	host := join(t, nodes[0].url, "demo", nodes[0].hostToken)
	here := join(t, nodes[0].url, "demo", "")
	there := join(t, nodes[1].url, "demo", here.welcome.str("guest_token"))
	aside := join(t, nodes[1].url, "aside", "")
	wait := func(c *client, mid string) event {
		return c.wait("event "+mid, func(e event) bool { return e.kind() == "custom" && e.str("mid") == mid })
	}
	send := func(s *server, path, body string) string {
		t.Helper()
		res := s.call(t, http.MethodPost, path, nodes[0].adminToken, body)
		if res.status != 200 {
			t.Fatalf("%s %s: %d %v", path, body, res.status, res.body)
		}
		return res.body.str("mid")
	}
	user := here.welcome.in("user").str("id")
	mine := fmt.Sprintf(`{"id":"1","type":"poll","data":{"n":[1,2]},"to":"user","user":%q}`, user)
	first := send(nodes[0], "/rooms/demo/events", mine)
	for _, c := range []*client{here, there} {
		if e := wait(c, first); e.str("type") != "poll" || fmt.Sprint(e.in("data")["n"]) != "[1 2]" {
			t.Errorf("shown as %v", e)
		}
	}
	if again := send(nodes[1], "/rooms/demo/events", mine); again != first {
		t.Errorf("sent again it is %s, not %s", again, first)
	}
	bell := `{"id":"1","type":"bell","class":"danmaku"}`
	rung := send(nodes[1], "/broadcast", bell)
	if again := send(nodes[0], "/broadcast", bell); again != rung {
		t.Errorf("sent again it is %s, not %s", again, rung)
	}
	last := send(nodes[0], "/broadcast", `{"id":"2","type":"bell"}`)
	for name, c := range map[string]*client{"host": host, "here": here, "there": there, "aside": aside} {
		seen := 0
		c.wait("the last event", func(e event) bool {
			if e.kind() == "custom" {
				seen++
			}
			return e.str("mid") == last
		})
		if seen != 2 {
			t.Errorf("%s: %d events after its own, want both broadcasts once", name, seen)
		}
	}
}
