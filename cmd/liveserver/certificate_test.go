package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"liveroom/internal/certtest"
)

// serialOf is the serial of the certificate that a new handshake gets.
func serialOf(t *testing.T, addr string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// Sockets over TLS rest. A renewed certificate is served after SIGHUP, sockets stay, and a broken one changes nothing but the log. SIGHUP ends no
// process.
func TestRenewedCertificateOnHangup(t *testing.T) {
	t.Parallel()
	cert, key, pool := certtest.New(t)
	p := startProcess(t, t.TempDir(), "-tls-cert", cert, "-tls-key", key)
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer browser.CloseIdleConnections()
	c := dial(t, p.url, &websocket.DialOptions{HTTPClient: browser})
	c.send(`{"op":"hello","id":"h","room":"demo"}`)
	c.wait("welcome", func(e event) bool { return e.kind() == "welcome" })
	before := p.metric(t, "go_goroutines")
	for range 40 {
		one := dial(t, p.url, &websocket.DialOptions{HTTPClient: browser})
		one.send(`{"op":"hello","id":"h","room":"demo"}`)
		one.wait("welcome", func(e event) bool { return e.kind() == "welcome" })
	}
	await(t, "sockets that rest without a goroutine", func() bool { return p.metric(t, "go_goroutines") < before+20 })
	addr := strings.TrimPrefix(p.url, "https://")
	if got := serialOf(t, addr); got != 1 {
		t.Fatalf("serial %d", got)
	}
	certtest.Renew(t, cert, key, 2)
	p.signal(syscall.SIGHUP)
	await(t, "new certificate", func() bool { return serialOf(t, addr) == 2 })
	if err := os.WriteFile(cert, []byte("half a renewal"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	await(t, "line about the broken one", func() bool {
		return strings.Contains(p.logs.String(), `"level":"ERROR","msg":"the new certificate can't be used`)
	})
	if got := serialOf(t, addr); got != 2 {
		t.Fatalf("serial %d", got)
	}
	c.send(`{"op":"ping","id":"p"}`)
	c.wait("pong on the old socket", func(e event) bool { return e.kind() == "pong" })
}

// SIGHUP ends no process that speaks plain HTTP either: it takes what may change, names what has to wait, and keeps everything where the
// configuration can't be used.
func TestHangupReadsTheConfiguration(t *testing.T) {
	t.Parallel()
	file := write(t, "rooms: {max: 100}\n")
	p := startProcess(t, t.TempDir(), "-config", file)
	hangup := func(conf, want string) {
		t.Helper()
		if err := os.Rename(write(t, conf), file); err != nil { // never half a file: the signal before may not have been seen to yet
			t.Fatal(err)
		}
		p.signal(syscall.SIGHUP)
		await(t, want, func() bool { return strings.Contains(p.logs.String(), want) })
	}
	hangup("rooms: {max: 200}\nlog: {level: error}\n", `"msg":"read again","node":"n1","taken":["log.level"],"after_a_restart":["rooms.max"]}`)
	hangup("rooms: {max: 100, idle: 2m}\nlog: {level: error}\n", "") // no line at this level
	hangup("rooms: {max: none}\n", `"msg":"the configuration can't be used, all stays as it was"`)
	hangup("rooms: {max: 100}\nlog: {level: info}\n", `"taken":["log.level"],"after_a_restart":[]}`)
	if strings.Contains(p.logs.String(), "rooms.idle") {
		t.Errorf("a line below the level:\n%s", p.logs)
	}
	c := join(t, p.url, "demo", "")
	if e := c.ask("danmaku", `,"text":"still here"`); e.num("code") != 200 {
		t.Fatalf("got %v", e)
	}
}
