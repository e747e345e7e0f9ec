package redisstore

import (
	"fmt"
	"testing"
	"time"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
)

// BenchmarkDraw is one draw at a time: a round trip and a run of the script.
func BenchmarkDraw(b *testing.B) { benchmark(b, 1, cluster.OpDraw) }

// BenchmarkDrawPipelined is what a lane does under load: 512 draws of as many
// keys in a pipeline. An operation is one draw.
func BenchmarkDrawPipelined(b *testing.B) { benchmark(b, 512, cluster.OpDraw) }

// BenchmarkClaimPipelined is a crowd that begins to talk: each claims its bucket.
func BenchmarkClaimPipelined(b *testing.B) { benchmark(b, 512, cluster.OpClaim) }

func benchmark(b *testing.B, n int, op cluster.Op) {
	s := open(b, redistest.Start(b).URL())
	terms := []limit.Terms{{Size: 1 << 30, Num: 1, Den: 5, Start: 1 << 30}}
	calls := make([]*cluster.Call, n)
	for i := range calls {
		calls[i] = &cluster.Call{Op: op, Key: fmt.Sprintf("lr:{room:%d}:danmaku-room", i), Node: "n1#3f2a-1", Tiers: terms, Lease: 500 * time.Millisecond}
		if op == cluster.OpDraw {
			calls[i].Ask, calls[i].Least = 10, 1
		}
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += n {
		for _, c := range calls {
			c.Seq++
			c.Received += c.Reply.Granted // spent at once
			c.Seen, c.MostSince = c.Reply.Now, time.Second
		}
		s.Do(b.Context(), calls)
		for _, c := range calls {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "draws/s")
}

// TestKeySize bounds what a room and a user cost in Redis, with everything that
// Redis itself adds to a key.
func TestKeySize(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	room, user := "lr:{room:0123456789abcdef}:danmaku-room", "lr:{user:guest-0123456789abcdef}:danmaku-user"
	for i := range 3 {
		for seq := range int64(3) {
			do(t, s, draw(room, fmt.Sprintf("n%d#3f2a9c01-1", i), seq+1, 10))
		}
	}
	do(t, s, &cluster.Call{Op: cluster.OpClaim, Key: user, Node: "n1#3f2a9c01-2", Seq: 1, Tiers: hundred, Lease: time.Second})
	size := func(key string) int64 { return server.Client().MemoryUsage(t.Context(), key).Val() }
	t.Logf("a room's key on three nodes: %d bytes, a user's claimed one: %d bytes", size(room), size(user))
	if size(room) > 640 || size(user) > 400 {
		t.Errorf("a room's key on three nodes: %d bytes, a user's: %d", size(room), size(user))
	}
}
