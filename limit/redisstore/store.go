package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"liveroom/internal/lock"
	"liveroom/limit/cluster"
)

// Store is cluster.Store over Redis.
type Store struct {
	// Fixed after construction.
	dial    func() redis.UniversalClient
	scripts *scripts
	name    string // of this store among those that probe a server

	probes atomic.Int64

	// Replaced as a whole.
	link atomic.Pointer[link]

	mu       lock.Mutex[lock.Leaf] // guards what follows; a leaf
	replaced time.Time
	closed   bool
	running  sync.WaitGroup // Add under mu and not after closed
}

// link is a client with what is known of its servers. When the servers turn out
// to be replicas, both are replaced: that drops every connection at once and
// asks anew who is master.
type link struct {
	client redis.UniversalClient
	shards atomic.Pointer[topology] // nil but for a cluster that has been seen
}

var _ cluster.Store = (*Store)(nil)

// ErrClosed is the Err of calls after Close.
var ErrClosed = errors.New("redisstore: the store is closed")

// newStore returns a store that has not connected yet.
func newStore(dial func() redis.UniversalClient, s *scripts) *Store {
	st := &Store{dial: dial, scripts: s, name: rand.Text()}
	st.link.Store(&link{client: dial()})
	return st
}

// Time is the clock of a server, for who compares it with its own; quotas need no clock.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	return s.link.Load().client.Time(ctx).Result()
}

// Do sends the calls and sets each one's Reply or Err. When ctx ends before the
// servers answer, the calls that were not answered have its error, and may have
// been executed all the same.
func (s *Store) Do(ctx context.Context, calls []*cluster.Call) {
	answers := make([]answer, len(calls))
	for i, c := range calls {
		if answers[i].err = c.Validate(); answers[i].err == nil {
			answers[i].blob = appendCall(make([]byte, 0, 192), c)
			answers[i].key, answers[i].script = c.Key, &s.scripts[c.Tiers[0].Kind]
		}
	}
	done := make(chan struct{})
	if !s.start(func() { s.send(ctx, answers); close(done) }) {
		for _, c := range calls {
			c.Err = ErrClosed
		}
		return
	}
	select {
	case <-done:
		for i, c := range calls {
			c.Reply, c.Err = answers[i].reply, answers[i].err
		}
	case <-ctx.Done():
		for _, c := range calls {
			c.Reply, c.Err = cluster.Reply{}, context.Cause(ctx)
		}
	}
}

// start runs f on a goroutine that Close waits for. Do leaves f behind when its
// context ends first; the client's own time-outs end it soon after.
func (s *Store) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// Close ends every call and waits for it.
func (s *Store) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	err := s.link.Load().client.Close()
	s.running.Wait()
	return err
}

// renewal is the least time between two replacements of the client.
const renewal = time.Second

// renew replaces the client after a server said that it must not write: it is a
// replica now. Connections of the old client to it would say so again one by
// one, long after the name resolves to another server.
func (s *Store) renew(old *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.link.Load() != old || time.Since(s.replaced) < renewal {
		return
	}
	s.replaced = time.Now()
	next := &link{client: s.dial()}
	next.shards.Store(old.shards.Load())
	s.link.Store(next)
	s.running.Go(func() { _ = old.client.Close() })
}
