package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
)

func gateOf(t *testing.T, yaml string) *limit.Gate {
	t.Helper()
	spec, err := limit.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return limit.NewGate(rules, limit.NewClock())
}

// A route's rule is found by its method and template, whatever ids are in the path, and a leaky bucket paces its calls.
func TestFaultRulesByRawURI(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Gate = gateOf(t, `
rules:
  - {name: one-room, action: "api:GET /rooms/{room}", scope: key, rate: 0, burst: 2}
  - {name: paced, action: "api:POST /rooms/{room}/likes", scope: key, algorithm: leaky_bucket, rate: 20, burst: 2}
  - {name: others, action: api, scope: key, rate: 0, burst: 3}
`)
	})
	bearer := w.token(protocol.RoleService)
	for i, path := range []string{"/rooms/a", "/rooms/b?rule=others", "/rooms/c", "/rooms/c/"} {
		res, body := w.call(http.MethodGet, path, bearer, "")
		if i == 2 && (res.StatusCode != 429 || body["rule"] != "one-room" || res.Header.Get("Retry-After") != "86400") {
			t.Errorf("the template's third call: %d %v", res.StatusCode, body)
		}
		if i != 2 && res.StatusCode == 429 {
			t.Errorf("%s: %v", path, body)
		}
		if i < 2 && res.Header.Get("RateLimit") != `"one-room";r=`+strconv.Itoa(1-i) {
			t.Errorf("%s says %q of what is left", path, res.Header.Get("RateLimit"))
		}
	}
	start := time.Now()
	for i := range 2 {
		res, body := w.call(http.MethodPost, "/rooms/a/likes", bearer, `{"user":{"id":"u"},"id":"l`+strconv.Itoa(i)+`","count":1}`)
		if res.StatusCode != 200 {
			t.Errorf("like %d: %d %v", i, res.StatusCode, body)
		}
	}
	if waited := time.Since(start); waited < 40*time.Millisecond {
		t.Errorf("two calls at 20 a second took %v", waited)
	}
	// No rule is about this route: the one for all of the API is asked.
	for i := range 4 {
		if res, body := w.call(http.MethodGet, "/rooms", bearer, ""); (res.StatusCode == 429) != (i == 3) {
			t.Errorf("call %d of a route without a rule: %d %v", i, res.StatusCode, body)
		}
	}
}

// A bad token and a path that leads nowhere cost the address that they come from, like any call without a token.
func TestWhatLeadsNowhereCostsItsAddress(t *testing.T) {
	for name, call := range map[string]struct {
		path, token string
		status      int
	}{"a bad token": {"/rooms", "no.such.token", 401}, "no route": {"/nowhere", "", 404}, "a wrong method": {"/limits/guard", "", 405}} {
		w := newWorld(t, func(c *Config) {
			c.Gate = gateOf(t, "rules: [{name: address, action: api, scope: ip, rate: 0, burst: 3}]")
		})
		for i := range 5 {
			method, want := http.MethodGet, call.status
			if want == 405 {
				method = http.MethodPut
			}
			if i >= 3 {
				want = 429
			}
			if res, body := w.call(method, call.path, call.token, ""); res.StatusCode != want {
				t.Errorf("%s, call %d: %d %v, want %d", name, i, res.StatusCode, body, want)
			}
		}
	}
}

// TestRulesForSomeAreAskedWithAttributes: a call says what the user has, since no session of his does.
func TestRulesForSomeAreAskedWithAttributes(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Attributes = []string{"level"}
		c.Gate = gateOf(t, `
rules:
  - {name: newcomers, action: danmaku, scope: user, rate: 0, burst: 1, where: {level: "<5"}}
  - {name: calls, action: api, scope: key, rate: 1000, burst: 1000}
`)
		c.Book = bookOf(t, c.Gate)
	})
	service := w.token(protocol.RoleService)
	check := func(attrs string) int {
		res, _ := w.call("POST", "/limits/check", service, `{"action":"danmaku","user":"ann"`+attrs+`}`)
		return res.StatusCode
	}
	for _, want := range []struct {
		attrs string
		code  int
	}{{`,"attrs":{"level":3}`, 200}, {`,"attrs":{"level":3}`, 429}, {`,"attrs":{"level":9}`, 200}, {"", 200}, {`,"attrs":{"age":3}`, 400}} {
		if got := check(want.attrs); got != want.code {
			t.Errorf("%s: %d, want %d", want.attrs, got, want.code)
		}
	}
	applies := func(attrs string) any {
		res, body := w.call("GET", "/limits/explain?action=danmaku&user=ann&attrs="+url.QueryEscape(attrs), service, "")
		if res.StatusCode != 200 {
			return body["msg"]
		}
		for _, r := range body["rules"].([]any) {
			if r := r.(map[string]any); r["rule"] == "newcomers" {
				return r["why"]
			}
		}
		return nil
	}
	if young, old, bad := applies(`{"level":3}`), applies(`{"level":9}`), applies(`[3]`); young == old || !strings.Contains(fmt.Sprint(bad), "attrs: allowed is") {
		t.Errorf("%v, %v, %v", young, old, bad)
	}
}

func bookOf(t *testing.T, gate *limit.Gate) *rulebook.Book {
	t.Helper()
	b, err := rulebook.Open(t.Context(), rulebook.Config{Gate: limit.NewGate(gate.Rules().WithVersion(0), limit.NewClock()), Seed: limit.Default(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}
