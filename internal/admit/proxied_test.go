package admit

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

const (
	header4 = proxySignature + "\x21\x11\x00\x0c" + "\xcb\x00\x71\x09" + "\x7f\x00\x00\x01" + "\x30\x39\x01\xbb"
	header6 = proxySignature + "\x21\x21\x00\x26" + "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x30\x39\x01\xbb" + "\x04\x00" // a TLV cut short: skipped
)

func TestProxyHeaders(t *testing.T) {
	for _, tc := range []struct{ name, in, source string }{
		{"IPv4", header4, "203.0.113.9:12345"},
		{"IPv6 and more", header6, "[2001:db8::1]:12345"},
		{"the proxy itself", proxySignature + "\x20\x00\x00\x00", "invalid AddrPort"},
		{"a unix socket", proxySignature + "\x21\x31\x00\x01x", "invalid AddrPort"},
	} {
		in := strings.NewReader(tc.in + "GET")
		source, err := readProxyHeader(in)
		if rest, _ := io.ReadAll(in); err != nil || source.String() != tc.source || string(rest) != "GET" {
			t.Errorf("%s: %v %v, then %q", tc.name, source, err, rest)
		}
	}
	for _, in := range []string{"GET / HTTP/1.1\r\n\r\n", proxySignature + "\x11\x11\x00\x0c", proxySignature + "\x21\x11\x10\x01", proxySignature + "\x22\x11\x00\x00", proxySignature + "\x21\x11\x00\x01x"} {
		if source, err := readProxyHeader(strings.NewReader(in)); !errors.Is(err, errNoHeader) || source.IsValid() {
			t.Errorf("%q: %v %v", in, source, err)
		}
	}
}

// FuzzProxyHeader: no input makes it panic, nor read beyond what the header says it is.
func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte(header4))
	f.Add([]byte(header6))
	f.Add([]byte("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		if _, err := readProxyHeader(r); err == nil {
			if took, says := len(in)-r.Len(), 16+int(in[14])<<8+int(in[15]); took != says {
				t.Fatalf("took %d of %d", took, says)
			}
		}
	})
}

// TestOnlyProxiesAreBelieved: a trusted proxy's header counts and must be there; from anybody else it is no request.
func TestOnlyProxiesAreBelieved(t *testing.T) {
	var log bytes.Buffer
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxied := NewProxied(ln, []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, slog.New(slog.NewTextHandler(&log, nil)))
	s := httptest.NewUnstartedServer(Sources(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "from "+r.RemoteAddr) })))
	s.Listener.Close()
	s.Listener, s.Config.ConnContext = proxied, proxied.Remember
	s.Start()
	defer s.Close()
	const request = "GET / HTTP/1.0\r\n\r\n"
	for _, tc := range []struct{ name, from, send, want string }{
		{"a proxy's word", "127.0.0.1", header4 + request, "from 203.0.113.9:12345"},
		{"a proxy's own request", "127.0.0.1", proxySignature + "\x20\x00\x00\x00" + request, "from 127.0.0.1:"},
		{"a proxy without a header", "127.0.0.1", request, ""},
		{"a stranger's word", "127.0.0.2", header4 + request, "400 Bad Request"},
		{"a stranger", "127.0.0.2", request, "from 127.0.0.2:"},
	} {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(tc.from)}}
		c, err := d.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, tc.send); err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c) // a reset ends it, too
		c.Close()
		if !strings.Contains(string(got), tc.want) || tc.want == "" && len(got) > 0 {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	s.Close()
	if n := strings.Count(log.String(), "begin without a PROXY protocol header"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
}
