package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// guardedNATS starts a NATS server whose one user may not publish on these subjects; reload changes that.
func guardedNATS(t *testing.T, deny ...string) (url string, reload func(deny ...string)) {
	t.Helper()
	options := func(deny []string) *natsserver.Options {
		return &natsserver.Options{
			Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, NoSigs: true, NoLog: true,
			JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30,
			Users: []*natsserver.User{{Username: "node", Password: "p", Permissions: &natsserver.Permissions{
				Publish: &natsserver.SubjectPermission{Deny: deny},
			}}},
		}
	}
	first, dir := options(deny), t.TempDir()
	first.StoreDir = dir
	s, err := natsserver.NewServer(first)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server is not ready")
	}
	return fmt.Sprintf("nats://node:p@%s", s.Addr()), func(deny ...string) {
		t.Helper()
		next := options(deny)
		next.StoreDir = dir
		if err := s.ReloadOptions(next); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStartNamesWhatNATSForbids(t *testing.T) {
	t.Parallel()
	url, _ := guardedNATS(t, "lr.room.*.danmaku")
	err := run(context.Background(), append(serverArgs(t.TempDir()), "-nats", url), &lines{}, &lines{}, nil)
	if err == nil || !strings.Contains(err.Error(), "publish lr.room.*.danmaku") || !strings.Contains(err.Error(), "nats: allowed is a user that may") {
		t.Errorf("the server ended with %v", err)
	}
}

// TestNoAckForWhatNobodyGets: a broker that takes a right away while the node runs. What is said then is refused with a time
// to come back, the health check says so, and all is well when the right is back.
func TestNoAckForWhatNobodyGets(t *testing.T) {
	t.Parallel()
	url, reload := guardedNATS(t)
	s := startServer(t, "", "-nats", url, "-node-id", "n1")
	degraded := func() string {
		return fmt.Sprint(request(t, http.MethodGet, s.admin+"/readyz", "", "").body["degraded"])
	}
	await(t, "all is well", func() bool { return degraded() == "[]" })
	host := join(t, s.url, "demo", s.hostToken)
	said := 0
	say := func() event {
		said++
		return host.ask("danmaku", fmt.Sprintf(`,"text":"message %d"`, said))
	}
	if ack := say(); ack.num("code") != 200 {
		t.Fatalf("at the start: %v", ack)
	}
	reload("lr.room.*.danmaku")
	await(t, "it shows", func() bool { return degraded() == "[nats]" })
	for range 3 {
		if ack := say(); ack.num("code") != 503 || ack.str("reason") != "unavailable" || ack.num("retry_after_ms") < 1 {
			t.Errorf("nobody gets it: %v", ack)
		}
	}
	if s.metric(t, `liveroom_bus_forbidden_total{operation="publish"}`) < 1 {
		t.Error("not counted")
	}
	reload()
	await(t, "all is well again", func() bool { return degraded() == "[]" })
	mid := say().str("mid")
	host.wait("the danmaku", func(e event) bool { return e.kind() == "danmaku" && e.str("mid") == mid })
}
