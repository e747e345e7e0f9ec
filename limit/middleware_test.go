package limit

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const apiRules = `
rules:
  - {name: list, action: "api:GET /rooms", scope: key, rate: 1, per: 10s, burst: 2}
  - {name: export, action: "api:GET /export", scope: ip, algorithm: concurrency, burst: 1, per: 1m}
  - {name: paced, action: "api:GET /paced", scope: ip, algorithm: leaky_bucket, rate: 1, burst: 3}
  - {name: all-keys, action: api, scope: key, rate: 100, burst: 100}
  - {name: all-users, action: api, scope: user, rate: 0, burst: 1}
  - {name: all-addresses, action: api, scope: ip, rate: 1, burst: 1}
`

// identify stands for the verification of a token.
func identify(r *http.Request) Identity {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer valid-"); ok {
		return Identity{Key: token, Role: "service"}
	}
	if user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer user-"); ok {
		return Identity{User: user}
	}
	return Identity{}
}

type call struct{ path, token, addr, language, forwarded string }

func serve(h http.Handler, c call) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", c.path, nil)
	r.RemoteAddr = c.addr
	if c.addr == "" {
		r.RemoteAddr = "192.0.2.1:99"
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Header.Set("Accept-Language", c.language)
	if c.forwarded != "" {
		r.Header.Set("X-Forwarded-For", c.forwarded)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// newServer returns a mux behind a middleware that knows its patterns.
func newServer(t *testing.T, clock Clock, handlers map[string]http.HandlerFunc) (http.Handler, *Gate) {
	gate := NewGate(mustCompile(t, apiRules), clock)
	mux := http.NewServeMux()
	for pattern, h := range handlers {
		mux.HandleFunc(pattern, h)
	}
	m := Middleware{
		Gate:     gate,
		Identify: identify,
		Trusted:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Route: func(r *http.Request) string {
			_, pattern := mux.Handler(r)
			return pattern
		},
	}
	return m.Wrap(mux), gate
}

func ok(http.ResponseWriter, *http.Request) {}

func TestMiddlewareRefusesAsTheContractSays(t *testing.T) {
	h, _ := newServer(t, atZero, map[string]http.HandlerFunc{"GET /rooms": ok})
	for i := range 2 {
		w := serve(h, call{path: "/rooms", token: "valid-a"})
		if w.Code != 200 || w.Header().Get("RateLimit-Policy") != `"list";q=2;w=20` {
			t.Fatalf("call %d: %d %v", i, w.Code, w.Header())
		}
		want := []string{`"list";r=1;t=10`, `"list";r=0;t=20`}[i]
		if have := w.Header().Get("RateLimit"); have != want {
			t.Fatalf("call %d: RateLimit %s, want %s", i, have, want)
		}
	}
	for language, want := range map[string][2]string{
		"":                        {"en", tooMany[0]},
		"zh-CN,zh;q=0.9,en;q=0.8": {"zh", tooMany[1]},
		"en-US,zh;q=0.5":          {"en", tooMany[0]},
		"zh-TW":                   {"zh", tooMany[1]},
		"de":                      {"en", tooMany[0]},
		"x;q=;;":                  {"en", tooMany[0]},
	} {
		w := serve(h, call{path: "/rooms", token: "valid-a", language: language})
		var body refusal
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if w.Code != 429 || body.Code != 429 || body.Reason != "rate_limited" || body.Scope != "key" || body.Rule != "list" {
			t.Fatalf("%d %+v", w.Code, body)
		}
		if body.RetryAfter <= 10_000 || body.RetryAfter > 12_000 {
			t.Errorf("retry_after_ms %d", body.RetryAfter)
		}
		seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
		if int64(seconds)*1000 < body.RetryAfter || seconds > 12 {
			t.Errorf("Retry-After %d for %d ms", seconds, body.RetryAfter)
		}
		if have := w.Header().Get("RateLimit"); have != `"list";r=0;t=10` {
			t.Errorf("RateLimit %s", have)
		}
		if body.Msg != want[1] || w.Header().Get("Content-Language") != want[0] {
			t.Errorf("%q: %s %s", language, w.Header().Get("Content-Language"), body.Msg)
		}
	}
}

// The fault "429 without Retry-After", also where no wait would help.
func TestFault429WithoutRetryAfter(t *testing.T) {
	h, _ := newServer(t, atZero, map[string]http.HandlerFunc{"GET /": ok})
	for _, c := range []call{{path: "/"}, {path: "/", token: "user-u"}} {
		serve(h, c)
		w := serve(h, c)
		if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 429 || err != nil || seconds < 1 || seconds > maxRetrySeconds {
			t.Errorf("%+v: %d, Retry-After %q", c, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// The faults "one shared anonymous bucket" and "client addresses believed".
func TestFaultSharedAnonymousBucket(t *testing.T) {
	h, _ := newServer(t, atZero, map[string]http.HandlerFunc{"GET /": ok})
	for i, c := range []struct {
		call
		code int
	}{
		{call{path: "/", addr: "192.0.2.1:1"}, 200},
		{call{path: "/", addr: "192.0.2.2:1"}, 200}, // another client has its own
		{call{path: "/", addr: "192.0.2.1:2"}, 429},
		{call{path: "/", addr: "192.0.2.1:3", token: "forged"}, 429},
		{call{path: "/", addr: "192.0.2.1:4", forwarded: "198.51.100.1"}, 429},
		{call{path: "/", addr: "10.0.0.1:4", forwarded: "198.51.100.1"}, 200},
		{call{path: "/", addr: "192.0.2.1:5", token: "valid-k"}, 200},
		{call{path: "/", addr: "[2001:db8::1]:1"}, 200},
		{call{path: "/", addr: "[2001:db8::2]:1"}, 429}, // one /64 is one client
	} {
		if w := serve(h, c.call); w.Code != c.code {
			t.Errorf("%d: %+v: %d, want %d", i, c.call, w.Code, c.code)
		}
	}
}

// The fault "rules looked up by raw URI with a pass when none matches".
func TestFaultRawURI(t *testing.T) {
	h, gate := newServer(t, atZero, map[string]http.HandlerFunc{"GET /rooms/{room}": ok})
	if w := serve(h, call{path: "/rooms/a"}); w.Code != 200 {
		t.Fatal(w.Code)
	}
	for _, path := range []string{"/rooms/b", "/rooms/a?x=1", "/nowhere"} {
		if w := serve(h, call{path: path}); w.Code != 429 {
			t.Errorf("%s opened a bucket of its own: %d", path, w.Code)
		}
	}
	for _, c := range gate.Counts() {
		if strings.Contains(c.Action, "/rooms/a") || strings.Contains(c.Action, "/nowhere") {
			t.Errorf("a raw path became a label: %+v", c)
		}
	}
}

func TestMiddlewareGivesSlotsBack(t *testing.T) {
	var h http.Handler
	inside := 0
	h, _ = newServer(t, atZero, map[string]http.HandlerFunc{
		"GET /export": func(w http.ResponseWriter, r *http.Request) {
			if inside++; inside == 1 {
				if again := serve(h, call{path: "/export"}); again.Code != 429 {
					t.Errorf("a second export at the same time: %d", again.Code)
				}
				panic("in the handler")
			}
		},
	})
	func() {
		defer func() { recover() }()
		serve(h, call{path: "/export"})
	}()
	if w := serve(h, call{path: "/export"}); w.Code != 200 || inside != 2 {
		t.Fatalf("after a panic the slot is gone: %d", w.Code)
	}
}

func TestSlotsOfTheDeadComeBack(t *testing.T) {
	g := NewGate(mustCompile(t, apiRules), atZero)
	q := &Request{Action: API, Route: "GET /export"}
	host := &Subject{Scope: ScopeIP}
	g.Decide(0, q, host)
	if d := g.Decide(1, q, host); d.Verdict != Reject || d.RetryAfter != time.Minute-1 {
		t.Fatalf("%+v", d)
	}
	if d := g.Decide(Instant(time.Minute), q, host); d.Verdict != Allow {
		t.Fatalf("%+v", d)
	}
	g.Release(0, q, host) // late: that slot is another's by now
	if d := g.Decide(Instant(time.Minute), q, host); d.Verdict != Reject {
		t.Fatalf("a late release freed another's slot: %+v", d)
	}
	g.Release(Instant(time.Minute), q, host)
	if d := g.Decide(Instant(time.Minute), q, host); d.Verdict != Allow {
		t.Fatalf("%+v", d)
	}
}

func TestMiddlewarePaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var served []time.Duration
		h, _ := newServer(t, NewClock(), map[string]http.HandlerFunc{
			"GET /paced": func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				served = append(served, time.Since(start))
				mu.Unlock()
				if d, ok := FromContext(r.Context()); !ok || d.Rule != "paced" {
					t.Errorf("decision in the context: %+v", d)
				}
			},
		})
		done := make(chan int, 4)
		for range 4 {
			go func() { done <- serve(h, call{path: "/paced"}).Code }()
			synctest.Wait()
		}
		refused := 0
		for range 4 {
			if <-done == 429 {
				refused++
			}
		}
		if refused != 1 || len(served) != 3 || served[1] != time.Second || served[2] != 2*time.Second {
			t.Fatalf("refused %d, served at %v", refused, served)
		}
	})
}

func TestMiddlewareWithoutPlaces(t *testing.T) {
	gate := NewGate(mustCompile(t, apiRules), atZero)
	h := Middleware{Gate: gate, MostClients: 1}.Wrap(http.HandlerFunc(ok))
	serve(h, call{path: "/", addr: "192.0.2.1:1"})
	w := serve(h, call{path: "/", addr: "198.51.100.1:1"})
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
}
