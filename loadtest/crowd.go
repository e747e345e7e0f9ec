package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// leaveTimeout is how long a session that said goodbye waits for the server to hang up.
const leaveTimeout = 3 * time.Second

// crowd is a set of sessions that come together. Safe for concurrent use.
type crowd struct {
	// fixed after construction
	dial    *dialer
	tokens  *minter
	readers *readers
	rooms   []string
	stable  bool
	timed   int  // one of so many sessions is timed
	first   int  // index of the first session: no two crowds share a user
	one     bool // all sessions are of the same user, the first
	workers int  // dials at the same time

	// safe for concurrent use
	joined atomic.Int64 // welcomed so far
	lost   atomic.Int64 // ended by the server or the network
	failed atomic.Int64 // never upgraded

	mu       sync.Mutex
	sessions []*session     // guarded by mu
	failures map[string]int // why sockets were not upgraded; guarded by mu
	nodes    map[string]int // sessions by the node that welcomed them; guarded by mu
}

// count is how many sessions are in one of these stages.
func (c *crowd) count(stages ...uint32) (n int) {
	for _, s := range c.all() {
		if slices.Contains(stages, s.stage.Load()) {
			n++
		}
	}
	return n
}

// welcomed notes a session that is in its room, and returns its node's name, the same string for all.
func (c *crowd) welcomed(node []byte) string {
	c.joined.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	name := unique.Make(string(node)).Value()
	c.nodes[name]++
	return name
}

// connect opens n sessions at a steady rate (per second) and returns when all of them are welcomed or have failed, or
// the server has been silent towards those that wait for connectTimeout. It reports only ctx's end; failures are counted.
func (c *crowd) connect(ctx context.Context, n int, rate float64) error {
	start, from := time.Now(), c.size()
	work := make(chan int)
	var wg sync.WaitGroup
	for range c.workers {
		wg.Go(func() {
			for i := range work {
				c.open(ctx, i)
			}
		})
	}
	err := feedAtRate(ctx, work, from, n, rate, start)
	close(work)
	wg.Wait()
	return errors.Join(err, c.settle(ctx, connectTimeout))
}

// comeBack is how often those who were told to come back (4003) do so, and how much slower each time.
const (
	comeBack       = 5
	comeBackSlower = 0.6
)

// fill connects until n sessions are in their rooms: a node that is busy sends some away with a time to come back, and so
// they do, a few times.
func (c *crowd) fill(ctx context.Context, n int, rate float64) error {
	for range comeBack {
		missing := n - len(c.live())
		if missing <= 0 {
			return nil
		}
		if err := c.connect(ctx, missing, rate); err != nil {
			return err
		}
		rate *= comeBackSlower
	}
	return nil
}

// feedAtRate hands out n numbers from first, evenly spaced.
func feedAtRate(ctx context.Context, work chan<- int, first, n int, rate float64, start time.Time) error {
	for k := range n {
		if err := waitUntil(ctx, start.Add(time.Duration(float64(k)/rate*1e9))); err != nil {
			return err
		}
		select {
		case work <- first + k:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// open connects session i of this crowd and says hello.
func (c *crowd) open(ctx context.Context, i int) {
	s := &session{index: c.first + i, room: uint16(i % len(c.rooms)), stable: c.stable, timed: i%max(c.timed, 1) == 0, crowd: c, opened: time.Now()}
	s.in.deflates = c.dial.compress
	conn, early, err := c.dial.dial(ctx, i)
	if err == nil {
		err = c.hello(s, conn, early)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, s)
	if err != nil {
		s.stage.Store(stageGone)
		c.failed.Add(1)
		c.failures[failureKind(err)]++
	}
}

func (c *crowd) hello(s *session, conn net.Conn, early []byte) error {
	user := s.index
	if c.one {
		user = c.first
	}
	token, err := c.tokens.token(user)
	if err != nil {
		conn.Close()
		return fmt.Errorf("token: %w", err)
	}
	w := newWriter(newRand(uint64(s.index)))
	if _, err := conn.Write(w.hello(c.rooms[s.room], token)); err != nil {
		conn.Close()
		return err
	}
	return c.readers.adopt(s, conn, early)
}

// failureKind names a failed dial in few words, so that a thousand of them are one line.
func failureKind(err error) string {
	var refused refusedError
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("status %d", refused.status)
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// settle waits until no session is between upgrade and welcome, but at most for patience without progress.
func (c *crowd) settle(ctx context.Context, patience time.Duration) error {
	last, since := int64(-1), time.Now()
	for {
		done := c.joined.Load() + c.failed.Load()
		if done >= int64(c.size()) || c.count(stageNew) == 0 {
			return nil
		}
		if done != last {
			last, since = done, time.Now()
		}
		if time.Since(since) > patience {
			return nil
		}
		if err := waitFor(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// all returns the sessions opened so far, in the order of their dials' ends.
func (c *crowd) all() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[:len(c.sessions):len(c.sessions)]
}

// live returns the sessions that are in their rooms.
func (c *crowd) live() []*session {
	var out []*session
	for _, s := range c.all() {
		if s.joined() {
			out = append(out, s)
		}
	}
	return out
}

// disperse ends all sessions that still are open, at most rate of them a second (0: at once), and waits until they are
// gone; what has not gone leaveTimeout after the last goodbye is cut.
func (c *crowd) disperse(ctx context.Context, how func(i int) farewell, rate float64) {
	start := time.Now()
	for i, s := range c.all() {
		if rate > 0 && waitUntil(ctx, start.Add(time.Duration(float64(i)/rate*1e9))) != nil {
			break
		}
		if s.stage.Load() != stageGone {
			s.end(how(i))
		}
	}
	for deadline := time.Now().Add(leaveTimeout); c.count(stageNew, stageJoined, stageClosing) > 0 && time.Now().Before(deadline); {
		if waitFor(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	for _, s := range c.all() {
		if s.stage.Load() != stageGone {
			s.end(hangUp)
		}
	}
}

// politely is the farewell of a well-behaved page.
func politely(int) farewell { return leave }

// rudely is that of a third each who leave politely, without a word, and by reset.
func rudely(i int) farewell { return farewell(i % 3) }

// dismiss sends all of them home.
func dismiss(ctx context.Context, crowds ...*crowd) {
	var wg sync.WaitGroup
	for _, c := range crowds {
		wg.Go(func() { c.disperse(context.WithoutCancel(ctx), politely, 0) })
	}
	wg.Wait()
}
