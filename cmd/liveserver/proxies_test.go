package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"liveroom/internal/certtest"
)

// proxy is a real proxy before a server, run on a recipe of deploy/proxy.
type proxy struct {
	addr string
	pool *x509.CertPool
}

// recipe reads a file of deploy/proxy and puts the test's addresses and paths where it has its own. Each must be there.
func recipe(t *testing.T, name string, own ...string) string {
	t.Helper()
	text := readFile(t, filepath.Join("../../deploy/proxy", name))
	for i := 0; i < len(own); i += 2 {
		if !strings.Contains(text, own[i]) {
			t.Fatalf("%s has no %q", name, own[i])
		}
		text = strings.ReplaceAll(text, own[i], own[i+1])
	}
	return text
}

// startProxy runs a proxy until the test ends and returns once it takes connections.
func startProxy(t *testing.T, program, pkg, addr string, pool *x509.CertPool, args ...string) *proxy {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			t.Fatalf("%s is missing: make proxies, or apt-get install %s", program, pkg)
		}
	}
	home := t.TempDir()
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_CONFIG_HOME=" + home}
	said := &lines{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // nginx's master ends its workers, which SIGKILL would leave behind
		<-ended
		if t.Failed() {
			t.Logf("%s said:\n%s", program, said)
		}
	})
	await(t, program+" that takes connections", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", program, said)
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return &proxy{addr: addr, pool: pool}
}

func startNginx(t *testing.T, s *server, change ...string) *proxy {
	t.Helper()
	cert, key, pool := certtest.New(t)
	dir, addr, node := t.TempDir(), freeAddress(t), strings.TrimPrefix(s.url, "http://")
	own := []string{"n1:8080", node, "n2:8080", node, "n3:8080", node, "listen 443", "listen " + addr, "/etc/liveroom/tls.crt", cert, "/etc/liveroom/tls.key", key, "90s", "3s"}
	conf := "daemon off; worker_processes 1; error_log stderr warn; pid " + dir + "/pid; events { worker_connections 256; }\nhttp { access_log off;\n"
	for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += what + "_temp_path " + filepath.Join(dir, what) + ";\n"
	}
	conf += recipe(t, "nginx.conf", append(own, change...)...) + "}\n"
	return startProxy(t, "nginx", "nginx-light", addr, pool, "-e", "stderr", "-p", dir, "-c", write(t, conf))
}

func startCaddy(t *testing.T, s *server) *proxy {
	t.Helper()
	cert, key, pool := certtest.New(t)
	addr, node := freeAddress(t), strings.TrimPrefix(s.url, "http://")
	conf := "{\n\tadmin off\n\tauto_https off\n}\n" + recipe(t, "Caddyfile", "live.example.com {", "https://"+addr+" {",
		"n1:8080", node, "n2:8080", node, "n3:8080", node, "/etc/liveroom/tls.crt", cert, "/etc/liveroom/tls.key", key)
	return startProxy(t, "caddy", "caddy", addr, pool, "run", "--adapter", "caddyfile", "--config", write(t, conf))
}

func startHAProxy(t *testing.T, s *server) *proxy {
	t.Helper()
	cert, key, pool := certtest.New(t)
	both := write(t, readFile(t, cert)+readFile(t, key))
	_, admin, _ := net.SplitHostPort(strings.TrimPrefix(s.admin, "http://"))
	addr, node := freeAddress(t), strings.TrimPrefix(s.url, "http://")
	conf := recipe(t, "haproxy.cfg", "bind :443", "bind "+addr, "/etc/liveroom/tls.pem", both, "check port 8081", "check port "+admin,
		"n1:8080", node, "n2:8080", node, "n3:8080", node, "maxconn 200000", "maxconn 256", "90s", "3s")
	return startProxy(t, "haproxy", "haproxy", addr, pool, "-db", "-f", write(t, conf))
}

// twicePerAddress lets each address connect twice.
const twicePerAddress = `rules:
  - {name: connect-address, action: connect, scope: ip, rate: 1, per: 1h, burst: 2}
`

