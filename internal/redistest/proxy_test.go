package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// through returns a client that goes through a proxy and tries nothing twice.
func through(t *testing.T, p *Proxy) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestProxy shows what each fault does to one request.
func TestProxy(t *testing.T) {
	server := Start(t)
	count := func() int64 { n, _ := server.Client().Get(t.Context(), "n").Int64(); return n }
	for name, c := range map[string]struct {
		fault func(*Proxy)
		fails bool
		adds  int64
	}{
		"none":       {func(*Proxy) {}, false, 1},
		"delay":      {func(p *Proxy) { p.Delay(20 * time.Millisecond) }, false, 1},
		"swallow":    {func(p *Proxy) { p.Swallow(true) }, true, 1},
		"reply lost": {func(p *Proxy) { p.LoseReplies(1) }, true, 1},
		"twice":      {func(p *Proxy) { p.Twice(true) }, false, 2},
		"cut":        {func(p *Proxy) { p.Refuse(true); p.Cut() }, true, 0},
	} {
		p := NewProxy(t, server.Addr)
		client := through(t, p)
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		before := count()
		c.fault(p)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := client.Incr(ctx, "n").Err()
		cancel()
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		deadline := time.Now().Add(5 * time.Second)
		for count() != before+c.adds && time.Now().Before(deadline) {
			wait(t.Context(), 5*time.Millisecond)
		}
		if n := count() - before; n != c.adds {
			t.Errorf("%s: the server has carried %d requests out, want %d", name, n, c.adds)
		}
	}
}
