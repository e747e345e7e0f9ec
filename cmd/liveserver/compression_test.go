package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// TestCompression: off agrees to nothing; auto deflates nothing for a single viewer, since that costs more than it saves; on
// does. In each case the viewer sees everything.
func TestCompression(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		setting          string
		agreed, deflates bool
	}{{"off", false, false}, {"auto", true, false}, {"on", true, true}} {
		t.Run(tc.setting, func(t *testing.T) {
			s := startServer(t, "", "-compression", tc.setting)
			c := dial(t, s.url, &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1})
			c.send(`{"op":"hello","id":"h","room":"demo"}`)
			c.wait("welcome", func(e event) bool { return e.kind() == "welcome" })
			for i := range 30 {
				body := fmt.Sprintf(`{"user":{"id":"u%d"},"id":"c","text":"number %d"}`, i, i)
				if res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", s.adminToken, body); res.status != 200 {
					t.Fatalf("danmaku %d: %v", i, res)
				}
			}
			for i := range 30 {
				want := fmt.Sprintf("number %d", i)
				c.wait(want, func(e event) bool { return e.kind() == "danmaku" && e.str("text") == want })
			}
			agreed, out := s.metric(t, "liveroom_deflate_sessions"), s.metric(t, `liveroom_deflate_bytes_total{form="out"}`)
			if (agreed == 1) != tc.agreed || (out > 0) != tc.deflates {
				t.Errorf("%v sessions agreed to deflate, %v bytes were deflated", agreed, out)
			}
		})
	}
}