// TestProxies runs the recipes of deploy/proxy with the real programs: TLS ends there, sockets are upgraded and stay while nobody
// speaks, what is said is not held back, and each viewer has his own address, whatever he writes into a header.
func TestProxies(t *testing.T) {
	t.Parallel()
	rules := write(t, twicePerAddress)
	behind := []string{"-limits-file", rules, "-sessions-heartbeat", "1s", "-trusted-proxies", "127.0.0.1/32"}
	for name, start := range map[string]func(*testing.T, *server) *proxy{
		"nginx": func(t *testing.T, s *server) *proxy { return startNginx(t, s) }, "caddy": startCaddy, "haproxy": startHAProxy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := behind
			if name == "haproxy" {
				args = append(args, "-proxy-protocol", "-admin-addr", "0.0.0.0:0")
			}
			p := start(t, startServer(t, "", args...))
			browser := p.browser(t, "127.0.0.2")
			for _, path := range []string{"/room/demo", "/client/liveroom.js", "/api/v1/rooms"} {
				await(t, path, func() bool { // HAProxy has to see that the node is healthy first
					res, err := browser.Get("https://" + p.addr + path)
					if err != nil {
						t.Fatal(err)
					}
					res.Body.Close()
					return res.StatusCode == http.StatusOK
				})
			}
			p.outlivesSilence(t, browser)
			if !p.letsIn(t, browser, "203.0.113.1") {
				t.Error("the second socket of an address was refused")
			}
			if p.letsIn(t, browser, "203.0.113.2") {
				t.Error("a header made another address of the third")
			}
			if !p.letsIn(t, p.browser(t, "127.0.0.3"), "") {
				t.Error("a second viewer counts as the first: the proxy's address was taken")
			}
		})
	}
}

// TestProxyThatRewritesHost: by public_url a page's sockets come in all the same; another page's do not, and one line names both
// hosts.
func TestProxyThatRewritesHost(t *testing.T) {
	t.Parallel()
	addr := freeAddress(t)
	s := startServer(t, "", "-public-url", "https://live.test", "-addr", addr)
	s.url = "http://" + addr
	p := startNginx(t, s, "proxy_set_header Host $http_host;", "")
	browser := p.browser(t, "127.0.0.1")
	for range 2 {
		if _, res, err := p.dial(t, browser, http.Header{"Origin": {"https://" + p.addr}}, nil); err == nil || res == nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%v %v", res, err)
		}
	}
	if log := s.logs.String(); strings.Count(log, "set public_url") != 1 || !strings.Contains(log, `"origin":"https://`+p.addr+`","host":"liveroom"`) {
		t.Errorf("not one line with both hosts:\n%s", log)
	}
	if _, _, err := p.dial(t, browser, http.Header{"Origin": {"https://live.test"}}, nil); err != nil {
		t.Error(err)
	}
}

// browser is a client that comes from an address and trusts the proxy's certificate.
func (p *proxy) browser(t *testing.T, from string) *http.Client {
	t.Helper()
	road := &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: p.pool},
	}
	t.Cleanup(road.CloseIdleConnections)
	return &http.Client{Transport: road}
}

// dial opens a socket by the proxy with some headers.
func (p *proxy) dial(t *testing.T, browser *http.Client, header http.Header, pinged func()) (*client, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opts := &websocket.DialOptions{HTTPClient: browser, HTTPHeader: header}
	if pinged != nil {
		opts.OnPingReceived = func(context.Context, []byte) bool { pinged(); return true }
	}
	ws, res, err := websocket.Dial(ctx, "wss://"+p.addr+"/ws", opts)
	if err != nil {
		return nil, res, err
	}
	t.Cleanup(func() { ws.CloseNow() })
	return &client{t: t, ws: ws}, res, nil
}

// letsIn says hello and tells whether that was welcome.
func (p *proxy) letsIn(t *testing.T, browser *http.Client, forged string) bool {
	t.Helper()
	header := http.Header{"Origin": {"https://" + p.addr}} // as a page that came by the proxy
	if forged != "" {
		header.Set("X-Forwarded-For", forged)
	}
	c, _, err := p.dial(t, browser, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.tell(`{"op":"hello","id":"h","room":"demo"}`)
	_, err = c.read()
	if code := websocket.CloseStatus(err); err != nil && code != 4003 {
		t.Fatalf("closed with %v: %v", code, err)
	}
	return err == nil
}

// outlivesSilence holds a socket for longer than the proxy's time-out, which the test has made short, with nothing on it but the
// server's pings, and then speaks.
func (p *proxy) outlivesSilence(t *testing.T, browser *http.Client) {
	t.Helper()
	var pings atomic.Int32
	long := make(chan struct{})
	c, _, err := p.dial(t, browser, http.Header{"Origin": {"https://" + p.addr}}, func() {
		if pings.Add(1) == 5 {
			close(long)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.send(`{"op":"hello","id":"h","room":"demo"}`)
	c.wait("welcome", func(e event) bool { return e.kind() == "welcome" })
	go func() {
		select {
		case <-long:
			_ = c.ws.Write(t.Context(), websocket.MessageText, []byte(`{"op":"danmaku","id":"d","text":"after a silence"}`)) // else the wait below ends
		case <-t.Context().Done():
		}
	}()
	c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" && e.str("text") == "after a silence" })
}
