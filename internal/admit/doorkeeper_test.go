package admit

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAllotment(t *testing.T) {
	for _, c := range []struct{ limit, open, viewers, admin int }{
		{256, 30, 162, 16},
		{1024, 40, 856, 32},
		{20_000, 40, 18_936, 256},
		{1 << 20, 40, 1<<20 - 1064, 256},
		{64, 30, 1, 16},
	} {
		if a := allot(c.limit, c.open); a.Viewers != c.viewers || a.Admin != c.admin {
			t.Errorf("%+v: got %+v", c, a)
		}
	}
}

// queued is a listener with connections at hand.
type queued struct {
	net.Listener
	conns []net.Conn
}

func (q *queued) Accept() (net.Conn, error) {
	if len(q.conns) == 0 {
		return nil, errors.ErrUnsupported
	}
	c := q.conns[0]
	q.conns = q.conns[1:]
	return c, nil
}

type from struct {
	net.Conn
	ip     string
	closed bool
}

func (c *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.ip), Port: 1} }
func (c *from) Close() error         { c.closed = true; return nil }

// Sockets and requests share the descriptors; one address has its share of requests, a proxy has all; what is given back can be
// taken again.
func TestDoorkeeper(t *testing.T) {
	q, sockets := &queued{}, 0
	why := map[string]int{}
	logs := &bytes.Buffer{}
	d := NewDoorkeeper(q, 6, "main", RefusedConnections(prometheus.NewRegistry()), slog.New(slog.NewJSONHandler(logs, nil)))
	d.share, d.sockets, d.refused = 2, func() int { return sockets }, func(w string) { why[w]++ }
	d.shared = []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}
	arrive := func(ip string) *from {
		c := &from{ip: ip}
		q.conns = append(q.conns, c)
		if got, err := d.Accept(); err == nil {
			d.Track(got, http.StateNew)
		}
		return c
	}
	a := arrive("192.0.2.1")
	d.Track(a, http.StateActive)
	arrive("192.0.2.1")
	if c := arrive("192.0.2.1"); !c.closed || why[reasonAddress] != 1 {
		t.Fatalf("the third of one address: %+v, %v", c, why)
	}
	d.Track(a, http.StateHijacked)
	sockets++
	for range 4 {
		if c := arrive("192.0.2.9"); c.closed {
			t.Fatalf("the proxy's: %v", why)
		}
	}
	last := arrive("192.0.2.2")
	if !last.closed || why[reasonDescriptors] != 1 {
		t.Fatalf("the seventh: %+v, %v", last, why)
	}
	sockets--
	if c := arrive("192.0.2.2"); c.closed {
		t.Fatalf("one was given back: %v", why)
	}
	if n := strings.Count(logs.String(), "connections refused"); n != 1 {
		t.Fatalf("%d lines", n)
	}
	d.told = time.Now().Add(-tellEvery)
	arrive("192.0.2.2")
	if !strings.Contains(logs.String(), `"refused":2`) {
		t.Fatalf("the second line counts what was not told:\n%s", logs)
	}
}
