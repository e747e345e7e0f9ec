package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"liveroom/internal/certtest"
)

// TestTLS: pages, API and sockets over TLS with a certificate from files.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certtest.New(t)
	s := startServer(t, "", "-tls-cert", cert, "-tls-key", key)
	if !strings.HasPrefix(s.url, "https://") || !strings.HasPrefix(s.admin, "http://") {
		t.Fatalf("addresses %s %s", s.url, s.admin)
	}
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer browser.CloseIdleConnections()
	res, err := browser.Get(s.url + "/api/v1/rooms")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	c := dial(t, s.url, &websocket.DialOptions{HTTPClient: browser, Subprotocols: []string{"liveroom.v1"}})
	c.send(`{"op":"hello","id":"h","room":"demo"}`)
	c.wait("welcome", func(e event) bool { return e.kind() == "welcome" })
	ack := c.ask("danmaku", `,"text":"over TLS"`)
	if e := c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }); e.str("mid") != ack.str("mid") {
		t.Errorf("got %v after %v", e, ack)
	}
}

// onePerAddress lets each address connect once and call the API once.
const onePerAddress = `rules:
  - {name: connect-address, action: connect, scope: ip, rate: 1, per: 1h, burst: 1}
  - {name: api-address, action: api, scope: ip, rate: 1, per: 1h, burst: 1}
`

// TestTrustedHops is CASES 30, for sockets and HTTP alike: X-Forwarded-For counts from the right and through trusted
// hops only, and an IPv6 /64 is one address.
func TestTrustedHops(t *testing.T) {
	t.Parallel()
	rules := write(t, onePerAddress)
	t.Run("a direct client's header is ignored", func(t *testing.T) {
		s := startServer(t, "", "-limits-file", rules)
		s.wantArrival(t, "203.0.113.1", true)
		s.wantArrival(t, "203.0.113.2", false)
	})
	t.Run("behind a trusted proxy", func(t *testing.T) {
		s := startServer(t, "", "-limits-file", rules, "-trusted-proxies", "127.0.0.0/8")
		s.wantArrival(t, "203.0.113.1", true)
		s.wantArrival(t, "203.0.113.2", true)
		s.wantArrival(t, "203.0.113.1", false)
		s.wantArrival(t, "198.51.100.77, 203.0.113.1", false) // what stands left is the client's invention
		s.wantArrival(t, "203.0.113.1, 127.0.0.9", false)     // through a second trusted hop
		s.wantArrival(t, "2001:db8:1:2:aaaa::1", true)
		s.wantArrival(t, "2001:db8:1:2:bbbb::2", false)
		s.wantArrival(t, "2001:db8:1:3::1", true)
	})
}

// wantArrival connects and calls the API as if from an address, and both must be let in, or neither.
func (s *server) wantArrival(t *testing.T, forwarded string, let bool) {
	t.Helper()
	c := dial(t, s.url, &websocket.DialOptions{HTTPHeader: http.Header{"X-Forwarded-For": {forwarded}}})
	c.tell(`{"op":"hello","id":"h","room":"demo"}`)
	_, err := c.read()
	if let != (err == nil) {
		t.Errorf("socket from %q: let in %v, want %v", forwarded, err == nil, let)
	}
	if code := websocket.CloseStatus(err); !let && code != 4003 {
		t.Errorf("socket from %q: closed with %v", forwarded, code)
	}
	if res := s.call(t, http.MethodGet, "/rooms", "", "", "X-Forwarded-For", forwarded); let != (res.status == 200) {
		t.Errorf("call from %q: status %d, want let in %v", forwarded, res.status, let)
	}
}

// TestHalfOpen is CASES 6: peers that vanish without a word stop counting, whatever they had said before.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", "-sessions-heartbeat", "1s", "-sessions-hello-timeout", "1s")
	watcher := join(t, s.url, "demo", "")
	upgrade := fmt.Sprintf("GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", strings.TrimPrefix(s.url, "http://"))
	for name, after := range map[string]string{
		"joined": masked(`{"op":"hello","id":"h","room":"demo"}`), "never said hello": "",
		"half a frame": masked(`{"op":"hello","id":"h","room":"demo"}`)[:9],
	} {
		nc, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close() // until then the peer neither reads nor speaks
		if _, err := nc.Write([]byte(upgrade + after)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	watcher.wait("two online", func(e event) bool { return e.kind() == "online" && e.num("count") == 2 })
	watcher.wait("one online", func(e event) bool { return e.kind() == "online" && e.num("count") == 1 })
	go func() { // goes on answering pings, until the test closes the socket
		for {
			if _, err := watcher.read(); err != nil {
				return
			}
		}
	}()
	await(t, "a single session", func() bool { return s.metric(t, "liveroom_sessions") == 1 })
}

// masked is a client's text frame with a mask of zeros.
func masked(text string) string {
	return string([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}
