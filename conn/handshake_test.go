package conn

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

func TestSubprotocols(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	for _, c := range []struct {
		offer  []string
		status int
		want   string
	}{
		{nil, 101, ""},
		{[]string{Subprotocol}, 101, Subprotocol},
		{[]string{"graphql-ws", Subprotocol}, 101, Subprotocol},
		{[]string{"graphql-ws"}, 400, ""},
		{[]string{"eyJhbGciOiJIUzI1NiJ9.secret"}, 400, ""},
		{[]string{Subprotocol, "eyJhbGciOiJIUzI1NiJ9.secret"}, 101, Subprotocol},
		{[]string{""}, 101, ""},
	} {
		h := http.Header{}
		if c.offer != nil {
			h.Set("Sec-WebSocket-Protocol", strings.Join(c.offer, ", "))
		}
		resp := upgradeRequest(t, n, h)
		if resp.StatusCode != c.status || resp.Header.Get("Sec-WebSocket-Protocol") != c.want {
			t.Errorf("%v: got %d, %q", c.offer, resp.StatusCode, resp.Header.Get("Sec-WebSocket-Protocol"))
		}
		for k, v := range resp.Header {
			if strings.Contains(strings.Join(v, ""), "secret") {
				t.Errorf("%v: echoed in %s", c.offer, k)
			}
		}
	}
}

// upgradeRequest does the handshake alone.
func upgradeRequest(t *testing.T, n *node, h http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(testCtx(t), http.MethodGet, "http://"+n.addr+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h.Clone()
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
		req.Header.Set(k, v)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func TestOrigins(t *testing.T) {
	n := startNode(t, Config{Origins: []string{"*.example.com", "https://exact.example.org"}}, newLobby())
	for origin, status := range map[string]int{
		"":                          101,
		"http://" + n.addr:          101,
		"https://live.example.com":  101,
		"https://exact.example.org": 101,
		"http://exact.example.org":  403,
		"https://evil.example.net":  403,
		"null":                      403,
	} {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		if got := upgradeRequest(t, n, h).StatusCode; got != status {
			t.Errorf("%q: got %d, want %d", origin, got, status)
		}
	}
}

func TestNoUpgradeIsRefusedByStatus(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	resp, err := http.Get("http://" + n.addr + "/ws")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Fatalf("got %d", resp.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	if got := n.sessions.Load(); got != 0 {
		t.Fatalf("%d places are taken", got)
	}
}

// A full node tells a bounded number of clients so by a close code, and the rest by a status; nobody waits in vain.
func TestFullNode(t *testing.T) {
	n := startNode(t, Config{MaxSessions: 1, MaxRefused: 2, Reconnect: time.Second}, newLobby())
	ws, s := n.join(t)
	// Clients that don't answer the close keep their places among those turned away.
	for range 2 {
		f := rawDial(t, n, "").readFrame(t)
		if f.code() != 4003 || reconnect(t, string(f.payload[2:])) < time.Second {
			t.Fatalf("got %d %s", f.code(), f.payload[2:])
		}
	}
	resp := upgradeRequest(t, n, http.Header{})
	after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if resp.StatusCode != 503 || err != nil || after < 1 {
		t.Fatalf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	closeOf(t, ws)
	eventually(t, func() bool { return n.sessions.Load() == 0 }) // the place is free when the session has ended
	n.join(t)
}

// reconnect reads the time to come back from a close reason.
func reconnect(t *testing.T, reason string) time.Duration {
	t.Helper()
	const key = `"reconnect_in_ms":`
	i := strings.Index(reason, key)
	if i < 0 {
		t.Fatalf("no %s in %s", key, reason)
	}
	ms, err := strconv.Atoi(strings.TrimRight(reason[i+len(key):], "}"))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

func TestAddressesAreAdmitted(t *testing.T) {
	banned := netip.MustParseAddr("192.0.2.7")
	cfg := Config{
		ClientAddr: func(r *http.Request) netip.Addr {
			a, _ := netip.ParseAddr(r.Header.Get("X-Test-Addr"))
			return a
		},
		Admit: func(a netip.Addr) (Arrival, *protocol.Error) {
			if a == banned {
				return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: 3 * time.Second}
			}
			return nil, nil
		},
	}
	n := startNode(t, cfg, newLobby())
	ws := n.dial(t, &websocket.DialOptions{HTTPHeader: http.Header{"X-Test-Addr": {banned.String()}}})
	code, reason := closeOf(t, ws)
	if code != 4003 || reconnect(t, reason) < 3*time.Second || !strings.Contains(reason, "try_later") {
		t.Fatalf("got %d %s", code, reason)
	}
	good := n.dial(t, &websocket.DialOptions{HTTPHeader: http.Header{"X-Test-Addr": {"192.0.2.8"}}})
	send(t, good, `{"op":"hello","id":"1","room":"demo"}`)
	if s := <-n.lobby.arrived; s.Addr() != netip.MustParseAddr("192.0.2.8") {
		t.Fatalf("address %v", s.Addr())
	}
}

func TestValidateReportsEveryFault(t *testing.T) {
	err := Config{Origins: []string{"["}, MaxSessions: -1, Heartbeat: -1, QueueFrames: 10, HardFrames: 5, HardBytes: 1}.Validate()
	for _, field := range []string{"Origins", "MaxSessions", "Heartbeat", "HardFrames", "HardBytes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in: %v", field, err)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if _, err := NewAcceptor(Config{MaxRefused: -1}, newLobby()); err == nil {
		t.Error("accepted")
	}
}
