package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// With 256 descriptors and 300 connections that send nothing, again and again: gifts go on, descriptors are left, the log and a
// metric say so, and afterwards all is well.
func TestIdleConnectionsLeaveDescriptors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`, os.Args[0], "-gifts-authority", "open"}, serverArgs(dir)...)...)
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
