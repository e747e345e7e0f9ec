package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"liveroom/limit/cluster"
)

// Ledger is a cluster.Store in memory, with one or more servers ("shards").
type Ledger struct {
	now func() time.Time // fixed

	mu     sync.Mutex
	lag    time.Duration // how far back FailOver can reach
	shards []*shard
}

// shard is one server. Ledger.mu guards it.
type shard struct {
	name    string
	keys    map[string]kept
	step    time.Duration // of the server's clock off the true one
	down    error
	runs    int
	journal []written
}

// kept is a key as the server has it.
type kept struct {
	state   *state // never changed: each write keeps another
	expires int64  // by the server's clock, in microseconds
}

// written is what a key was before a write.
type written struct {
	at  time.Time // true time
	key string
	was kept // zero when there was none
}

var _ cluster.Store = (*Ledger)(nil)

// New returns an empty store whose servers read the clock now, which must not go
// back. Without names there is one server named "ledger".
func New(now func() time.Time, shards ...string) *Ledger {
	if len(shards) == 0 {
		shards = []string{"ledger"}
	}
	l := &Ledger{now: now}
	for _, name := range shards {
		l.shards = append(l.shards, &shard{name: name, keys: map[string]kept{}})
	}
	return l
}

// Shard spreads keys over the servers by their hash tag, what stands between the
// first { and the next }, like Redis Cluster.
func (l *Ledger) Shard(key string) string { return l.shards[l.index(key)].name }

func (l *Ledger) index(key string) int {
	tag := key
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if inner, _, ok := strings.Cut(rest, "}"); ok && inner != "" {
			tag = inner
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(tag))
	return int(h.Sum32() % uint32(len(l.shards)))
}

// Shards names the servers.
func (l *Ledger) Shards() []string {
	var names []string
	for _, s := range l.shards {
		names = append(names, s.name)
	}
	return names
}

// Do carries the calls out one after the other, at once.
func (l *Ledger) Do(ctx context.Context, calls []*cluster.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range calls {
		if c.Err = ctx.Err(); c.Err == nil {
			c.Err = l.shards[l.index(c.Key)].do(c, l.now(), l.lag)
		}
	}
}

func (s *shard) do(c *cluster.Call, now time.Time, lag time.Duration) error {
	if s.down != nil {
		return s.down
	}
	if err := c.Validate(); err != nil {
		return err
	}
	raw := s.clock(now)
	had := s.get(c.Key, raw)
	next, what, err := step(had.state.clone(), c, raw)
	if err != nil || what == leave {
		return err
	}
	if lag > 0 {
		s.note(written{now, c.Key, had}, lag)
	}
	if what == remove {
		delete(s.keys, c.Key)
		return nil
	}
	s.keys[c.Key] = kept{next, (raw/1000 + next.life().Milliseconds()) * 1000}
	return nil
}

// clock is what the server's clock reads, in microseconds.
func (s *shard) clock(now time.Time) int64 { return now.Add(s.step).UnixMicro() }

// get returns a key that has not expired.
func (s *shard) get(key string, raw int64) kept {
	k := s.keys[key]
	if k.state != nil && raw/1000 > k.expires/1000 {
		delete(s.keys, key)
		return kept{}
	}
	return k
}

func (s *shard) note(w written, lag time.Duration) {
	if n := len(s.journal); n > 64 && w.at.Sub(s.journal[n/2].at) > lag {
		s.journal = slices.Delete(s.journal, 0, n/2)
	}
	s.journal = append(s.journal, w)
}

// Beat names the server's run.
func (l *Ledger) Beat(ctx context.Context, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.shard(name)
	if err != nil {
		return "", err
	}
	return s.name + "/" + strconv.Itoa(s.runs), errors.Join(ctx.Err(), s.down)
}

func (l *Ledger) shard(name string) (*shard, error) {
	for _, s := range l.shards {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("ledger: there is no server %q", name)
}
