package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// alone is the name of the one server that is no cluster's, and of a cluster
// that has not been seen yet.
const alone = "redis"

const slots = 16384

// topology is which shard of a cluster has which slot. A shard is named by the
// lowest of its slots, not by its master's address, so that a fail-over keeps
// the name and shows in Beat alone.
type topology struct {
	of    [slots]uint16 // index into names
	names []string
	keys  []string    // one that each shard has
	stale atomic.Bool // a call was told to go elsewhere
}

// Shard names the server that has a key. It does no I/O.
func (s *Store) Shard(key string) string {
	if t := s.link.Load().shards.Load(); t != nil {
		return t.names[t.of[slotOf(key)]]
	}
	return alone
}

// Shards names all servers: "redis", or a cluster's shards by their lowest slot,
// as soon as the cluster has been seen.
func (s *Store) Shards() []string {
	if t := s.link.Load().shards.Load(); t != nil {
		return slices.Clone(t.names)
	}
	return []string{alone}
}

// server returns the client of a shard's master. Of a cluster it fetches the map
// of slots first when there is none, or when it is stale.
func (l *link) server(ctx context.Context, shard string) (*redis.Client, error) {
	cluster, ok := l.client.(*redis.ClusterClient)
	if !ok {
		return l.master(ctx, "")
	}
	t := l.shards.Load()
	if t == nil || t.stale.Load() {
		fresh, err := look(ctx, cluster)
		switch {
		case err == nil:
			t = fresh
			l.shards.Store(t)
		case t == nil:
			return nil, err
		}
	}
	i := slices.Index(t.names, shard)
	if i < 0 && shard != alone {
		return nil, fmt.Errorf("redisstore: there is no shard %q", shard)
	}
	return cluster.MasterForKey(ctx, t.keys[max(i, 0)])
}

// keyOf returns a word whose slot a shard has; of one server any will do.
func (l *link) keyOf(shard string) string {
	if t := l.shards.Load(); t != nil {
		return t.keys[max(slices.Index(t.names, shard), 0)]
	}
	return alone
}

// look fetches the map of slots.
func look(ctx context.Context, cluster *redis.ClusterClient) (*topology, error) {
	//lint:ignore SA1019 Redis below 7 has no CLUSTER SHARDS
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ranges, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })
	t, masters, covered := &topology{}, []string{}, 0
	for _, r := range ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slots || r.End < r.Start {
			return nil, errors.New("redisstore: CLUSTER SLOTS makes no sense")
		}
		master := r.Nodes[0].ID + r.Nodes[0].Addr
		i := slices.Index(masters, master)
		if i < 0 {
			i = len(masters)
			masters = append(masters, master)
			t.names = append(t.names, "slot-"+strconv.Itoa(r.Start))
			t.keys = append(t.keys, keyIn(r.Start, r.End))
		}
		for slot := r.Start; slot <= r.End; slot++ {
			t.of[slot] = uint16(i)
		}
		covered += r.End - r.Start + 1
	}
	if covered != slots {
		return nil, fmt.Errorf("redisstore: the cluster serves %d of %d slots", covered, slots)
	}
	return t, nil
}

// keyIn returns a key whose slot lies in a range.
func keyIn(first, last int) string {
	for i := 0; ; i++ {
		key := strconv.Itoa(i)
		if slot := slotOf(key); slot >= first && slot <= last {
			return key
		}
	}
}

// slotOf is the slot of a key by the Redis Cluster specification: CRC-16/XMODEM
// of the hash tag, which is what stands between the first { and the next }, if
// that is anything, else the whole key.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return int(crc % slots)
}
