package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
)

// ask sends one line to a server and returns the first line of its answer.
func ask(t *testing.T, address, line string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if line != "" {
		fmt.Fprint(c, line+"\r\n")
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

func TestWhatNodesShareIsStartedAndStopped(t *testing.T) {
	t.Parallel()
	k, err := startBacking(t.Context(), t.TempDir(), "", "")
	defer k.stop()
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, k.redisURL, "PING"); got != "+PONG" {
		t.Errorf("Redis says %q", got)
	}
	if got := ask(t, k.natsURL, ""); !strings.Contains(got, `"jetstream":true`) {
		t.Errorf("NATS says %q", got)
	}
	k.stop()
	for _, c := range k.children() {
		if c.alive() {
			t.Errorf("%s is still there", c.name)
		}
	}
}

func TestAMissingRedisIsToldWithTheWayToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := startBacking(t.Context(), t.TempDir(), "nats://given", "")
	if !errors.Is(err, errNoRedis) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("%v", err)
	}
}

func TestAChildThatFailsIsToldWithWhatItSaid(t *testing.T) {
	t.Parallel()
	k, err := startBacking(t.Context(), "/dev/null/nowhere", "", "redis://given")
	defer k.stop()
	if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

func TestAnEndWhileStartingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k, err := startBacking(ctx, t.TempDir(), "", "")
	k.stop()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, c := range k.children() {
		if c.alive() {
			t.Errorf("%s is still there", c.name)
		}
	}
}
