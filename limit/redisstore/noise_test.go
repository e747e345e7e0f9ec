package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
)

// TestNoKeyWithoutTTL is CASES 19: 10,000 random calls of every kind, with the
// server killed, the scripts forgotten and connections cut under them, leave no
// key that lives for ever. The server keeps every write on disk, so that a kill
// between two writes of one call would show.
func TestNoKeyWithoutTTL(t *testing.T) {
	t.Parallel()
	const workers, calls, rounds = 4, 10_000, 20
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
	proxy := redistest.NewProxy(t, server.Addr)
	s := open(t, proxy.URL())
	written := 0
	for round := range rounds {
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				for n := range calls / workers / rounds {
					c := randomCall(r, fmt.Sprintf("n%d#1", i), int64(round*calls+n+1))
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					s.Do(ctx, []*cluster.Call{c})
					cancel()
				}
			})
		}
		<-time.After(5 * time.Millisecond)
		switch round % 4 {
		case 0:
			proxy.Cut()
		case 1:
			server.Do("SCRIPT", "FLUSH")
		case 2:
			proxy.LoseReplies(5)
		case 3:
			server.Restart()
		}
		all.Wait()
		immortal, keys := lives(t, server)
		if written += keys; immortal > 0 {
			t.Fatalf("%d of %d keys live for ever", immortal, keys)
		}
	}
	if written < rounds {
		t.Errorf("only %d keys were looked at", written)
	}
}

// lives counts the keys without a time to live, and all.
func lives(t *testing.T, server *redistest.Server) (immortal, all int) {
	t.Helper()
	for _, key := range server.Client().Keys(t.Context(), "*").Val() {
		if all++; server.Client().TTL(t.Context(), key).Val() == -1 {
			immortal++
		}
	}
	return immortal, all
}

// randomCall is a call that is valid, on one of a few keys of its kind.
func randomCall(r *rand.Rand, node string, seq int64) *cluster.Call {
	kind := limit.Kind(r.IntN(int(limit.KindSlots) + 1))
	terms := limit.Terms{Kind: kind, Size: 1 + r.Int64N(50)}
	terms.Start, terms.Length = terms.Size, time.Duration(1+r.IntN(5000))*time.Millisecond
	if terms.Num, terms.Den = r.Int64N(3), 1+r.Int64N(1_000_000); kind != limit.KindBucket {
		terms.Num, terms.Den = 0, 0
	}
	c := &cluster.Call{Key: fmt.Sprintf("lr:{room:%d}:k%d", r.IntN(20), kind), Node: node, Seq: seq, Tiers: []limit.Terms{terms},
		Ask: r.Int64N(terms.Size + 1), Least: 1, Level: r.Int64N(terms.Size + 1), Lost: r.IntN(4) == 0,
		Lease: time.Duration(1+r.IntN(500)) * time.Millisecond}
	c.Op = [...][]cluster.Op{
		limit.KindBucket:  {cluster.OpDraw, cluster.OpDraw, cluster.OpClaim, cluster.OpGive, cluster.OpReset},
		limit.KindFixed:   {cluster.OpDraw, cluster.OpReset},
		limit.KindSliding: {cluster.OpDraw, cluster.OpReset},
		limit.KindLog:     {cluster.OpDraw, cluster.OpReset},
		limit.KindSlots:   {cluster.OpSlot, cluster.OpFree, cluster.OpReset},
	}[kind][r.IntN(2)]
	return c
}
