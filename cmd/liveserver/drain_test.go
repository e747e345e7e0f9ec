package main

import (
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDrain is CASES 4: on SIGTERM the node is not ready at once, and serves as before for drain_delay; then each of 50 clients sees
// 1001 with a time to come back, none sees 1006, a page is still served, and the process ends with 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	const clients = 50
	p := startProcess(t, t.TempDir(), "-drain-delay", "2s", "-drain-timeout", "1s")
	var all []*client
	for range clients {
		all = append(all, join(t, p.url, "demo", ""))
	}
	if res := request(t, http.MethodGet, p.admin+"/readyz", "", ""); res.status != 200 || res.body.str("status") != "ok" {
		t.Errorf("ready before: %v", res)
	}
	p.signal(syscall.SIGTERM)
	await(t, "draining", func() bool {
		res, err := http.Get(p.admin + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable
	})
	if late := join(t, p.url, "demo", ""); late.ask("danmaku", `,"text":"hi"`).num("code") != 200 {
		t.Error("who comes before balancers have noticed is refused")
	} else {
		all = append(all, late)
	}
	var mu sync.Mutex
	times := map[int64]int{}
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			code, reason := c.closed()
			mu.Lock()
			defer mu.Unlock()
			if len(times) == 0 {
				if res := request(t, http.MethodGet, p.url+"/", "", ""); res.status != http.StatusOK {
					t.Errorf("a page while sockets leave: %v", res)
				}
			}
			if code != 1001 || reason.num("reconnect_in_ms") < 1 {
				t.Errorf("closed with %d %v", code, reason)
			}
			times[reason.num("reconnect_in_ms")]++
		})
	}
	wg.Wait()
	if len(times) < clients/2 {
		t.Errorf("%d clients are told only %d different times", clients, len(times))
	}
	if err := p.stop(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.logs)
	}
}

// TestDrainWaitsForNoRequest: a client that leaves its request unfinished delays nobody's close frame.
func TestDrainWaitsForNoRequest(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "-drain-timeout", "100ms")
	nc, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("GET / HTTP/1.1\r\nHo")); err != nil {
		t.Fatal(err)
	}
	c := join(t, p.url, "demo", "")
	began := time.Now()
	p.signal(syscall.SIGTERM)
	if code, _ := c.closed(); code != 1001 {
		t.Errorf("closed with %d", code)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("told to leave after %v", took)
	}
	if err := p.stop(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.logs)
	}
}

// TestSecondSignal: it cuts the drain short, and still takes everything down in order, so that the likes in hand are kept.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir, "-drain-timeout", "10m")
	one, two := join(t, p.url, "demo", ""), join(t, p.url, "demo", "")
	p.signal(syscall.SIGTERM)
	closed := make(chan *client)
	for _, c := range []*client{one, two} {
		go func() {
			c.closed()
			closed <- c
		}()
	}
	last := two
	if <-closed == two {
		last = one
	}
	last.send(`{"op":"like","id":"l","count":7}`)
	await(t, "likes taken", func() bool { return p.metric(t, `liveroom_messages_total{class="like"}`) > 0 })
	p.signal(syscall.SIGTERM)
	err := p.stop()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("a drain that was cut short ended with %v", err)
	}
	if logs := p.logs.String(); !strings.Contains(logs, `"msg":"stopped","node":"n1","err":"send clients away: context canceled"`) {
		t.Errorf("not taken down in order:\n%s", logs)
	}
	<-closed
	again := join(t, startServer(t, dir).url, "demo", "")
	if total := again.welcome.in("room").num("likes"); total != 7 {
		t.Errorf("%d likes are kept of 7", total)
	}
}
