package redisstore_test

import (
	"context"
	"testing"
	"time"

	"liveroom/internal/redistest"
	"liveroom/limit"
)

// A server that reads and does not write is away: the rules go by on_outage
// within a second, and no longer within two of its writing again. The deadlines
// here are a busy machine's.
func TestReadsButDoesNotWrite(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ on, off []any }{
		"replicas short":  {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}},
		"memory full":     {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		"scripts denied":  {[]any{"ACL", "SETUSER", "default", "-evalsha"}, []any{"ACL", "SETUSER", "default", "+@all"}},
		"writing denied":  {[]any{"ACL", "SETUSER", "default", "-set"}, []any{"ACL", "SETUSER", "default", "+@all"}},
		"other keys only": {[]any{"ACL", "SETUSER", "default", "resetkeys", "~other:*"}, []any{"ACL", "SETUSER", "default", "allkeys"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			f := newFleet(t, 1, server, 0, `  - {name: shares, action: danmaku, room: shares, scope: room, rate: 1000, burst: 1000, cluster: true}
  - {name: shut, action: danmaku, room: shut, scope: room, rate: 1000, burst: 1000, cluster: true, on_outage: closed}
`)
			m := f.nodes[0]
			away := func() bool { _, _, yes := m.cluster.Degraded(); return yes }
			f.until("the store is in use", func() bool { return !away() && m.say("u", "shares").Verdict == limit.Allow })
			server.Do(fault.on...)
			began := time.Now()
			f.until("the outage shows", away)
			t.Logf("shows after %s: %s", time.Since(began), m.why())
			if d := m.say("u", "shares"); d.Verdict != limit.Allow {
				t.Errorf("a rule that shares: %+v", d)
			}
			if d := m.say("u", "shut"); d.Verdict != limit.Reject || !d.Unavailable {
				t.Errorf("a rule that closes: %+v", d)
			}
			for range 50 { // what only reads, or is asked anew, does not end it
				if <-time.After(10 * time.Millisecond); !away() {
					t.Fatal("it comes and goes")
				}
			}
			server.Do(fault.off...)
			began = time.Now()
			f.until("it is over", func() bool { return !away() })
			t.Logf("over after %s", time.Since(began))
			f.until("what closes opens", func() bool { return m.say("u", "shut").Verdict == limit.Allow })
		})
	}
}

// why is the reason of an outage.
func (m *machine) why() string {
	_, reason, _ := m.cluster.Degraded()
	return reason
}

// until waits for what must come to be.
func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			f.t.Fatal("not within 20 s: " + what)
		}
	}
}
