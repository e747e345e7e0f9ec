package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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

// plus sums two nodes.
func (c RedisCalls) plus(d RedisCalls) RedisCalls {
	return RedisCalls{c.At, c.Room + d.Room, c.User + d.User, c.Failed + d.Failed, c.Away + d.Away, c.Scripts + d.Scripts}
}

// toward is c and a share of the way from it to d.
func (c RedisCalls) toward(d RedisCalls, share float64) RedisCalls {
	f := func(p, q float64) float64 { return p + share*(q-p) }
	return RedisCalls{f(c.At, d.At), f(c.Room, d.Room), f(c.User, d.User), f(c.Failed, d.Failed), f(c.Away, d.Away), f(c.Scripts, d.Scripts)}
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

// calls are the calls of the samples from an instant on, and those of the last sample before.
func (s *sampler) calls(start time.Time) (out []RedisCalls) {
	began := start.Sub(s.began).Seconds()
	for _, x := range s.series() {
		c := x.redis
		if c.At = x.At - began; c.At < 0 {
			out = out[:0]
		}
		out = append(out, c)
	}
	return out
}

// callRates are the calls per second from one instant to another. Between two samples calls are taken as even.
func callRates(series []RedisCalls, from, to float64) RedisCalls {
	a, b := callsAt(series, from), callsAt(series, to)
	span := max(b.At-a.At, 1e-3)
	return RedisCalls{At: to, Room: (b.Room - a.Room) / span, User: (b.User - a.User) / span, Scripts: (b.Scripts - a.Scripts) / span}
}

func callsAt(series []RedisCalls, at float64) RedisCalls {
	i := slices.IndexFunc(series, func(c RedisCalls) bool { return c.At >= at })
	switch {
	case len(series) == 0:
		return RedisCalls{At: at}
	case i < 0:
		return series[len(series)-1]
	case i == 0 || series[i].At == at:
		return series[i]
	}
	before := series[i-1]
	return before.toward(series[i], (at-before.At)/(series[i].At-before.At))
}

// redisClient asks the Redis that this tool has started, nil when it has not.
func (b *bench) redisClient() *redis.Client {
	if b.fleet == nil || b.fleet.shared == nil || b.fleet.shared.redis == nil {
		return nil
	}
	o, err := redis.ParseURL(b.fleet.shared.redisURL)
	if err != nil {
		return nil
	}
	o.PoolSize, o.MaxRetries, o.ContextTimeoutEnabled = 1, -1, true
	return redis.NewClient(o)
}

// scriptCalls asks Redis how many scripts it has run; 0 when it does not say.
func scriptCalls(ctx context.Context, c *redis.Client) float64 {
	if c == nil {
		return 0
	}
	info, _ := c.Info(ctx, "commandstats").Result()
	return parseScripts(info)
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
