package process

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
	k, err := StartBacking(t.Context(), t.TempDir(), "", "")
	defer k.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, k.RedisURL, "PING"); got != "+PONG" {
		t.Errorf("Redis says %q", got)
	}
	if got := ask(t, k.NatsURL, ""); !strings.Contains(got, `"jetstream":true`) {
		t.Errorf("NATS says %q", got)
	}
	k.Stop()
	for _, c := range k.Children() {
		if c.Alive() {
			t.Errorf("%s is still there", c.Name)
		}
	}
}

func TestAMissingRedisIsToldWithTheWayToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartBacking(t.Context(), t.TempDir(), "nats://given", "")
	if !errors.Is(err, errNoRedis) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("%v", err)
	}
}

func TestAChildThatFailsIsToldWithWhatItSaid(t *testing.T) {
	t.Parallel()
	k, err := StartBacking(t.Context(), "/dev/null/nowhere", "", "redis://given")
	defer k.Stop()
	if !errors.Is(err, errSilent) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("%v", err)
	}
}

func TestAnEndWhileStartingLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k, err := StartBacking(ctx, t.TempDir(), "", "")
	k.Stop()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, c := range k.Children() {
		if c.Alive() {
			t.Errorf("%s is still there", c.Name)
		}
	}
}
