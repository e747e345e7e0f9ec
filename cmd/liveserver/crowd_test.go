package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// TestACrowdOfOneNetworkLeavesTheOthersRoom: guests of one /24, each within its own limits, get a bounded part of a room.
func TestACrowdOfOneNetworkLeavesTheOthersRoom(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", "-trusted-proxies", "127.0.0.1/32")
	enter := func(addr string) *client {
		c := dial(t, s.url, &websocket.DialOptions{Subprotocols: []string{"liveroom.v1"}, HTTPHeader: http.Header{"X-Forwarded-For": {addr}}})
		c.send(`{"op":"hello","id":"h","room":"demo"}`)
		c.wait("a welcome", func(e event) bool { return e.kind() == "welcome" })
		return c
	}
	var crowd, others []*client
	for i := range 40 {
		crowd = append(crowd, enter(fmt.Sprintf("192.0.2.%d", 2+i%4)))
	}
	for i := range 10 {
		others = append(others, enter(fmt.Sprintf("198.51.%d.7", i)))
	}
	refused := 0
	for n := 0; n < 10 && refused == 0; n++ { // until the network's 60 at once and what has come since are gone
		for i, c := range crowd {
			if ack := c.ask("danmaku", fmt.Sprintf(`,"text":"%d of %d"`, n, i)); ack.num("code") == 429 && ack.str("scope") == "net_room" { // by what is said at once, or by the crowd's share of the room
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("the crowd was never bounded")
	}
	for i, c := range others {
		if ack := c.ask("danmaku", fmt.Sprintf(`,"text":"hello from %d"`, i)); ack.num("code") != 200 {
			t.Errorf("the honest number %d: %v", i, ack)
		}
	}
}

// TestABadHelloCostsItsAddress: one arrival more than a good one, so that guessing tokens ends sooner than coming in.
func TestABadHelloCostsItsAddress(t *testing.T) {
	t.Parallel()
	rules := write(t, "rules:\n  - {name: arrivals, action: connect, scope: ip, rate: 0, burst: 10}\n")
	s := startServer(t, "", "-trusted-proxies", "127.0.0.1/32", "-limits-file", rules)
	left := func(addr string) int64 {
		res := s.call(t, http.MethodGet, "/limits/explain?action=connect&addr="+addr, s.adminToken, "")
		for _, r := range res.body["rules"].([]any) {
			if r := event(r.(map[string]any)); r.str("rule") == "arrivals" {
				return r.num("level")
			}
		}
		t.Fatalf("the rule is not asked: %v", res)
		return 0
	}
	for addr, c := range map[string]struct {
		token string
		left  int64
	}{"192.0.2.1": {"", 9}, "192.0.2.2": {"x.y.z", 8}} {
		ws := dial(t, s.url, &websocket.DialOptions{Subprotocols: []string{"liveroom.v1"}, HTTPHeader: http.Header{"X-Forwarded-For": {addr}}})
		ws.send(fmt.Sprintf(`{"op":"hello","id":"h","room":"demo","token":%q}`, c.token))
		if c.token == "" {
			ws.wait("a welcome", func(e event) bool { return e.kind() == "welcome" })
		} else if code, _ := ws.closed(); code != 4401 {
			t.Errorf("closed with %d", code)
		}
		if n := left(addr); n != c.left {
			t.Errorf("token %q: %d arrivals left, want %d", c.token, n, c.left)
		}
	}
}
