package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
)

const shippedUser = `  - {name: join-user, action: join, scope: user, rate: 1, per: 1h, burst: 10, cluster: true}
  - {name: join-room, action: join, scope: room, rate: 1000, burst: 5000, cluster: true}
  - {name: danmaku-user, action: danmaku, scope: user, rate: 1, burst: 10, cluster: true}
  - {name: gift-user, action: gift, scope: user, rate: 1, burst: 10, cluster: true}
`

// The node where a user was is killed, with all that it has claimed: the user joins elsewhere at once, and has no more joins for it.
func TestJoinAfterKill(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, 2, server, unhurried, shippedUser)
	for range 4 {
		if d := f.nodes[0].do(limit.Join, "u", "r"); d.Verdict != limit.Allow {
			t.Fatalf("%+v", d)
		}
	}
	f.nodes[0].say("u", "r")
	f.nodes[0].dead.Store(true) // no goodbye
	f.nodes[0].proxy.Refuse(true)
	f.nodes[0].proxy.Cut()
	for i := range 8 {
		if d := f.nodes[1].do(limit.Join, "u", "r"); (d.Verdict == limit.Allow) != (i < 6) || d.Unavailable {
			t.Errorf("join %d of 6 that are left: %+v", i, d)
		}
	}
}

// A crowd that joins and says nothing costs a call each at most and no key but the joins'.
func TestJoinsAreFew(t *testing.T) {
	// What a decision was granted it has until the last of its rules has answered, also where the crowd waits for a processor.
	held := cluster.Config{Budget: unhurried, Lease: 5 * time.Second}
	t.Parallel()
	server := redistest.Start(t)
	f := newFleetOf(t, 1, server, held, shippedUser)
	m := f.nodes[0]
	f.until("the scripts are loaded", func() bool { return m.do(limit.Join, "first", "r").Verdict == limit.Allow })
	before := m.drawn()
	var crowd sync.WaitGroup
	for i := range 500 {
		crowd.Go(func() {
			if d := m.do(limit.Join, fmt.Sprint("u", i), "r"); d.Verdict != limit.Allow {
				t.Errorf("u%d: %+v", i, d)
			}
		})
	}
	crowd.Wait()
	if n := m.drawn() - before; n > 500+50 { // the room's are a few
		t.Errorf("%d calls for 500 joins", n)
	}
	keys, err := server.Client().Keys(t.Context(), "lr:{user*").Result()
	if err != nil || len(keys) != 501 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if i := slices.IndexFunc(keys, func(k string) bool { return !strings.Contains(k, ":join-user:") }); i >= 0 {
		t.Errorf("a silent user has %s", keys[i])
	}
}

// drawn counts the calls that decisions made.
func (m *machine) drawn() (n int64) {
	for _, c := range m.cluster.Stats().Calls {
		if c.Op != "other" { // a beat
			n += c.N
		}
	}
	return n
}
