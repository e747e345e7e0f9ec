package main

import "strings"

// redisCalls is how often Redis has been called up to an instant, all nodes together, as they count them.
type redisCalls struct {
	at     float64 // seconds since sampling began
	room   float64 // liveroom_redis_calls_total{op="room"}
	user   float64 // {op="user"}
	failed float64 // of all calls, those that came to nothing or too late
	away   float64 // seconds that nodes have served without Redis
}

// add sums two nodes.
func (c *redisCalls) add(d redisCalls) {
	c.room, c.user, c.failed, c.away = c.room+d.room, c.user+d.user, c.failed+d.failed, c.away+d.away
}

// rates are the calls per second from c to d.
func (c redisCalls) rates(d redisCalls) (room, user float64) {
	span := max(d.at-c.at, 1e-3)
	return max(0, d.room-c.room) / span, max(0, d.user-c.user) / span
}

// callsIn picks a node's calls out of its metrics, whatever came of them.
func callsIn(m map[string]float64) (c redisCalls) {
	c.away = m[`liveroom_degraded_seconds_total{dependency="redis"}`]
	for name, v := range m {
		labels, ok := strings.CutPrefix(name, "liveroom_redis_calls_total{")
		if !ok {
			continue
		}
		if !strings.Contains(labels, `result="ok"`) {
			c.failed += v
		}
		switch {
		case strings.Contains(labels, `op="room"`):
			c.room += v
		case strings.Contains(labels, `op="user"`):
			c.user += v
		}
	}
	return c
}
