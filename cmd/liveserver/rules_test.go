package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rulesWith returns today's set as it was read, with one rule's burst and rate changed.
func (s *server) rulesWith(t *testing.T, name string, rate, burst int) (body, tag string) {
	t.Helper()
	now := s.call(t, http.MethodGet, "/limits/rules", s.adminToken, "")
	if now.status != http.StatusOK {
		t.Fatalf("rules: %v", now)
	}
	for _, r := range now.body["rules"].([]any) {
		if r := r.(map[string]any); r["name"] == name {
			r["rate"], r["burst"] = rate, burst
		}
	}
	raw, err := json.Marshal(now.body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), now.header.Get("ETag")
}

// TestRulesAreChangedLiveAndUndone: publish, levels kept, history with author and diff, rollback, and all of it again
// after a restart.
func TestRulesAreChangedLiveAndUndone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	c := join(t, s.url, "demo", "")
	publish := func(burst int, query string) (put response, body, tag string) {
		body, tag = s.rulesWith(t, "danmaku-user-room", 0, burst) // nothing comes back meanwhile
		return s.call(t, http.MethodPut, "/limits/rules?"+query, s.adminToken, body, "If-Match", tag), body, tag
	}
	publish(3, "")
	for i := range 3 { // the whole burst of danmaku-user-room
		if ack := c.ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i)); ack.num("code") != 200 {
			t.Fatalf("ack %v", ack)
		}
	}
	put, body, tag := publish(2, "note=quiet+please&override=true")
	if put.status != 200 || put.body.num("version") != 3 || put.header.Get("ETag") != `"v3"` {
		t.Fatalf("put: %v", put)
	}
	// The level came along: a bucket that the change had filled would grant another burst.
	if ack := c.ask("danmaku", `,"text":"one more"`); ack.num("code") != 429 || ack.str("rule") != "danmaku-user-room" {
		t.Errorf("after the change: %v", ack)
	}
	if again := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", tag); again.status != http.StatusPreconditionFailed {
		t.Errorf("on an old version: %v", again)
	}
	history := s.call(t, http.MethodGet, "/limits/versions", s.adminToken, "")
	versions := history.body["versions"].([]any)
	newest := event(versions[0].(map[string]any))
	if len(versions) != 3 || newest.str("note") != "quiet please" || newest.str("author") != "admin" && newest.str("author") == "" {
		t.Fatalf("history: %v", history.body)
	}
	if changes := fmt.Sprint(newest["changes"]); !strings.Contains(changes, "danmaku-user-room") || !strings.Contains(changes, "burst") {
		t.Errorf("changes: %v", changes)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}

	s = startServer(t, dir)
	if got := s.metric(t, "liveroom_rules_version"); got != 3 {
		t.Errorf("version %v after a restart", got)
	}
	back := s.call(t, http.MethodPost, "/limits/rollback", s.adminToken, `{"version":1,"note":"too quiet"}`)
	if back.status != 200 || back.body.num("version") != 4 || back.body.num("restores") != 1 || back.body.str("kind") != "rollback" {
		t.Errorf("rollback: %v", back)
	}
}

