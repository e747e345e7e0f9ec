package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
)

// patient are time-outs for a machine that is busy with other tests.
var patient = Config{Dial: 20 * time.Second, Answer: 20 * time.Second}

func open(t testing.TB, url string) *Store {
	t.Helper()
	cfg := patient
	cfg.URL = url
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// hundred is a bucket of a hundred that refills one in a second.
var hundred = []limit.Terms{{Size: 100, Num: 1, Den: 1_000_000, Start: 100}}

func draw(key, node string, seq, ask int64) *cluster.Call {
	return &cluster.Call{Key: key, Node: node, Seq: seq, Tiers: hundred, Ask: ask, Least: 1, Lease: 500 * time.Millisecond}
}

func do(t testing.TB, s *Store, c *cluster.Call) cluster.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if s.Do(ctx, []*cluster.Call{c}); c.Err != nil {
		t.Fatalf("%s by %s: %v", c.Op, c.Node, c.Err)
	}
	return c.Reply
}

// eventually repeats a look at the server until it is right.
func eventually(t testing.TB, within time.Duration, what string, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", within, what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	if r := do(t, s, draw("{a}", "n#1", 1, 60)); r.Granted != 60 || r.Left != 40 || r.Wait != 0 {
		t.Errorf("%+v", r)
	}
	calls := []*cluster.Call{draw("{a}", "m#1", 1, 60), draw("{a}", "n#1", 0, 1), {Key: "{a}"}, draw("{b}", "n#1", 1, 1)}
	s.Do(t.Context(), calls)
	if calls[0].Err != nil || calls[0].Reply.Granted != 40 || calls[0].Reply.Others != 1 {
		t.Errorf("%v %+v", calls[0].Err, calls[0].Reply)
	}
	if !errors.Is(calls[1].Err, cluster.ErrStale) {
		t.Errorf("an overtaken call: %v", calls[1].Err)
	}
	if calls[2].Err == nil {
		t.Error("a call that is not valid passes")
	}
	if calls[3].Err != nil || calls[3].Reply.Granted != 1 {
		t.Errorf("%v %+v", calls[3].Err, calls[3].Reply)
	}
	// The key's clock is Redis TIME, to the microsecond.
	if now := server.Client().Time(t.Context()).Val().UnixMicro(); now-calls[3].Reply.Now > int64(10*time.Second/time.Microsecond) || calls[3].Reply.Now > now {
		t.Errorf("the key's clock reads %d, the server's %d", calls[3].Reply.Now, now)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	c := draw("{a}", "n#1", 1, 1)
	if s.Do(t.Context(), []*cluster.Call{c}); !errors.Is(c.Err, ErrClosed) {
		t.Errorf("after Close: %v", c.Err)
	}
	if _, err := s.Beat(t.Context(), "redis"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestScriptFlush forgets the scripts again and again under load: every call is
// answered, and each grant is counted once.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	granted := make([]int64, 4)
	var load sync.WaitGroup
	for i := range granted {
		load.Go(func() {
			node := fmt.Sprintf("n%d#1", i)
			for seq := range int64(100) {
				c := draw("{flushed}", node, seq+1, 1)
				c.Received = granted[i]
				if s.Do(t.Context(), []*cluster.Call{c}); c.Err != nil {
					t.Error(c.Err)
					return
				}
				granted[i] += c.Reply.Granted
			}
		})
	}
	stopped := make(chan struct{})
	go func() { load.Wait(); close(stopped) }()
	for flushing := true; flushing; {
		server.Do("SCRIPT", "FLUSH")
		select {
		case <-stopped:
			flushing = false
		case <-time.After(2 * time.Millisecond):
		}
	}
	sum := granted[0] + granted[1] + granted[2] + granted[3]
	if sum < 100 || sum > 110 {
		t.Errorf("%d granted of 100", sum)
	}
}

// TestHang shows that each call returns with its context while the server takes
// requests and answers none, and that the store is whole afterwards.
func TestHang(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := open(t, proxy.URL())
	do(t, s, draw("{a}", "n#1", 1, 1))
	proxy.Swallow(true)
	for i := range int64(3) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		c, began := draw("{a}", "n#1", i+2, 1), time.Now()
		s.Do(ctx, []*cluster.Call{c})
		cancel()
		if took := time.Since(began); c.Err == nil || took > 10*time.Second {
			t.Errorf("%v after %s", c.Err, took)
		}
	}
	proxy.Swallow(false)
	// All of them were executed, and none heard: what they granted is back.
	if r := do(t, s, &cluster.Call{Key: "{a}", Node: "n#1", Seq: 9, Received: 1, Hold: 1, Tiers: hundred, Lease: time.Second}); r.Left < 99 {
		t.Errorf("%+v", r)
	}
}

// TestCancelled shows that Do returns when its context is cancelled, not only
// when a deadline passes.
func TestCancelled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := open(t, proxy.URL())
	do(t, s, draw("{a}", "n#1", 1, 1))
	proxy.Swallow(true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	c, began := draw("{a}", "n#1", 2, 1), time.Now()
	s.Do(ctx, []*cluster.Call{c})
	if took := time.Since(began); !errors.Is(c.Err, context.Canceled) || took > 10*time.Second {
		t.Errorf("%v after %s", c.Err, took)
	}
}

