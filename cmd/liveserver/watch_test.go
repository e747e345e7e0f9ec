package main

import (
	"net/http"
	"testing"

	"liveroom/internal/redistest"
)

// TestAWatchGoesToALivingNode: when the node that published is killed within the minute, another one watches on, and its end stands
// in the history of all.
func TestAWatchGoesToALivingNode(t *testing.T) {
	t.Parallel()
	nats, redis := natsServer(t), redistest.Start(t).URL()
	living := startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", "n2")
	publisher := startProcess(t, t.TempDir(), "-nats", nats, "-redis", redis, "-node-id", "n1")
	publish := func(s *server, rate int) {
		t.Helper()
		body, tag := s.rulesWith(t, "danmaku-user-room", rate, 5)
		if res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", tag); res.status != 200 {
			t.Fatal(res)
		}
	}
	watched := func(s *server) event { return s.call(t, http.MethodGet, "/limits/guard", s.adminToken, "").body }
	publish(&publisher.server, 2)
	if w := watched(&publisher.server); w.num("version") != 2 {
		t.Fatalf("the publisher watches %v", w)
	}
	if w := watched(living); w.str("state") != "idle" {
		t.Fatalf("both watch: %v", w)
	}
	publisher.kill()
	await(t, "the living node watches", func() bool { w := watched(living); return w.num("version") == 2 && w.num("previous") == 1 })

	publish(living, 3)
	if w := watched(living); w.num("version") != 3 || w.num("previous") != 1 {
		t.Errorf("what was not watched to its end counts as proved: %v", w)
	}
	await(t, "the end in the history", func() bool {
		versions := living.call(t, http.MethodGet, "/limits/versions", living.adminToken, "").body["versions"].([]any)
		v := event(versions[1].(map[string]any))
		w, _ := v["watch"].(map[string]any)
		return v.num("version") == 2 && v.str("node") == "n1" && w["end"] == "superseded" && w["node"] == "n2"
	})
}
