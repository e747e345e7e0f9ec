package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// TestACrowdOfOneNetworkLeavesTheOthersRoom: guests of one /24, each within its own limits, get a bounded part of a room.
func TestACrowdOfOneNetworkLeavesTheOthersRoom(t *testing.T) {
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
			if ack := c.ask("danmaku", fmt.Sprintf(`,"text":"%d of %d"`, n, i)); ack.str("rule") == "danmaku-network" && ack.str("scope") == "net" {
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
