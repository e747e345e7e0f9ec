package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout/link"
	"liveroom/internal/redistest"
)

// TestRevokedOverARestartOfNATS: a node asked to revoke while NATS is away obeys at once; as soon as it is back, and the other
// node says that it follows again, the socket there is cut, too.
func TestRevokedOverARestartOfNATS(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	start := func(port int) *natsserver.Server {
		s, err := natsserver.NewServer(&natsserver.Options{
			Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: store, NoSigs: true, NoLog: true,
			JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(patience) {
			t.Fatal("the NATS server is not ready")
		}
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		return s
	}
	nats := start(natsserver.RANDOM_PORT)
	at, err := url.Parse(nats.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	dir, redis := t.TempDir(), redistest.Start(t).URL()
	one := startServer(t, dir, "-nats", nats.ClientURL(), "-redis", redis, "-node-id", "n1")
	two := startServer(t, "", "-nats", nats.ClientURL(), "-redis", redis, "-node-id", "n2")
	degraded := func(s *server) string {
		return fmt.Sprint(request(t, http.MethodGet, s.admin+"/readyz", "", "").body["degraded"])
	}
	ann := tokenFor(t, dir, "-sub", "ann")
	here, there := join(t, one.url, "demo", ann), join(t, two.url, "demo", ann)
	revoke := func() int {
		return one.call(t, http.MethodPost, "/sessions/revoke", one.adminToken, `{"user":"ann"}`).status
	}

	nats.Shutdown()
	nats.WaitForShutdown()
	all := fmt.Sprint(append([]string{"nats"}, link.Followed()...))
	await(t, "all is named", func() bool { return degraded(two) == all && degraded(one) == all })
	if status := revoke(); status != http.StatusServiceUnavailable {
		t.Errorf("revoked with %d while nobody could store it", status)
	}
	if code, _ := here.closed(); code != 4401 {
		t.Errorf("closed with %d here", code)
	}
	start(port)
	await(t, "it is stored", func() bool { return revoke() == http.StatusOK })
	await(t, "the other node follows", func() bool { return degraded(two) == "[]" })
	began := time.Now()
	if code, _ := there.closed(); code != 4401 {
		t.Errorf("closed with %d there", code)
	}
	t.Logf("cut %v after ready", time.Since(began))
}
