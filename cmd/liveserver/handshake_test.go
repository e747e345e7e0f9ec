package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestHandshake is CASES 8: only a known subprotocol is selected, no token is ever echoed, and a refused hello is a
// close code that a page can read.
func TestHandshake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, "-origins", "https://live.example")
	secretive := tokenFor(t, dir, "-sub", "ann")
	try := func(offers []string, origin string) (*websocket.Conn, *http.Response, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		o := &websocket.DialOptions{Subprotocols: offers, HTTPHeader: http.Header{}}
		if origin != "" {
			o.HTTPHeader.Set("Origin", origin)
		}
		return websocket.Dial(ctx, strings.Replace(s.url, "http", "ws", 1)+"/ws", o)
	}
	for _, tc := range []struct {
		name   string
		offers []string
		origin string
		status int
		want   string
	}{
		{"ours", []string{"liveroom.v1"}, "", 101, "liveroom.v1"},
		{"none", nil, "", 101, ""},
		{"ours among others", []string{"x", "liveroom.v1"}, "", 101, "liveroom.v1"},
		{"a token beside ours", []string{secretive, "liveroom.v1"}, "", 101, "liveroom.v1"},
		{"a token alone", []string{secretive}, "", 400, ""},
		{"unknown ones", []string{"graphql-ws", "mqtt"}, "", 400, ""},
		{"its own page", nil, s.url, 101, ""},
		{"a configured origin", nil, "https://live.example", 101, ""},
		{"another origin", nil, "https://evil.example", 403, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ws, res, err := try(tc.offers, tc.origin)
			if ws != nil {
				defer ws.CloseNow()
			}
			if res == nil || res.StatusCode != tc.status {
				t.Fatalf("got %v %v", res, err)
			}
			if got := res.Header.Get("Sec-WebSocket-Protocol"); got != tc.want {
				t.Errorf("selected %q", got)
			}
			for name, values := range res.Header {
				if strings.Contains(strings.Join(values, " "), secretive) {
					t.Errorf("the token is echoed in %s", name)
				}
			}
		})
	}
	if strings.Contains(s.logs.String(), secretive) {
		t.Error("the token is in the log")
	}
}

// TestRefusedHellos: what is wrong with a hello arrives as a close code.
func TestRefusedHellos(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, "-auth-guests=false", "-rooms-auto-create=false", "-sessions-hello-timeout", "2s")
	admin := s.adminToken
	if res := s.call(t, http.MethodPut, "/rooms/demo", admin, `{"title":"Demo"}`); res.status != 200 {
		t.Fatalf("PUT: %v", res)
	}
	for _, tc := range []struct {
		name, hello string
		code        int
	}{
		{"no token", `{"op":"hello","id":"1","room":"demo"}`, 4401},
		{"a bad token", `{"op":"hello","id":"1","room":"demo","token":"x.y.z"}`, 4401},
		{"a token for another room", `{"op":"hello","id":"1","room":"demo","token":"` + tokenFor(t, dir, "-role", "host", "-rooms", "other") + `"}`, 4403},
		{"no such room", `{"op":"hello","id":"1","room":"nowhere","token":"` + admin + `"}`, 4404},
		{"a room that can't be", `{"op":"hello","id":"1","room":"a b","token":"` + admin + `"}`, 4002},
		{"no hello but a danmaku", `{"op":"danmaku","id":"1","text":"hi"}`, 4002},
		{"no JSON", `hello`, 4002},
		{"nothing at all", ``, 4002},
		{"too much", `{"op":"hello","id":"1","room":"` + strings.Repeat("x", 17<<10) + `"}`, 1009},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, s.url, nil)
			if tc.hello != "" {
				c.tell(tc.hello)
			}
			if code, reason := c.closed(); code != tc.code {
				t.Errorf("closed with %d %v, want %d", code, reason, tc.code)
			}
		})
	}
	if c := join(t, s.url, "demo", admin); c.welcome.in("user").str("role") != "admin" {
		t.Errorf("welcome %v", c.welcome)
	}
}

// TestTokenEndsItsSocket: a socket is closed with 4401 when its token ends, unless it was refreshed (CASES 15).
func TestTokenEndsItsSocket(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	brief := func() string { return tokenFor(t, dir, "-sub", "ann", "-ttl", "1s") }
	lapsing, kept := join(t, s.url, "demo", brief()), join(t, s.url, "demo", brief())
	if ack := kept.ask("refresh", `,"token":"`+tokenFor(t, dir, "-sub", "bob")+`"`); ack.num("code") != 403 {
		t.Errorf("refreshed by another user's token: %v", ack)
	}
	if ack := kept.ask("refresh", `,"token":"`+tokenFor(t, dir, "-sub", "ann")+`"`); ack.num("code") != 200 {
		t.Fatalf("refresh: %v", ack)
	}
	if code, reason := lapsing.closed(); code != 4401 {
		t.Errorf("closed with %d %v", code, reason)
	}
	if ack := kept.ask("danmaku", `,"text":"still here"`); ack.num("code") != 200 {
		t.Errorf("the refreshed socket: %v", ack)
	}
}
