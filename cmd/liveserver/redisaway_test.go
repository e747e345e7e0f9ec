package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"liveroom/internal/redistest"
)

const closedRules = `
rules:
  - {name: said, action: danmaku, scope: room, rate: 1000, burst: 1000, cluster: true, on_outage: closed}
  - {name: joined, action: join, room: shut, scope: room, rate: 1000, burst: 1000, cluster: true, on_outage: closed}
  - {name: joined-elsewhere, action: join, scope: room, rate: 1000, burst: 1000, cluster: true}
  - {name: called, action: api, scope: key, rate: 1000, burst: 1000}
  - {name: called-by-nobody, action: api, scope: ip, rate: 1000, burst: 1000}
`

// A Redis that reads and does not write is away: readiness and the metric say so, what its rules can't judge is unavailable
// on the socket, at the door and over HTTP alike, and all of it is over when Redis writes again.
func TestRedisThatDoesNotWrite(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p := startProcess(t, t.TempDir(), "-limits-file", rulesFile(t, closedRules), "-redis", redis.URL())
	degraded := func() string {
		return fmt.Sprint(request(t, http.MethodGet, p.admin+"/readyz", "", "").body["degraded"])
	}
	breaker := func() float64 { return p.metric(t, `liveroom_breaker_state{dependency="redis"}`) }
	check := func() response {
		return p.call(t, http.MethodPost, "/limits/check", p.adminToken, `{"action":"danmaku","room":"demo","user":"ann"}`)
	}
	c := join(t, p.url, "demo", "")
	n := 0
	say := func() event {
		n++
		return c.ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, n))
	}
	await(t, "a danmaku", func() bool { return say().num("code") == 200 })
	await(t, "nothing away", func() bool { return degraded() == "[]" && breaker() == 0 })

	redis.Do("CONFIG", "SET", "min-replicas-to-write", "1")
	await(t, "word that redis is away", func() bool { return degraded() == "[redis]" && breaker() > 0 })
	if ack := say(); ack.num("code") != 503 || ack.str("reason") != "unavailable" || ack.num("retry_after_ms") < 1000 {
		t.Errorf("a danmaku: %v", ack)
	}
	if code, reason := enter(t, p.url, "shut"); code != 4003 || reason.str("detail") != "unavailable" || reason.num("reconnect_in_ms") < 1000 {
		t.Errorf("a hello: %d %v", code, reason)
	}
	if code, reason := enter(t, p.url, "open"); code != 0 {
		t.Errorf("a hello by a rule that shares: %d %v", code, reason)
	}
	spoken := p.call(t, http.MethodPost, "/rooms/demo/danmaku", p.adminToken, `{"user":{"id":"sara"},"id":"h1","text":"by the API"}`)
	for what, r := range map[string]response{"limits/check": check(), "danmaku over HTTP": spoken} {
		if r.status != 503 || r.body.str("reason") != "unavailable" || r.body.num("retry_after_ms") < 1000 || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %v", what, r.status, r.body, r.header)
		}
	}

	redis.Do("CONFIG", "SET", "min-replicas-to-write", "0")
	await(t, "redis back", func() bool { return degraded() == "[]" && breaker() == 0 })
	await(t, "a danmaku again", func() bool { return say().num("code") == 200 })
	if r := check(); r.status != 200 {
		t.Errorf("limits/check: %d %v", r.status, r.body)
	}
}

