package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestNobodyLiftsEveryLimitByMistake: an empty body, a key forgotten or a second document is refused with its fault, and the
// preview, which editors validate by, finds all that a publish would find.
func TestNobodyLiftsEveryLimitByMistake(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	const odd = `{"rules":[
		{"name":"a","action":"danmaku","scope":"user","rate":1,"burst":1,"role":["hosts"],"exempt":{"roles":["king"]},"multiply":{"mod":2}},
		{"name":"b","action":"frame","scope":"room","room":"a b","rate":1,"burst":0}]}`
	for _, c := range []struct{ body, want string }{
		{``, "rules"}, {`{}`, "rules"}, {`null`, "rules"}, {`{"rules":null}`, "rules"}, {`{"rules":[]}`, "rules"},
		{"rules: [{name: a, action: danmaku, scope: user, rate: 1, burst: 1}]\n---\nrules: []\n", ""},
		{odd, "rules[1].burst rules[0].role[0] rules[0].exempt.roles[0] rules[0].multiply.mod rules[1].scope rules[1].room rules[1].room"}, // who sends a frame is in no room, and none has that name
	} {
		for _, call := range []string{"PUT /limits/rules", "POST /limits/preview"} {
			method, path, _ := strings.Cut(call, " ")
			res := s.call(t, method, path, s.adminToken, c.body, "If-Match", `"v1"`)
			var paths []string
			faults, _ := res.body["faults"].([]any)
			for _, f := range faults {
				paths = append(paths, f.(map[string]any)["path"].(string))
			}
			if got := strings.Join(paths, " "); res.status != 400 || got != c.want || len(faults) == 0 {
				t.Errorf("%s %s: %d, faults at %q, want %q", call, c.body, res.status, got, c.want)
			}
		}
	}
	if v := s.metric(t, "liveroom_rules_version"); v != 1 {
		t.Errorf("version %v is in force", v)
	}
}

// TestConflictsOfLimitsSpeakOfLimits: who loses a race is told so, in both languages.
func TestConflictsOfLimitsSpeakOfLimits(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	body, _ := s.rulesWith(t, "danmaku-user-room", 1, 3)
	for lang, want := range map[string]string{"en": "The limits stay as they are: changed meanwhile", "zh": "限流规则没有更改："} {
		res := s.call(t, http.MethodPut, "/limits/rules", s.adminToken, body, "If-Match", `"v9"`, "Accept-Language", lang)
		if res.status != 412 || !strings.HasPrefix(res.body.str("msg"), want) {
			t.Errorf("%s: %v", lang, res)
		}
	}
	for i, tags := range []string{`"v1"`, `W/"v1"`, `"v0", "v1"`, `*`} {
		if res := s.call(t, http.MethodGet, "/limits/rules", s.adminToken, "", "If-None-Match", tags); res.status != http.StatusNotModified {
			t.Errorf("%d: %s: %v", i, tags, fmt.Sprint(res))
		}
	}
}

// TestACheckNamesWhoPays: a check that asks no bucket is a mistake of its sender, not a grant; a route of the API is an action.
func TestACheckNamesWhoPays(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	for body, want := range map[string]int{
		`{"action":"danmaku"}`: 400, `{"action":"frame"}`: 400, `{"action":"frame","room":"demo","user":"u1"}`: 400,
		`{"action":"connect","user":"u1"}`: 400, `{"action":"api"}`: 400, `{"action":"api:","key":"k"}`: 400, `{"action":"gift:POST /x","user":"u1"}`: 400,
		`{"action":"api:POST /rooms/{room}/gifts","key":"k"}`: 200, `{"action":"connect","addr":"192.0.2.1"}`: 200, `{"action":"like","user":"u1"}`: 200,
	} {
		if res := s.call(t, http.MethodPost, "/limits/check", s.adminToken, body); res.status != want {
			t.Errorf("%s: %v, want %d", body, res, want)
		}
	}
	if res := s.call(t, http.MethodGet, "/limits/explain?action=api:GET+/rooms&key=k", s.adminToken, ""); res.status != 200 || len(res.body["rules"].([]any)) == 0 {
		t.Errorf("explain: %v", res)
	}
	if res := s.call(t, http.MethodGet, "/limits/versions?before=1", s.adminToken, ""); res.status != 200 || res.body["versions"] == nil {
		t.Errorf("the page after the last: %v", res)
	}
}
