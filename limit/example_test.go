package limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"liveroom/limit"
)

// session and room own what limits them.
type session struct{ limits limit.Subject }

type room struct{ limits limit.Subject }

func Example() {
	spec, err := limit.Parse([]byte(`
rules:
  - {name: per-session, action: danmaku, scope: conn, rate: 2, burst: 3}
  - {name: per-room, action: danmaku, scope: room, rate: 1, burst: 1, degrade: {rate: 1, burst: 1}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := spec.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	gate := limit.NewGate(rules, limit.NewClock())
	s := &session{limit.Subject{Scope: limit.ScopeConn}}
	r := &room{limit.Subject{Scope: limit.ScopeRoom}}
	now := gate.Now()
	for range 3 {
		d := gate.Decide(now, &limit.Request{Action: limit.Danmaku, Role: "viewer"}, &s.limits, &r.limits)
		fmt.Println(d.Verdict, d.Rule, d.RetryAfter)
	}
	// Output:
	// allow per-room 0s
	// degrade per-room 0s
	// reject per-room 1s
}

func ExampleSpec_Compile() {
	spec, err := limit.Parse([]byte(`
rules:
  - {name: gifts, action: gift, scope: user, rate: 5, burst: 0}
  - {name: gifts, action: gift, scope: usr, rate: 5, burst: 20}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = spec.Compile()
	fmt.Println(err)
	// Output:
	// rules[0].burst: want 1 to 1000000000000, have 0
	// rules[1].scope: want one of [conn key user user_room ip net room global net_room], have "usr"
	// rules[1].name: "gifts" is taken by an earlier rule
}

// One server, limited by route template and verified identity.
func ExampleMiddleware() {
	spec, err := limit.Parse([]byte(`
rules:
  - {name: search, action: "api:GET /search/{term}", scope: key, rate: 1, burst: 1}
  - {name: keys, action: api, scope: key, rate: 100, burst: 200}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := spec.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := limit.Middleware{
		Gate: limit.NewGate(rules, limit.NewClock()),
		Identify: func(r *http.Request) limit.Identity {
			if user, password, ok := r.BasicAuth(); ok && password == "secret" {
				return limit.Identity{Key: user}
			}
			return limit.Identity{}
		},
	}
	mux := http.NewServeMux()
	search := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "found") })
	mux.Handle("GET /search/{term}", limits.Wrap(search))

	for _, term := range []string{"one", "two"} {
		r := httptest.NewRequest("GET", "/search/"+term, nil)
		r.SetBasicAuth("shop", "secret")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d, %s, Retry-After %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, "search";r=0;t=1, Retry-After ""
	// 429, "search";r=0;t=1, Retry-After "2"
}

// verdicts asks a rule at the given seconds and prints the answers.
func verdicts(rule string, seconds ...float64) {
	spec, err := limit.Parse([]byte("rules: [{name: r, action: gift, scope: user, " + rule + "}]"))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := spec.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	gate := limit.NewGate(rules, func() limit.Instant { return 0 })
	user := &limit.Subject{Scope: limit.ScopeUser}
	for _, s := range seconds {
		d := gate.Decide(limit.Instant(s*1e9), &limit.Request{Action: limit.Gift}, user)
		fmt.Println(s, d.Verdict, d.RetryAfter+d.Delay)
	}
}

// A token bucket forgives a pause with a burst.
func ExampleRule_tokenBucket() {
	verdicts("rate: 1, burst: 2", 0, 0, 0, 1)
	// Output:
	// 0 allow 0s
	// 0 allow 0s
	// 0 reject 1s
	// 1 allow 0s
}

// A leaky bucket admits the same and paces it: the second waits.
func ExampleRule_leakyBucket() {
	verdicts("algorithm: leaky_bucket, rate: 1, burst: 2", 0, 0, 0)
	// Output:
	// 0 allow 0s
	// 0 allow 1s
	// 0 reject 1s
}

// A fixed window forgets all at once, on the clock's multiples.
func ExampleRule_fixedWindow() {
	verdicts("algorithm: fixed_window, rate: 2, per: 10s", 8, 9, 9.5, 10)
	// Output:
	// 8 allow 0s
	// 9 allow 0s
	// 9.5 reject 500ms
	// 10 allow 0s
}

// A sliding window weighs what the window before had.
func ExampleRule_slidingWindow() {
	verdicts("algorithm: sliding_window, rate: 2, per: 10s", 8, 9, 10, 15)
	// Output:
	// 8 allow 0s
	// 9 allow 0s
	// 10 reject 5s
	// 15 allow 0s
}

// A sliding log grants exactly so much in any window.
func ExampleRule_slidingLog() {
	verdicts("algorithm: sliding_log, rate: 2, per: 10s", 8, 9, 10, 18)
	// Output:
	// 8 allow 0s
	// 9 allow 0s
	// 10 reject 8s
	// 18 allow 0s
}

// Slots are held until Gate.Release, or for per at the longest.
func ExampleRule_concurrency() {
	verdicts("algorithm: concurrency, burst: 1, per: 1m", 0, 1, 60)
	// Output:
	// 0 allow 0s
	// 1 reject 59s
	// 60 allow 0s
}
