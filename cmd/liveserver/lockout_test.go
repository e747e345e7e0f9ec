package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAnAuthorCannotLockItselfOut: a rule after whose burst nothing passes is named and asks for an override, whatever the
// traffic was; and with it in force an admin still reads, explains and goes back.
func TestAnAuthorCannotLockItselfOut(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	for action, scope := range map[string]string{"api": "key", "connect": "ip", "join": "room", "frame": "conn", "api:GET /rooms": "ip"} {
		body := fmt.Sprintf(`{"rules":[{"name":"shut","action":%q,"scope":%q,"rate":0,"burst":1}]}`, action, scope)
		res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", `"v1"`)
		if res.status != 409 || res.body["needs_override"] != true || !strings.Contains(fmt.Sprint(res.body["reasons"]), `rule "shut" has rate 0`) {
			t.Errorf("%s: %v", action, res)
		}
	}
	const shut = `{"rules":[{"name":"shut","action":"api","scope":"key","rate":0,"burst":1},{"name":"shut-out","action":"api","scope":"ip","rate":0,"burst":1}]}`
	if res := s.call(t, http.MethodPut, "/limits/rules?override=true", s.adminToken, shut, "If-Match", `"v1"`); res.status != 200 {
		t.Fatalf("with an override: %v", res)
	}
	s.call(t, http.MethodGet, "/rooms", s.adminToken, "")
	if res := s.call(t, http.MethodGet, "/rooms", s.adminToken, ""); res.status != 429 {
		t.Fatalf("the rule is not in force: %v", res)
	}
	for _, call := range []string{"GET /limits/rules", "GET /limits/versions", "GET /limits/guard", "GET /limits/explain?action=api&key=k", "POST /limits/rollback"} {
		method, path, _ := strings.Cut(call, " ")
		body := ""
		if method == http.MethodPost {
			body = `{"version":1}`
		}
		if res := s.call(t, method, path, s.adminToken, body); res.status != 200 {
			t.Errorf("%s: %v", call, res)
		}
	}
	if res := s.call(t, http.MethodGet, "/rooms", s.adminToken, ""); res.status != 200 {
		t.Errorf("after the rollback: %v", res)
	}
}

// TestAWatchSurvivesARestart: the node that comes back watches on what was published before, against what was in force
// before the first set that has not proved itself.
func TestAWatchSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	for rate := 2; rate <= 3; rate++ {
		body, tag := s.rulesWith(t, "danmaku-user-room", rate, 5)
		if res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", tag); res.status != 200 {
			t.Fatal(res)
		}
	}
	before := s.call(t, http.MethodGet, "/limits/guard", s.adminToken, "").body
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again := startServer(t, dir)
	w := again.call(t, http.MethodGet, "/limits/guard", again.adminToken, "").body
	if w.num("version") != 3 || before.num("version") != 3 || w.num("previous") != before.num("previous") || w.str("state") != "waiting" {
		t.Errorf("watched %v, after the restart %v", before, w)
	}
}

// TestResettingAnAddressLeavesItsNetwork: what the addresses around it have used stays used.
func TestResettingAnAddressLeavesItsNetwork(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	const slow = `{"rules":[{"name":"ip","action":"connect","scope":"ip","rate":1,"per":"1h","burst":9},{"name":"net","action":"connect","scope":"net","rate":1,"per":"1h","burst":9}]}`
	if res := s.call(t, http.MethodPut, "/limits/rules?override=true", s.adminToken, slow, "If-Match", `"v1"`); res.status != 200 {
		t.Fatal(res)
	}
	for range 3 {
		s.call(t, http.MethodPost, "/limits/check", s.adminToken, `{"action":"connect","addr":"192.0.2.1"}`)
	}
	levels := func() string {
		var out []string
		for _, r := range s.call(t, http.MethodGet, "/limits/explain?action=connect&addr=192.0.2.1", s.adminToken, "").body["rules"].([]any) {
			r := event(r.(map[string]any))
			out = append(out, fmt.Sprint(r.str("scope"), r.num("level") < r.num("burst")))
		}
		return strings.Join(out, " ")
	}
	if res := s.call(t, http.MethodDelete, "/limits/explain?addr=192.0.2.9", s.adminToken, ""); res.status != 204 || !strings.Contains(levels(), "nettrue") {
		t.Errorf("%v; used: %s", res, levels())
	}
}