// TestRulesRefuseWhatIsWrong: every fault with its path, and nothing changes.
func TestRulesRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service")
	bad := `{"rules":[{"name":"A","action":"dance","scope":"user","rate":-1,"burst":0},{"name":"b","action":"danmaku","scope":"moon","rate":1,"burst":1}]}`
	res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, bad, "If-Match", `"v1"`)
	faults, _ := res.body["faults"].([]any)
	if res.status != 400 || len(faults) < 4 {
		t.Fatalf("%v", res)
	}
	if text := fmt.Sprint(faults); !strings.Contains(text, "rules[0].burst") || !strings.Contains(text, "rules[1].scope") {
		t.Errorf("faults without paths: %v", text)
	}
	for tag, want := range map[string]int{`"7"`: 412, `"v7"`: 412, `W/"v7"`: 412, `W/"v1"`: 400, `7`: 400} { // 400: on top of the right version, but bad
		if res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, bad, "If-Match", tag); res.status != want {
			t.Errorf("If-Match %s: want %d, have %v", tag, want, res)
		}
	}
	if res := s.call(t, http.MethodPost, "/limits/rollback", s.adminToken, `{"version":1}`, "If-Match", `"7"`); res.status != 412 || !strings.HasPrefix(res.body.str("msg"), "The limits stay as they are: changed meanwhile") {
		t.Errorf("a rollback on other rules than those in force: %v", res)
	}
	for _, c := range []struct {
		what, method, path, token, body string
		status                          int
	}{
		{"without If-Match", http.MethodPut, "/limits/rules", s.adminToken, `{"rules":[]}`, 428},
		{"by a service", http.MethodPut, "/limits/rules", service, `{"rules":[]}`, 403},
		{"by nobody", http.MethodGet, "/limits/rules", "", "", 401},
		{"by a host", http.MethodGet, "/limits/rules", s.hostToken, "", 403},
		{"to a version that never was", http.MethodPost, "/limits/rollback", s.adminToken, `{"version":99}`, 404},
		{"to no version", http.MethodPost, "/limits/rollback", s.adminToken, `{}`, 400},
	} {
		if res := s.call(t, c.method, c.path, c.token, c.body); res.status != c.status {
			t.Errorf("%s: %v", c.what, res)
		}
	}
	if got := s.metric(t, "liveroom_rules_version"); got != 1 {
		t.Errorf("version %v", got)
	}
	file := startServer(t, "", "-limits-source", "file")
	if res := file.call(t, http.MethodPut, "/limits/rules", file.adminToken, `{"rules":[]}`, "If-Match", `"v1"`); res.status != 409 {
		t.Errorf("the file is the source: %v", res)
	}
}

// TestExplainCheckAndReset: another service spends from the same buckets as the sockets, a person sees why, and an
// operator lifts a limit by hand.
func TestExplainCheckAndReset(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startWithRules(t, dir, slowly)
	service := tokenFor(t, dir, "-role", "service")
	ask := func() response {
		return s.call(t, http.MethodPost, "/limits/check", service, `{"action":"danmaku","room":"demo","user":"bob"}`)
	}
	for i := range 3 {
		if res := ask(); res.status != 200 || res.body.str("verdict") != "allow" || res.body.num("remaining") != int64(2-i) {
			t.Fatalf("check %d: %v", i, res)
		}
	}
	if res := ask(); res.status != 429 || res.body.str("rule") != "danmaku-user-room" || res.header.Get("Retry-After") == "" || res.header.Get("RateLimit") == "" {
		t.Errorf("fourth: %v", res)
	}
	// Bob's own socket feels it.
	c := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "bob"))
	if ack := c.ask("danmaku", `,"text":"hello"`); ack.num("code") != 429 {
		t.Errorf("bob's socket: %v", ack)
	}
	const query = "/limits/explain?action=danmaku&room=demo&user=bob&role=viewer"
	level := func() float64 {
		res := s.call(t, http.MethodGet, query, service, "")
		for _, r := range res.body["rules"].([]any) {
			if r := r.(map[string]any); r["rule"] == "danmaku-user-room" {
				if r["why"] != "applies" || r["burst"] != 3.0 {
					t.Errorf("explained as %v", r)
				}
				return r["level"].(float64)
			}
		}
		t.Fatalf("not explained: %v", res)
		return 0
	}
	if l := level(); l > 2 {
		t.Errorf("level %v", l)
	}
	if res := s.call(t, http.MethodDelete, "/limits/explain?room=demo&user=bob", s.adminToken, ""); res.status != 204 {
		t.Fatalf("reset: %v", res)
	}
	if l := level(); l != 3 {
		t.Errorf("level %v after the reset", l)
	}
	if res := s.call(t, http.MethodGet, "/limits/explain?action=dance", service, ""); res.status != 400 {
		t.Errorf("unknown action: %v", res)
	}
}