// TestRestart kills the server: calls fail, then it is back, empty, and shows
// another life.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	do(t, s, draw("{a}", "n#1", 1, 100))
	before, err := s.Beat(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	c := draw("{a}", "n#1", 2, 1)
	if s.Do(t.Context(), []*cluster.Call{c}); c.Err == nil || c.Reply.Granted != 0 {
		t.Errorf("a dead server grants %d", c.Reply.Granted)
	}
	server.Run()
	eventually(t, 5*time.Second, "the restarted server beats", func(ctx context.Context) bool {
		life, err := s.Beat(ctx, "redis")
		return err == nil && life != before
	})
	late := draw("{a}", "n#1", 3, 1)
	late.Received, late.Lost = 100, true
	if r := do(t, s, late); r.Granted != 0 {
		t.Errorf("a store that came back empty grants %d to who knew it", r.Granted)
	}
}

// TestReplyLost is CASES 27: what a call gave back exists once, however often
// its reply is lost and it is told again, and what it was granted likewise.
func TestReplyLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr)
	s := open(t, proxy.URL())
	if r := do(t, s, draw("{a}", "n#1", 1, 100)); r.Granted != 100 {
		t.Fatalf("%+v", r)
	}
	back := &cluster.Call{Key: "{a}", Node: "n#1", Seq: 2, Received: 100, Returned: 30, Hold: 70, Ask: 10, Least: 10, Tiers: hundred, Lease: 5 * time.Second}
	proxy.LoseReplies(1)
	if s.Do(t.Context(), []*cluster.Call{back}); back.Err == nil {
		t.Fatal("the reply was not lost")
	}
	proxy.Twice(true)
	for range 3 {
		if r := do(t, s, back); r.Granted != 10 || r.Left > 21 {
			t.Errorf("the same call again: %+v", r)
		}
	}
	// Spent in the meantime; the same sum of what came back is told once more.
	next := &cluster.Call{Key: "{a}", Node: "n#1", Seq: 3, Received: 110, Returned: 30, Hold: 10, Tiers: hundred, Lease: 5 * time.Second}
	if r := do(t, s, next); r.Left > 25 {
		t.Errorf("returned tokens exist twice: %+v", r)
	}
}

// TestReadOnly is CASES 28 for a name that goes on to point at a replica, and
// then at the new master: served within 5 s, though every open connection goes to
// the old one.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := master.Replica(t)
	proxy := redistest.NewProxy(t, master.Addr)
	s := open(t, proxy.URL())
	before, err := s.Beat(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	var warm sync.WaitGroup
	for i := range 8 { // fills the pool
		warm.Go(func() { do(t, s, draw(fmt.Sprintf("{w%d}", i), "n#1", 1, 1)) })
	}
	warm.Wait()
	replica.Promote()
	master.Demote(replica)
	c := draw("{a}", "n#1", 1, 1)
	if s.Do(t.Context(), []*cluster.Call{c}); !redis.IsReadOnlyError(c.Err) || c.Reply.Granted != 0 {
		t.Fatalf("a replica answers %v and grants %d", c.Err, c.Reply.Granted)
	}
	proxy.Target(replica.Addr)
	eventually(t, 5*time.Second, "the new master serves", func(ctx context.Context) bool {
		c := draw("{a}", "n#1", 1, 1)
		s.Do(ctx, []*cluster.Call{c})
		return c.Err == nil && c.Reply.Granted == 1
	})
	if after, err := s.Beat(t.Context(), "redis"); err != nil || after == before {
		t.Errorf("a fail-over does not show: %v", err)
	}
}

// TestPromoted shows that a replica that never heard of some grants learns of
// them from their owner's next call.
func TestPromoted(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	s := open(t, master.URL())
	do(t, s, draw("{a}", "n#1", 1, 10))
	replica := master.Replica(t)
	replica.Detach()
	second := draw("{a}", "n#1", 2, 40)
	second.Received, second.Hold = 10, 10
	granted := do(t, s, second)
	master.Kill()
	replica.Promote()
	s = open(t, replica.URL())
	if r := do(t, s, draw("{a}", "m#1", 1, 1)); r.Left < 80 {
		t.Errorf("the replica has heard of the second grant: %+v", r)
	}
	third := draw("{a}", "n#1", 3, 0)
	third.Received, third.Hold, third.Seen = 50, 45, granted.Now
	third.LeastSince, third.MostSince = time.Millisecond, time.Minute
	if r := do(t, s, third); r.Left > 100-1-45 || r.Left < 40 {
		t.Errorf("after its owner told it: %+v", r)
	}
}

// TestNotOurs shows that a key of another kind is an error, not a grant.
func TestNotOurs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.URL())
	server.Do("LPUSH", "{a}", "x")
	server.Do("SET", "{b}", "x")
	for _, key := range []string{"{a}", "{b}"} {
		c := draw(key, "n#1", 1, 1)
		if s.Do(t.Context(), []*cluster.Call{c}); c.Err == nil || c.Reply.Granted != 0 {
			t.Errorf("%s: %v grants %d", key, c.Err, c.Reply.Granted)
		}
	}
}

func TestPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "s3cr3t")
	s := open(t, "redis://:wr0ng@"+server.Addr)
	c := draw("{a}", "n#1", 1, 1)
	if s.Do(t.Context(), []*cluster.Call{c}); c.Err == nil || strings.Contains(c.Err.Error(), "wr0ng") {
		t.Errorf("with a wrong password: %v", c.Err)
	}
	do(t, open(t, "redis://:s3cr3t@"+server.Addr), draw("{a}", "n#1", 1, 1))
}
