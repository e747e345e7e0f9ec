package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liveroom/protocol"
)

// limitsFile writes rules for a server whose source they are.
func limitsFile(t *testing.T, rules string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nrules:\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-limits-file", file, "-limits-source", "file"}
}

// TestSlotsOfSocketsAndCallsComeBack: a rule of concurrency for connect bounds the sockets that are open, one for api the
// calls under way, those that are refused or fail included.
func TestSlotsOfSocketsAndCallsComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, limitsFile(t, `
  - {name: sockets-address, action: connect, scope: ip, algorithm: concurrency, burst: 2}
  - {name: calls, action: api, scope: key, algorithm: concurrency, burst: 1, per: 1h}
  - {name: calls-address, action: api, scope: ip, algorithm: concurrency, burst: 1, per: 1h}
`)...)
	service := tokenFor(t, dir, "-role", "service")
	for i := range 5 {
		for _, c := range []struct {
			path, token string
			status      int
		}{{"/rooms", service, 200}, {"/rooms", "", 200}, {"/rooms/no%20room", service, 400}, {"/limits/rules", "", 401}} {
			if res := s.call(t, http.MethodGet, c.path, c.token, ""); res.status != c.status {
				t.Fatalf("call %d of %s: %v, want %d", i, c.path, res, c.status)
			}
		}
	}
	first, _ := join(t, s.url, "demo", ""), join(t, s.url, "demo", "")
	for range 3 {
		if code, reason := dial(t, s.url, nil).closed(); code != int(protocol.CloseOverloaded) || reason.num("reconnect_in_ms") < 1 {
			t.Fatalf("a third socket of an address with two: %d %v", code, reason)
		}
		_ = first.ws.CloseNow()
		first = join(t, s.url, "demo", "") // comes again until the place is free
	}
}

// TestFrameRulesKnowTheirSender: multiply and exempt of a frame rule hold for who has said hello.
func TestFrameRulesKnowTheirSender(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, limitsFile(t, `
  - {name: frames, action: frame, scope: conn, rate: 1, per: 1h, burst: 10, multiply: {host: 5}, exempt: {users: [relay]}}
`)...)
	for _, c := range []struct {
		sub, role string
		passes    int
	}{{"ann", "viewer", 9}, {"boss", "host", 45}, {"relay", "viewer", 60}} { // the hello was one of a nobody
		conn := join(t, s.url, "demo", tokenFor(t, dir, "-sub", c.sub, "-role", c.role, "-rooms", "demo"))
		passed := 0
		for passed < 60 && conn.ask("like", `,"count":0`).str("rule") != "frames" {
			passed++
		}
		if passed != c.passes {
			t.Errorf("%s passed %d frames, want %d", c.role, passed, c.passes)
		}
	}
}

// TestRulesThatWouldNeverBeAsked are refused, each part with its path.
func TestRulesThatWouldNeverBeAsked(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	for rule, want := range map[string]string{
		`"action":"frame","scope":"conn","algorithm":"concurrency","burst":2`:                 "rules[0].algorithm",
		`"action":"frame","scope":"conn","rate":1,"burst":2,"room":"demo"`:                    "rules[0].room",
		`"action":"connect","scope":"ip","rate":1,"burst":2,"role":["host"]`:                  "rules[0].role",
		`"action":"connect","scope":"ip","rate":1,"burst":2,"exempt":{"users":["u"]}`:         "rules[0].exempt.users",
		`"action":"connect","scope":"net","algorithm":"concurrency","burst":2,"cluster":true`: "rules[0].cluster",
		`"action":["connect","api"],"scope":"ip","algorithm":"concurrency","burst":2`:         "rules[0].action",
	} {
		res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, `{"rules":[{"name":"a",`+rule+`}]}`, "If-Match", `"v1"`)
		if res.status != 400 || !strings.Contains(fmt.Sprint(res.body["faults"]), "path:"+want) {
			t.Errorf("%s: %v", rule, res)
		}
	}
}