// TestFaultAThresholdMistakeNobodySees is the story of the article: somebody sets a threshold far too low. The
// preview says so, publishing needs an override, and when it is forced the guard undoes it.
func TestFaultAThresholdMistakeNobodySees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service")
	crowd := func(text string) {
		for i := range 40 {
			s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(`{"user":{"id":"u%d"},"id":%q,"text":%q}`, i, text, text))
		}
	}
	crowd("one")
	crowd("two")

	body, tag := s.rulesWith(t, "danmaku-user-room", 0, 1)
	seen := s.call(t, http.MethodPost, "/limits/preview", s.adminToken, body)
	if seen.status != 200 || event(seen.body["proposed"].(map[string]any)).in("refused").in("users").num("count") != 40 {
		t.Fatalf("preview: %v", seen)
	}
	warned := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", tag)
	if warned.status != 409 || warned.body["needs_override"] != true || len(warned.body["reasons"].([]any)) == 0 || warned.body["preview"] == nil {
		t.Fatalf("publish: %v", warned)
	}
	forced := s.call(t, http.MethodPut, "/limits/rules?override=true", s.adminToken, body, "If-Match", tag)
	if forced.status != 200 {
		t.Fatalf("forced: %v", forced)
	}
	// At a pace that the set before would have let through.
	pace := time.NewTicker(1200 * time.Millisecond)
	defer pace.Stop()
	for n := 0; s.metric(t, `liveroom_rules_rollbacks_total{by="guard"}`) == 0; n++ {
		if n == 40 {
			t.Fatalf("no rollback within a minute: %v", s.call(t, http.MethodGet, "/limits/guard", s.adminToken, "").body)
		}
		crowd(fmt.Sprint("after-", n))
		<-pace.C
	}
	newest := event(s.call(t, http.MethodGet, "/limits/versions", s.adminToken, "").body["versions"].([]any)[0].(map[string]any))
	if newest.str("kind") != "guard" || newest.num("restores") != 1 || newest.str("note") == "" {
		t.Errorf("history: %v", newest)
	}
	if state := s.call(t, http.MethodGet, "/limits/guard", s.adminToken, "").body.str("state"); state != "rolled_back" {
		t.Errorf("the guard is %q", state)
	}
}

// TestSharedScopesAreAsked: rules for addresses, networks and everything hold for what comes over sockets, and a rule that
// would never be asked is refused.
func TestSharedScopesAreAsked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	for _, scope := range []string{"ip", "net", "global"} {
		text := fmt.Sprintf("rules:\n  - {name: shared, action: danmaku, scope: %s, rate: 0, burst: 3}\n  - {name: welcome, action: [join, connect], scope: ip, rate: 100, burst: 100}\n", scope)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := startServer(t, "", "-limits-file", file)
		a, b := join(t, s.url, "demo", ""), join(t, s.url, "other", "")
		for i := range 3 {
			if ack := []*client{a, b}[i%2].ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i)); ack.num("code") != 200 {
				t.Fatalf("%s: %v", scope, ack)
			}
		}
		if ack := b.ask("danmaku", `,"text":"one more"`); ack.num("code") != 429 || ack.str("scope") != scope || ack.num("retry_after_ms") != 0 {
			t.Errorf("%s: %v", scope, ack)
		}
	}
	if err := os.WriteFile(file, []byte("rules:\n  - {name: never, action: frame, scope: room, rate: 1, burst: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"check", "-data-dir", t.TempDir(), "-limits-file", file}, &lines{}, &lines{}, nil)
	if err == nil || !strings.Contains(err.Error(), `"room" is never asked about frame; want conn`) {
		t.Errorf("check: %v", err)
	}
}
