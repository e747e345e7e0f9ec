package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestTLS: pages, API and sockets over TLS with a certificate from files.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
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

func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return certFile, keyFile, certify(t, certFile, keyFile, 1)
}

// certify writes a new certificate over the one before.
func certify(t *testing.T, certFile, keyFile string, serial int64) (pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

// onePerAddress lets each address connect once and call the API once.
const onePerAddress = `rules:
  - {name: connect-address, action: connect, scope: ip, rate: 1, per: 1h, burst: 1}
  - {name: api-address, action: api, scope: ip, rate: 1, per: 1h, burst: 1}
`

// TestTrustedHops is CASES 30, for sockets and HTTP alike: X-Forwarded-For counts from the right and through trusted
// hops only, and an IPv6 /64 is one address.
func TestTrustedHops(t *testing.T) {
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
