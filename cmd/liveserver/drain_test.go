package main

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestDrain is CASES 4: on SIGTERM each of 50 clients sees 1001 with a time to come back, none sees 1006, the node is
// not ready meanwhile, and the process ends with 0.
func TestDrain(t *testing.T) {
	const clients = 50
	p := startProcess(t, t.TempDir(), "-drain-timeout", "1s")
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
	var mu sync.Mutex
	times := map[int64]int{}
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			code, reason := c.closed()
			mu.Lock()
			defer mu.Unlock()
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

// TestSecondSignal ends a draining process at once.
func TestSecondSignal(t *testing.T) {
	p := startProcess(t, t.TempDir(), "-drain-timeout", "10m")
	one, two := join(t, p.url, "demo", ""), join(t, p.url, "demo", "")
	p.signal(syscall.SIGTERM)
	first := make(chan int, 2)
	for _, c := range []*client{one, two} {
		go func() {
			code, _ := c.closed()
			first <- code
		}()
	}
	if code := <-first; code != 1001 {
		t.Errorf("the first is closed with %d", code)
	}
	began := time.Now()
	p.signal(syscall.SIGTERM)
	if err := p.stop(); err == nil {
		t.Error("a drain that was cut short ended with 0")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	<-first
}
