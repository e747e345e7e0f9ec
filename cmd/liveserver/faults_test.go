package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The faults of the article that the design started from, as far as they show on the running server alone. The library's
// stand with it, the API's routes with the API, and a threshold mistake with the rules.

// slowly are limits as shipped of what a user says in a room, but that nothing comes back while a test runs, however slow the machine.
const slowly = "rules:\n  - {name: danmaku-user-room, action: danmaku, scope: user_room, rate: 1, per: 1h, burst: 3}\n"

// startWithRules starts a server with a file of rules.
func startWithRules(t *testing.T, dir, rules string, args ...string) *server {
	t.Helper()
	return startServer(t, dir, append([]string{"-limits-file", rulesFile(t, rules)}, args...)...)
}

func rulesFile(t *testing.T, rules string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Whoever shows no token is still somebody: two guests and two addresses spend from buckets of their own.
func TestFaultSharedAnonymousBucket(t *testing.T) {
	t.Parallel()
	s := startWithRules(t, "", `
rules:
  - {name: user, action: danmaku, scope: user, rate: 0, burst: 1}
  - {name: address, action: api, scope: ip, rate: 0, burst: 1}
  - {name: welcome, action: [join, connect], scope: ip, rate: 100, burst: 100}
`, "-trusted-proxies", "127.0.0.1")
	for i := range 2 {
		guest := join(t, s.url, "demo", "")
		for n, want := range []int64{200, 429} {
			if ack := guest.ask("danmaku", fmt.Sprintf(`,"text":"guest %d says %d"`, i, n)); ack.num("code") != want {
				t.Errorf("guest %d, message %d: %v", i, n, ack)
			}
		}
		address := fmt.Sprintf("192.0.2.%d", i)
		for n, want := range []int{200, 429} {
			if res := s.call(t, http.MethodGet, "/rooms", "", "", "X-Forwarded-For", address); res.status != want {
				t.Errorf("%s, call %d: %v", address, n, res)
			}
		}
	}
}

// Every 429 says when to come back, at least a second from now, also where no wait would help.
func TestFault429WithoutRetryAfter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startWithRules(t, dir, `
rules:
  - {name: said, action: [danmaku, gift, like], scope: user, rate: 0, burst: 1}
  - {name: quick, action: join, scope: user, rate: 1000, burst: 1000}
  - {name: every-key, action: api, scope: key, rate: 100, burst: 1000}
  - {name: every-address, action: api, scope: ip, rate: 0, burst: 1}
  - {name: once, action: ["api:GET /rooms/{room}", "api:GET /rooms/{room}/gifts"], scope: key, rate: 0, burst: 1}
`)
	service := tokenFor(t, dir, "-role", "service")
	say := `{"user":{"id":"u"},"id":"%s","text":"%s"}`
	s.call(t, http.MethodGet, "/rooms", "", "")
	s.call(t, http.MethodGet, "/rooms/demo", service, "")
	s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(say, "one", "one"))
	for _, c := range []struct{ method, path, token, body string }{
		{http.MethodGet, "/rooms", "", ""},
		{http.MethodGet, "/rooms/demo", service, ""},
		{http.MethodGet, "/rooms/other/gifts", service, ""},
		{http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(say, "two", "one")}, // repeats itself
		{http.MethodPost, "/rooms/demo/danmaku", service, fmt.Sprintf(say, "three", "three")},
		{http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"g","gift":"rose","count":1}`},
		{http.MethodPost, "/rooms/demo/likes", service, `{"user":{"id":"u"},"id":"l","count":1}`},
		{http.MethodPost, "/limits/check", service, `{"action":"danmaku","room":"demo","user":"u"}`},
	} {
		res := s.call(t, c.method, c.path, c.token, c.body)
		seconds, err := strconv.Atoi(res.header.Get("Retry-After"))
		if res.status != http.StatusTooManyRequests || err != nil || seconds < 1 {
			t.Errorf("%s %s: %d, Retry-After %q, %v", c.method, c.path, res.status, res.header.Get("Retry-After"), res.body)
		}
		if int64(seconds)*1000 < res.body.num("retry_after_ms") || res.header.Get("RateLimit") == "" {
			t.Errorf("%s %s: Retry-After %d, %v", c.method, c.path, seconds, res.body)
		}
	}
}

// Labels come from closed sets: nothing that a client makes up becomes one.
func TestFaultLabelsByRawURI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service", "-sub", "labelservice")
	series := regexp.MustCompile(`(?m)^liveroom_[^ ]+`)
	talk := func(n int) {
		room := fmt.Sprint("labelroom", n)
		c := join(t, s.url, room, tokenFor(t, dir, "-sub", fmt.Sprint("labeluser", n)))
		c.ask("danmaku", `,"text":"labeltext"`)
		for _, path := range []string{"/rooms/" + room, "/rooms/" + room + "?labelquery=1", "/labelroute/" + room, "/rooms/" + room + "/labelroute"} {
			s.call(t, http.MethodGet, path, service, "")
		}
		s.call(t, "LABELVERB", "/rooms", service, "")
		s.call(t, http.MethodPost, "/limits/check", service, `{"action":"api:GET /labelroute","key":"labelkey"}`)
	}
	made := func(n int) map[string]bool {
		talk(n)
		out := map[string]bool{}
		for _, name := range series.FindAllString(string(s.scrape(t)), -1) {
			out[name] = true
		}
		return out
	}
	before := made(0)
	for n := range 20 {
		talk(n + 1)
	}
	for name := range made(21) {
		if strings.Contains(strings.ToLower(name), "label") {
			t.Errorf("a client made up %s", name)
		}
		if !before[name] {
			t.Errorf("%s came with the traffic", name)
		}
	}
}

// The time of a message is the server's, whatever its sender says it is.
func TestFaultClientClocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir)
	service := tokenFor(t, dir, "-role", "service")
	c := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "late"))
	from := time.Now().UnixMilli()
	inTime := func(what string, e event) {
		t.Helper()
		if ts := e.num("ts"); ts < from || ts > time.Now().UnixMilli() {
			t.Errorf("%s is of %d, want %d or a little later: %v", what, ts, from, e)
		}
	}
	for i, ts := range []string{"0", "-1", "4102444800000", "9007199254740993"} {
		fields := fmt.Sprintf(`,"ts":%s,"time":%s`, ts, ts)
		if i < 2 { // a burst of two
			inTime("the ack", c.ask("like", `,"count":1`+fields))
		}
		inTime("a gift", c.ask("gift", `,"gift":"rose","count":1`+fields))
		if i == 3 { // a burst of three
			break
		}
		inTime("a danmaku", c.ask("danmaku", fmt.Sprintf(`,"text":"at %s"`, ts)+fields))
		inTime("what is shown", c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }))
	}
	res := s.call(t, http.MethodPost, "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"id":"d","text":"by the API"}`, "Date", "Fri, 01 Jan 2100 00:00:00 GMT")
	inTime("the API's answer", res.body)
	inTime("what is shown", c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }))
}
