package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// guardedNATS starts a NATS server whose one user may not publish on these subjects; reload changes that. It is a process of
// its own: a reload under traffic is a data race inside the server (nats-io/nats-server#8499).
func guardedNATS(t *testing.T, deny ...string) (url string, reload func(deny ...string)) {
	t.Helper()
	n := newNATS(t)
	configure := func(deny []string) {
		t.Helper()
		user := `{user: node, password: p}`
		if len(deny) > 0 {
			user = fmt.Sprintf(`{user: node, password: p, permissions: {publish: {deny: ["%s"]}}}`, strings.Join(deny, `", "`))
		}
		text := fmt.Sprintf("listen: %q\njetstream: {store_dir: %q, max_file: 16G, max_mem: 1G}\nauthorization: {users: [%s]}\n", n.address, n.dir, user)
		if err := os.WriteFile(filepath.Join(n.dir, natsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(deny)
	n.start()
	return "nats://node:p@" + n.address, func(deny ...string) {
		t.Helper()
		configure(deny)
		if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
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
