package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"liveroom/internal/redistest"
)

// TestOneUserOnThreeNodesHasOneAllowance: case 9. What is admitted is held against the bucket by its own stamps.
func TestOneUserOnThreeNodesHasOneAllowance(t *testing.T) {
	t.Parallel()
	dir, nats, redis := t.TempDir(), natsServer(t), redistest.Start(t).URL()
	var nodes []*server
	var clients []*client
	for i := range 3 {
		data := ""
		if i == 0 {
			data = dir
		}
		s := startServer(t, data, "-nats", nats, "-redis", redis, "-node-id", fmt.Sprintf("n%d", i+1))
		nodes = append(nodes, s)
		clients = append(clients, join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann")))
	}
	var stamps []int64
	for i := range 30 {
		ack := clients[i%3].ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i))
		switch ack.num("code") {
		case 200:
			stamps = append(stamps, ack.num("ts"))
		case 429:
			if ack.num("retry_after_ms") <= 0 {
				t.Errorf("refused without a time: %v", ack)
			}
		case 202, 503: // on a machine that stands still the room's answer may be late; such a message is not admitted
		default:
			t.Errorf("ack %v", ack)
		}
	}
	burst := int64(3)
	for _, s := range nodes {
		if s.metric(t, `liveroom_degraded_seconds_total{dependency="redis"}`) > 0 {
			burst = 6 // the nodes' parts of an outage come on top, once
		}
	}
	slices.Sort(stamps)
	for i := range stamps {
		for j := i; j < len(stamps); j++ {
			// danmaku-user-room: 1 a second, burst 3; a stamp is cut to its millisecond
			if n, most := int64(j-i+1), burst+(stamps[j]-stamps[i]+1)/1000; n > most {
				t.Fatalf("%d admitted within %d ms, allowed are %d", n, stamps[j]-stamps[i], most)
			}
		}
	}
	if len(stamps) < 3 {
		t.Errorf("%d were admitted, the burst alone is 3", len(stamps))
	}
}

// TestRedisThatGoesSilent: case 18. Everything is still answered, readiness says so, and it ends by itself.
func TestRedisThatGoesSilent(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	way := redistest.NewProxy(t, redis.Addr)
	s := startServer(t, "", "-nats", natsServer(t), "-redis", way.URL())
	n := 0
	say := func(what string) (ack event) { // each time somebody else, until it is admitted
		await(t, what, func() bool {
			n++
			ack = join(t, s.url, "demo", "").ask("danmaku", fmt.Sprintf(`,"text":"%s %d"`, what, n))
			return ack.num("code") == 200
		})
		return ack
	}
	degraded := func() string {
		return fmt.Sprint(request(t, http.MethodGet, s.admin+"/readyz", "", "").body["degraded"])
	}
	say("before")
	await(t, "nothing away", func() bool { return degraded() == "[]" })
	way.Swallow(true)
	await(t, "word that redis is away", func() bool { return degraded() == "[redis]" })
	for range 5 {
		say("meanwhile")
	}
	if open := s.metric(t, `liveroom_breaker_state{dependency="redis"}`); open == 0 {
		t.Error("the breaker's metric says that all is well")
	}
	await(t, "degraded seconds", func() bool { return s.metric(t, `liveroom_degraded_seconds_total{dependency="redis"}`) > 0 })
	way.Swallow(false)
	way.Cut()
	await(t, "redis back", func() bool { return degraded() == "[]" })
	second := time.NewTimer(1200 * time.Millisecond) // after an outage nodes go on with their parts for a second
	<-second.C
	calls := s.metric(t, `liveroom_redis_calls_total{op="room",result="ok"}`)
	say("after")
	if s.metric(t, `liveroom_redis_calls_total{op="room",result="ok"}`) <= calls {
		t.Error("redis is not asked any more")
	}
}
