package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"liveroom/internal/redistest"
)

// TestRevokedSocketsAreCutOnAllNodes: case 15, and that nobody comes back with what was revoked, also after a restart.
func TestRevokedSocketsAreCutOnAllNodes(t *testing.T) {
	t.Parallel()
	dir, nats, redis := t.TempDir(), natsServer(t), redistest.Start(t).URL()
	one := startServer(t, dir, "-nats", nats, "-redis", redis, "-node-id", "n1")
	two := startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", "n2")
	ann, ben := tokenFor(t, dir, "-sub", "ann"), tokenFor(t, dir, "-sub", "ben")
	anns := []*client{join(t, one.url, "demo", ann), join(t, two.url, "other", ann)}
	bens := []*client{join(t, one.url, "demo", ben), join(t, two.url, "demo", ben)}
	bystander := join(t, two.url, "demo", "")

	revoke := func(body string) response {
		return two.call(t, http.MethodPost, "/sessions/revoke", one.adminToken, body)
	}
	if res := revoke(`{"user":"ann"}`); res.status != 200 || res.body.str("revoked") != "user" {
		t.Fatalf("revoke: %v", res)
	}
	if res := revoke(fmt.Sprintf(`{"token":%q}`, ben)); res.status != 200 || res.body.str("revoked") != "token" {
		t.Fatalf("revoke: %v", res)
	}
	for _, c := range append(anns, bens...) {
		if code, reason := c.closed(); code != 4401 || !strings.Contains(fmt.Sprint(reason), "revoked") {
			t.Errorf("closed with %d %v", code, reason)
		}
	}
	if ack := bystander.ask("like", `,"count":1`); ack.num("code") != 200 {
		t.Errorf("a bystander: %v", ack)
	}
	refused := func(s *server, token string) bool {
		c := dial(t, s.url, nil)
		c.send(fmt.Sprintf(`{"op":"hello","id":"h","room":"demo","token":%q}`, token))
		code, _ := c.closed()
		return code == 4401
	}
	three := startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", "n3")
	for _, s := range []*server{one, two, three} {
		if !refused(s, ann) || !refused(s, ben) {
			t.Error("somebody came back with what was revoked")
		}
	}
	if res := one.call(t, http.MethodGet, "/rooms", ann, ""); res.status != 401 {
		t.Errorf("the API takes it: %v", res)
	}
	second := time.NewTimer(1100 * time.Millisecond) // iat is in whole seconds
	<-second.C
	join(t, three.url, "demo", tokenFor(t, dir, "-sub", "ann"))

	for _, body := range []string{`{}`, `{"user":"a","token_id":"b"}`, `{"user":"a\nb"}`, `{"token":"x"}`} {
		if res := revoke(body); res.status != 400 {
			t.Errorf("%s: %v", body, res)
		}
	}
	if res := one.call(t, http.MethodPost, "/sessions/revoke", one.hostToken, `{"user":"ben"}`); res.status != 403 {
		t.Errorf("a host may: %v", res)
	}
}

func TestAuditTellsWhoDecidedWhat(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	host := join(t, s.url, "demo", s.hostToken)
	host.ask("moderate", `,"action":"mute","user":"u7","seconds":60,"reason":"spam"`)
	s.call(t, http.MethodPost, "/rooms/demo/moderate", s.adminToken, `{"action":"slow_mode","seconds":5}`)
	s.call(t, http.MethodPut, "/rooms/demo", s.adminToken, `{"title":"A <b>new</b> one","closed":true}`)
	host.ask("moderate", `,"action":"mute","user":"not a user"`) // refused: not in the audit

	page := func(query string) (lines []string, last int64) {
		res := s.call(t, http.MethodGet, "/rooms/demo/audit"+query, s.hostToken, "")
		if res.status != 200 {
			t.Fatalf("audit: %v", res)
		}
		for _, e := range res.body["entries"].([]any) {
			e := event(e.(map[string]any))
			lines = append(lines, fmt.Sprintf("%s %s %s %s%d%s%s", e.str("by"), e.str("role"), e.str("action"), e.str("user"), e.num("seconds"), e.str("reason"), e.str("text")))
			if last = e.num("seq"); e.num("time") < 1_700_000_000_000 {
				t.Errorf("entry %v", e)
			}
		}
		return lines, last
	}
	first, last := page("?limit=2")
	want := []string{`admin admin settings 0title "A <b>new</b> one", closed true`, "admin admin slow_mode 5"}
	if fmt.Sprint(first) != fmt.Sprint(want) {
		t.Errorf("first page %q", first)
	}
	if rest, _ := page(fmt.Sprintf("?before=%d", last)); fmt.Sprint(rest) != "[host host mute u760spam]" {
		t.Errorf("second page %q", rest)
	}
	if res := s.call(t, http.MethodGet, "/rooms/demo/audit", "", ""); res.status != 401 {
		t.Errorf("anybody may read it: %v", res)
	}
}
