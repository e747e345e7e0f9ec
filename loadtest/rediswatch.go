package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// RedisCalls is how often Redis has been called up to an instant, all nodes together.
type RedisCalls struct {
	At      float64 `json:"at_seconds"` // since the first attempt
	Room    float64 `json:"room"`       // as the nodes count them: liveroom_redis_calls_total{op="room"}
	User    float64 `json:"user"`       // {op="user"}
	Failed  float64 `json:"failed"`     // of all calls, those that came to nothing or too late
	Away    float64 `json:"away"`       // seconds that nodes have served without Redis: each admits its share alone then
	Scripts float64 `json:"scripts"`    // as Redis counts them: EVAL and EVALSHA; 0 when it can't be asked
}

// redisWatch counts calls to Redis from both of their ends.
type redisWatch struct {
	// fixed after construction
	client  *metricsClient
	address string // of Redis, host:port; "" when it can't be asked
	start   time.Time

	mu     sync.Mutex
	admins []string              // guarded by mu
	last   map[string]RedisCalls // what each node said last, also of those that are gone; guarded by mu
	series []RedisCalls          // guarded by mu
}

// watchEvery is the step of the series.
const watchEvery = 500 * time.Millisecond

// newRedisWatch asks the nodes behind the admin addresses, and the Redis that this tool has started, if it has.
func newRedisWatch(admins []string, redis *child, redisURL string) *redisWatch {
	w := &redisWatch{client: &metricsClient{http: &http.Client{Timeout: watchEvery, Transport: &http.Transport{DisableKeepAlives: true}}},
		admins: append([]string(nil), admins...), last: map[string]RedisCalls{}}
	if u, err := url.Parse(redisURL); err == nil && redis != nil {
		w.address = u.Host
	}
	return w
}

// add watches one more node.
func (w *redisWatch) add(admin string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admins = append(w.admins, admin)
}

// run takes a sample at each step until ctx ends, and one at the end.
func (w *redisWatch) run(ctx context.Context, start time.Time) {
	w.mu.Lock()
	w.start, w.series = start, nil
	w.mu.Unlock()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for w.sample(ctx); ctx.Err() == nil; w.sample(context.WithoutCancel(ctx)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// sample asks everybody at a time. A node that does not answer counts with what it said last.
func (w *redisWatch) sample(ctx context.Context) {
	w.mu.Lock()
	admins := append([]string(nil), w.admins...)
	w.mu.Unlock()
	var wg sync.WaitGroup
	for _, admin := range admins {
		wg.Go(func() {
			m, err := w.client.scrape(ctx, admin)
			if err != nil {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.last[admin] = redisCalls(m)
		})
	}
	scripts := scriptCalls(ctx, w.address)
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := RedisCalls{At: time.Since(w.start).Seconds(), Scripts: scripts}
	for _, c := range w.last {
		sum.Room, sum.User, sum.Failed, sum.Away = sum.Room+c.Room, sum.User+c.User, sum.Failed+c.Failed, sum.Away+c.Away
	}
	w.series = append(w.series, sum)
}

// redisCalls picks a node's calls out of its metrics, whatever came of them.
func redisCalls(m map[string]float64) (c RedisCalls) {
	c.Away = m[`liveroom_degraded_seconds_total{dependency="redis"}`]
	for name, v := range m {
		labels, ok := strings.CutPrefix(name, "liveroom_redis_calls_total{")
		if !ok {
			continue
		}
		if !strings.Contains(labels, `result="ok"`) {
			c.Failed += v
		}
		switch {
		case strings.Contains(labels, `op="room"`):
			c.Room += v
		case strings.Contains(labels, `op="user"`):
			c.User += v
		}
	}
	return c
}

// known reports whether anybody has said anything.
func (w *redisWatch) known() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.last) > 0
}

// calls returns the series.
func (w *redisWatch) calls() []RedisCalls {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]RedisCalls(nil), w.series...)
}

// callRates are the calls per second from one instant to another. Between two samples calls are taken as even.
func callRates(series []RedisCalls, from, to float64) RedisCalls {
	a, b := callsAt(series, from), callsAt(series, to)
	span := max(b.At-a.At, 1e-3)
	return RedisCalls{At: to, Room: (b.Room - a.Room) / span, User: (b.User - a.User) / span, Scripts: (b.Scripts - a.Scripts) / span}
}

func callsAt(series []RedisCalls, at float64) RedisCalls {
	if len(series) == 0 {
		return RedisCalls{At: at}
	}
	before := series[0]
	for _, x := range series {
		if x.At >= at {
			if span := x.At - before.At; span > 0 && before.At < at {
				share := (at - before.At) / span
				between := func(p, q float64) float64 { return p + share*(q-p) }
				return RedisCalls{At: at, Room: between(before.Room, x.Room), User: between(before.User, x.User), Scripts: between(before.Scripts, x.Scripts)}
			}
			return x
		}
		before = x
	}
	return before
}

// scriptCalls asks Redis how many scripts it has run (INFO commandstats); 0 when it does not say.
func scriptCalls(ctx context.Context, address string) float64 {
	if address == "" {
		return 0
	}
	d := net.Dialer{Timeout: watchEvery}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(watchEvery)) != nil {
		return 0
	}
	fmt.Fprint(c, "INFO commandstats\r\n")
	r := bufio.NewReader(c)
	head, err := r.ReadString('\n') // $LENGTH
	n, perr := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil || perr != nil || n < 0 || n > 1<<20 {
		return 0
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0
	}
	return parseScripts(string(body))
}

// parseScripts sums the calls of the commands that run scripts.
func parseScripts(info string) (sum float64) {
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name != "eval" && name != "evalsha" && name != "fcall" {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		if v, err := strconv.ParseFloat(calls, 64); err == nil {
			sum += v
		}
	}
	return sum
}
