package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestAllotment(t *testing.T) {
	for _, c := range []struct{ limit, open, viewers, admin int }{
		{256, 30, 162, 16},
		{1024, 40, 856, 32},
		{20_000, 40, 18_936, 256},
		{1 << 20, 40, 1<<20 - 1064, 256},
		{64, 30, 1, 16},
	} {
		if a := allot(c.limit, c.open); a.viewers != c.viewers || a.admin != c.admin {
			t.Errorf("%+v: got %+v", c, a)
		}
	}
}

// With 256 descriptors and 300 connections that send nothing, again and again: gifts go on, descriptors are left, the log and a
// metric say so, and afterwards all is well.
func TestIdleConnectionsLeaveDescriptors(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`, os.Args[0]}, serverArgs(dir)...)...)
	p := startCommand(t, cmd)
	if logs := p.logs.String(); !strings.Contains(logs, `"limit":256`) || !strings.Contains(logs, `"level":"WARN","msg":"the limit of open files is below sessions.max`) {
		t.Fatalf("the start says nothing of the limit:\n%s", logs)
	}
	c := join(t, p.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	addr := strings.TrimPrefix(p.url, "http://")
	for round := range 3 {
		var idle []net.Conn
		for range 300 {
			nc, err := net.DialTimeout("tcp", addr, patience)
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, nc)
		}
		want := float64(300 - 256/4)
		await(t, "refused connections", func() bool {
			return p.metric(t, `liveroom_connections_refused_total{listener="main",reason="address"}`) >= want*float64(round+1)/2
		})
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if left := 256 - len(open); left < 48 {
			t.Fatalf("%d descriptors are left", left)
		}
		if e := c.askAs(fmt.Sprint("g", round), "gift", `,"gift":"rose"`); e.num("code") != 200 {
			t.Fatalf("gift in the flood: %v", e)
		}
		for _, nc := range idle {
			nc.Close()
		}
	}
	if !strings.Contains(p.logs.String(), `"msg":"connections refused"`) {
		t.Fatal("the log says nothing of it")
	}
	await(t, "newcomer", func() bool {
		resp, err := http.Get(p.url + "/api/v1/rooms")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
	if e := join(t, p.url, "demo", "").ask("danmaku", `,"text":"in"`); e.num("code") != 200 {
		t.Fatalf("afterwards: %v", e)
	}
	if e := c.askAs("after", "gift", `,"gift":"rose"`); e.num("code") != 200 {
		t.Fatalf("afterwards: %v", e)
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
	logs := &lines{}
	d := newDoorkeeper(q, 6, "main", refusedConnections(newRegistry()), testLogger(logs))
	d.share, d.sockets, d.refused = 2, func() int { return sockets }, func(w string) { why[w]++ }
	d.shared = []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}
	arrive := func(ip string) *from {
		c := &from{ip: ip}
		q.conns = append(q.conns, c)
		if got, err := d.Accept(); err == nil {
			d.track(got, http.StateNew)
		}
		return c
	}
	a := arrive("192.0.2.1")
	d.track(a, http.StateActive)
	arrive("192.0.2.1")
	if c := arrive("192.0.2.1"); !c.closed || why[reasonAddress] != 1 {
		t.Fatalf("the third of one address: %+v, %v", c, why)
	}
	d.track(a, http.StateHijacked)
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

func testLogger(to *lines) *slog.Logger { return slog.New(slog.NewJSONHandler(to, nil)) }