// Case 38: a Redis that is slow and not dead. At any steady round trip up to 100 ms everybody gets in and speaks; where it is
// too far the node says so and goes by its parts, and everybody gets in, too.
func TestRedisFarAway(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	way := redistest.NewProxy(t, redis.Addr)
	s := startServer(t, "", "-redis", way.URL())
	beats := func() float64 {
		return s.metric(t, `liveroom_redis_calls_total{op="other",result="ok"}`)
	}
	degraded := func() bool {
		return fmt.Sprint(request(t, http.MethodGet, s.admin+"/readyz", "", "").body["degraded"]) == "[redis]"
	}
	away := func() float64 { return s.metric(t, `liveroom_degraded_seconds_total{dependency="redis"}`) }
	// visit lets five people in who speak, and returns what a machine that stands still for half a second can bring about as well.
	visit := func(trip time.Duration) (fault string) {
		before, been := beats(), away()
		await(t, "a steady way", func() bool { return degraded() || trip < 150*time.Millisecond && beats() >= before+4 })
		unjudged := 0
		for i := range 5 {
			code, reason := enter(t, s.url, fmt.Sprintf("far%d", trip/time.Millisecond))
			if code == 4003 && reason.str("detail") == "unavailable" {
				unjudged++
			} else if code != 0 {
				t.Errorf("%s: %d %v", trip, code, reason)
			}
			c := join(t, s.url, fmt.Sprintf("said%d", trip/time.Millisecond), "")
			switch ack := c.ask("danmaku", fmt.Sprintf(`,"text":"%s %d"`, trip, i)); ack.num("code") {
			case 200:
			case 503:
				unjudged++
			case 429: // its user spoke at the visit before
			default:
				t.Errorf("%s: %v", trip, ack)
			}
		}
		switch {
		case unjudged > 2:
			return fmt.Sprintf("%d of 10 could not be judged in time", unjudged)
		case trip <= 100*time.Millisecond && away()-been > 2:
			return "taken for away"
		}
		return ""
	}
	for _, trip := range []time.Duration{40, 60, 80, 90, 120, 180, 300} {
		trip *= time.Millisecond
		way.Delay(trip)
		var faults []string // a node that can't bear the distance fails each time
		for len(faults) < 3 {
			fault := visit(trip)
			if fault == "" {
				break
			}
			faults = append(faults, fault)
		}
		if len(faults) == 3 {
			t.Errorf("%s: %q", trip, faults)
		}
	}
}

// What the store of gifts can't take is told as that on both roads, and with it what became of the gift.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	s := startServer(t, "", "-nats", nats.ClientURL(), "-redis", redistest.Start(t).URL())
	c := join(t, s.url, "demo", s.hostToken)
	await(t, "a gift", func() bool { return c.ask("gift", `,"gift":"rose","count":1`).num("code") == 200 })
	nats.Shutdown()
	nats.WaitForShutdown()
	await(t, "word that NATS is away", func() bool {
		return fmt.Sprint(request(t, http.MethodGet, s.admin+"/readyz", "", "").body["degraded"]) != "[]"
	})
	unjudged := func(what string, code int64, body event) {
		if reason := body.str("reason"); code != 503 || reason != "try_later" && reason != "unavailable" || body.num("retry_after_ms") == 0 {
			t.Errorf("%s: %d %v", what, code, body)
		}
	}
	ack := c.ask("gift", `,"gift":"rose","count":1`)
	if unjudged("a gift", ack.num("code"), ack); ack.str("outcome") == "" {
		t.Errorf("nobody can tell what became of it: %v", ack)
	}
	r := s.call(t, http.MethodPost, "/rooms/demo/gifts", s.adminToken, `{"user":{"id":"sara"},"id":"g1","gift":"rose","count":1}`)
	unjudged("a gift over HTTP", int64(r.status), r.body)
	r = s.call(t, http.MethodGet, "/rooms/demo/gifts", s.adminToken, "")
	unjudged("the ledger", int64(r.status), r.body)
}

// enter says hello once. The code is 0 when a welcome came.
func enter(t *testing.T, url, room string) (code int, reason event) {
	t.Helper()
	c := dial(t, url, nil)
	c.send(fmt.Sprintf(`{"op":"hello","id":"h","room":%q,"token":""}`, room))
	for {
		events, err := c.read()
		for _, e := range events {
			if e.kind() == "welcome" {
				return 0, nil
			}
		}
		if ce := (websocket.CloseError{}); errors.As(err, &ce) {
			_ = json.Unmarshal([]byte(ce.Reason), &reason)
			return int(ce.Code), reason
		} else if err != nil {
			return 1006, nil
		}
	}
}
