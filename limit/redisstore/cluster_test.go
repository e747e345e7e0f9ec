package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"liveroom/internal/redistest"
	"liveroom/limit/cluster"
)

// ids are of all kinds that a key may carry, escaped or not.
var ids = []string{"demo", "a{b}c", "{}", "}{", "{", "用户", "u:1@x.y", "a b", "%7b", "\x00\xff", ""}

// TestCluster is CASES 29: calls with ids of all kinds reach the shard of their
// key, one pipeline a shard, and none meets CROSSSLOT or MOVED.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	s := open(t, servers.URL())
	shards := s.Shards()
	if len(shards) != 3 {
		t.Fatalf("%q", shards)
	}
	lives := map[string]bool{}
	for _, name := range shards {
		life, err := s.Beat(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		lives[life] = true
	}
	if len(lives) != 3 {
		t.Errorf("shards share a life: %v", lives)
	}
	by := map[string][]*cluster.Call{}
	for i := range 40 {
		for _, id := range ids {
			key := fmt.Sprintf("lr:{room:%d%s}:rule", i, id)
			by[s.Shard(key)] = append(by[s.Shard(key)], draw(key, "n#1", 1, 7))
		}
	}
	if len(by) != 3 {
		t.Errorf("keys are on %d shards", len(by))
	}
	for name, calls := range by {
		s.Do(t.Context(), calls)
		for _, c := range calls {
			if c.Err != nil || c.Reply.Granted != 7 {
				t.Errorf("%s: %s: %v, %d granted", name, c.Key, c.Err, c.Reply.Granted)
			}
		}
	}
	for i, server := range servers.Masters {
		if n := server.Client().DBSize(t.Context()).Val(); n != int64(len(by[shards[i]]))+1 { // and a probe's
			t.Errorf("master %d has %d keys, want %d and a probe's", i, n, len(by[shards[i]]))
		}
	}
}

// TestSlotIsRedis compares the slots with the server's.
func TestSlotIsRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	for _, id := range ids {
		for _, key := range []string{id, "lr:{room:" + id + "}:rule", "x" + id + "{y}", "{}" + id} {
			if want := server.Client().ClusterKeySlot(t.Context(), key).Val(); int64(slotOf(key)) != want {
				t.Errorf("%q: slot %d, want %d", key, slotOf(key), want)
			}
		}
	}
}

// TestMovedSlot moves a slot under a store that has its map: the call is served
// and the map is fetched anew.
func TestMovedSlot(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	s := open(t, servers.URL())
	key := "lr:{room:moves}:rule"
	from := 0
	for i, name := range s.Shards() {
		if name == s.Shard(key) {
			from = i
		}
	}
	servers.Move(slotOf(key), from, (from+1)%3)
	if r := do(t, s, draw(key, "n#1", 1, 5)); r.Granted != 5 {
		t.Errorf("%+v", r)
	}
	eventually(t, 10*time.Second, "the new map", func(ctx context.Context) bool {
		_, err := s.Beat(ctx, s.Shards()[0])
		return err == nil && s.Shard(key) == s.Shards()[(from+1)%3]
	})
	if r := do(t, s, draw(key, "n#1", 1, 5)); r.Granted != 5 {
		t.Errorf("the same call again: %+v", r)
	}
}

// TestShardDies shows that the others go on.
func TestShardDies(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3)
	for _, m := range servers.Masters {
		m.Do("CONFIG", "SET", "cluster-require-full-coverage", "no")
	}
	s := open(t, servers.URL())
	dead := s.Shards()[1]
	servers.Masters[1].Kill()
	for i := range 30 {
		c := draw(fmt.Sprintf("{k%d}", i), "n#1", 1, 1)
		s.Do(t.Context(), []*cluster.Call{c})
		if is := s.Shard(c.Key) == dead; is != (c.Err != nil) {
			t.Errorf("%s on %s: %v", c.Key, s.Shard(c.Key), c.Err)
		}
	}
}

// TestSentinel is CASES 28 with a Sentinel: after the master's death its
// replacement serves. Sentinel itself takes a second to be sure.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := master.Replica(t)
	sentinel := master.Sentinel(t, "mine", 1)
	s := open(t, "redis+sentinel://"+sentinel.Addr+"/mine")
	do(t, s, draw("{a}", "n#1", 1, 1))
	before, err := s.Beat(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	replica.CatchUp(master)
	master.Kill()
	eventually(t, 30*time.Second, "Sentinel promotes the replica", func(ctx context.Context) bool {
		role, _ := replica.Client().Do(ctx, "ROLE").Slice()
		return len(role) > 0 && role[0] == "master"
	})
	eventually(t, 5*time.Second, "the new master serves", func(ctx context.Context) bool {
		c := draw("{b}", "n#1", 1, 1)
		s.Do(ctx, []*cluster.Call{c})
		return c.Err == nil && c.Reply.Granted == 1
	})
	if after, err := s.Beat(t.Context(), "redis"); err != nil || after == before {
		t.Errorf("a fail-over does not show: %v", err)
	}
}
