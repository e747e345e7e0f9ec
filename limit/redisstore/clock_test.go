package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"liveroom/internal/redistest"
	"liveroom/limit/cluster"
)

// steppedClock is Redis TIME with a step that the test keeps in a key. A real
// server's clock is the machine's, which a test must not set; this steps what the
// script reads, on a real server, and nothing else. What a real step does besides
// is to end keys' lives early: TestStepEndsKeys.
const steppedClock = `
local function clock()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000000 + tonumber(now[2]) + tonumber(redis.call('GET', 'step') or '0')
end`

// TestClockSteps steps the server's clock by an hour both ways under a bucket of
// a hundred tokens that refills one in a second: nothing is granted for it.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o, err := Config{URL: server.URL(), Dial: patient.Dial, Answer: patient.Answer}.options()
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(func() redis.UniversalClient { return redis.NewUniversalClient(o) }, assemble(steppedClock))
	t.Cleanup(func() { _ = s.Close() })

	began := time.Now()
	node := &asker{t: t, s: s, key: "{stepped}"}
	sum := node.ask(1000)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0, 24 * time.Hour, 24*time.Hour + time.Minute, 0} {
		server.Do("SET", "step", step.Microseconds())
		for range 3 {
			sum += node.ask(1000)
		}
		// A node that never asked here has nothing to tell the step by, but the
		// key's clock has been put right already.
		other := &asker{t: t, s: s, key: "{stepped}", name: "m" + step.String() + "#1"}
		sum += other.ask(1000)
	}
	if most := 100 + int64(time.Since(began)/time.Second) + 1; sum > most || sum < 100 {
		t.Errorf("granted %d, want 100 to %d", sum, most)
	}
	last := node.seen
	eventually(t, 5*time.Second, "the key's clock runs on", func(context.Context) bool {
		node.ask(1)
		return node.seen > last
	})
}

// asker is a node that spends at once, and tells what it has seen of the clock.
type asker struct {
	t               *testing.T
	s               *Store
	key, name       string
	seq, received   int64
	seen            int64
	sent, received1 time.Time
}

func (a *asker) ask(n int64) int64 {
	a.t.Helper()
	a.seq++
	c := draw(a.key, "n#1", a.seq, n)
	if a.name != "" {
		c.Node = a.name
	}
	now := time.Now()
	if c.Received = a.received; a.seen > 0 {
		c.Seen, c.LeastSince, c.MostSince = a.seen, now.Sub(a.received1), now.Sub(a.sent)
	}
	r := do(a.t, a.s, c)
	a.received += r.Granted
	a.seen, a.sent, a.received1 = r.Now, now, time.Now()
	return r.Granted
}

// TestStepEndsKeys shows the other half of a step forward: Redis ends the lives
// of keys by its clock. PEXPIREAT into the past does to a key what the step does.
// Whoever knew the key starts it empty.
func TestStepEndsKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	do(t, s, draw("{a}", "n#1", 1, 100))
	server.Do("PEXPIREAT", "{a}", 1)
	c := draw("{a}", "n#1", 2, 100)
	c.Received, c.Lost = 100, true
	if r := do(t, s, c); r.Granted != 0 || r.Left > 0 {
		t.Errorf("%+v", r)
	}
}

// TestSilentNode shows what a node paused beyond its leases, or killed with them,
// costs: what it held is void, others go on at the rate.
func TestSilentNode(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	key := "{silent}"
	held := draw(key, "n#1", 1, 100)
	do(t, s, held)
	if r := do(t, s, draw(key, "m#1", 1, 1)); r.Granted != 0 || r.Wait < time.Second {
		t.Errorf("while it may spend them: %+v", r)
	}
	eventually(t, 5*time.Second, "the lease ends and a token comes", func(context.Context) bool {
		c := draw(key, "m#1", time.Now().UnixNano()/1000, 1)
		return do(t, s, c).Granted == 1
	})
	late := &cluster.Call{Key: key, Node: "n#1", Seq: 2, Received: 100, Returned: 100, Tiers: hundred, Lease: time.Second}
	if r := do(t, s, late); r.Left > 5 {
		t.Errorf("a lease given back after its end counts: %+v", r)
	}
}
