package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// LeaveTimeout is how long a session that said goodbye waits for the server to hang up.
const LeaveTimeout = 3 * time.Second

// Crowd is a set of sessions that come together. Safe for concurrent use.
type Crowd struct {
	// fixed after construction
	Dial    *Dialer
	Tokens  *Minter
	Readers *Readers
	Rooms   []string
	Stable  bool
	Timed   int  // one of so many sessions is timed
	First   int  // index of the first session: no two crowds share a user
	One     bool // all sessions are of the same user, the first
	Workers int  // dials at the same time

	// safe for concurrent use
	Joined atomic.Int64 // welcomed so far
	Lost   atomic.Int64 // ended by the server or the network
	Failed atomic.Int64 // never upgraded

	mu       sync.Mutex
	sessions []*Session     // guarded by mu
	Failures map[string]int // why sockets were not upgraded; guarded by mu
	Nodes    map[string]int // sessions by the node that welcomed them; guarded by mu
}

// Connections sums up how sessions came in.
type Connections struct {
	Wanted   int            `json:"wanted"`
	Joined   int64          `json:"joined"`
	Failed   int64          `json:"failed"`
	Silent   int64          `json:"silent"` // upgraded but neither welcomed nor closed
	Closed   int64          `json:"closed"` // upgraded, and closed instead of welcomed
	Failures map[string]int `json:"failures,omitempty"`
	Nodes    map[string]int `json:"nodes,omitempty"`
}

// String is the summary in one line.
func (c Connections) String() string {
	s := fmt.Sprintf("%d of %d joined", c.Joined, c.Wanted)
	if c.Failed > 0 {
		s += fmt.Sprintf(", %d failed", c.Failed)
	}
	if c.Silent > 0 {
		s += fmt.Sprintf(", %d without a welcome", c.Silent)
	}
	if c.Closed > 0 {
		s += fmt.Sprintf(", %d closed instead of welcomed", c.Closed)
	}
	for _, why := range slices.Sorted(maps.Keys(c.Failures)) {
		s += fmt.Sprintf("; %s: %d", why, c.Failures[why])
	}
	return s
}

// AddTo adds how the crowd came in.
func (c *Crowd) AddTo(x *Connections) {
	joined, failed, silent := c.Joined.Load(), c.Failed.Load(), int64(c.count(stageNew))
	x.Joined, x.Failed, x.Silent = x.Joined+joined, x.Failed+failed, x.Silent+silent
	x.Closed += int64(c.Size()) - joined - failed - silent
	c.mu.Lock()
	defer c.mu.Unlock()
	for why, n := range c.Failures {
		x.Failures[why] += n
	}
	for node, n := range c.Nodes {
		x.Nodes[node] += n
	}
}

// count is how many sessions are in one of these stages.
func (c *Crowd) count(stages ...uint32) (n int) {
	for _, s := range c.All() {
		if slices.Contains(stages, s.stage.Load()) {
			n++
		}
	}
	return n
}

// welcomed notes a session that is in its room, and returns its node's name, the same string for all.
func (c *Crowd) welcomed(node string) string {
	c.Joined.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	name := unique.Make(node).Value()
	c.Nodes[name]++
	return name
}

// Connect opens n sessions at a steady rate (per second) and returns when all of them are welcomed or have failed, or
// the server has been silent towards those that wait for connectTimeout. It reports only ctx's end; failures are counted.
func (c *Crowd) Connect(ctx context.Context, n int, rate float64) error {
	var err error
	var wg sync.WaitGroup
	busy := make(chan struct{}, c.Workers)
	for start, from, k := time.Now(), c.Size(), 0; k < n; k++ {
		if err = WaitUntil(ctx, start.Add(time.Duration(float64(k)/rate*1e9))); err != nil {
			break
		}
		busy <- struct{}{} // a dial ends with ctx, or after ConnectTimeout
		wg.Go(func() {
			c.open(ctx, from+k)
			<-busy
		})
	}
	wg.Wait()
	return errors.Join(err, c.settle(ctx, ConnectTimeout))
}

// ComeBack is how often those who were told to come back (4003) do so, and how much slower each time.
const (
	ComeBack       = 5
	comeBackSlower = 0.6
)

// Fill connects until n sessions are in their rooms: a node that is busy sends some away with a time to come back, and so
// they do, a few times.
func (c *Crowd) Fill(ctx context.Context, n int, rate float64) error {
	for range ComeBack {
		missing := n - len(c.Live())
		if missing <= 0 {
			return nil
		}
		if err := c.Connect(ctx, missing, rate); err != nil {
			return err
		}
		rate *= comeBackSlower
	}
	return nil
}

// open connects session i of this crowd and says hello.
func (c *Crowd) open(ctx context.Context, i int) {
	s := &Session{index: c.First + i, Room: uint16(i % len(c.Rooms)), stable: c.Stable, timed: i%max(c.Timed, 1) == 0, crowd: c, opened: time.Now()}
	s.in.deflates = c.Dial.Compress
	conn, early, err := c.Dial.dial(ctx, i)
	if err == nil {
		err = c.hello(s, conn, early)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, s)
	if err != nil {
		s.stage.Store(stageGone)
		c.Failed.Add(1)
		c.Failures[failureKind(err)]++
	}
}

func (c *Crowd) hello(s *Session, conn net.Conn, early []byte) error {
	user := s.index
	if c.One {
		user = c.First
	}
	token, err := c.Tokens.token(user)
	if err != nil {
		conn.Close()
		return fmt.Errorf("token: %w", err)
	}
	w := NewWriter(NewRand(uint64(s.index)))
	if _, err := conn.Write(w.hello(c.Rooms[s.Room], token)); err != nil {
		conn.Close()
		return err
	}
	return c.Readers.adopt(s, conn, early)
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
func (c *Crowd) settle(ctx context.Context, patience time.Duration) error {
	last, since := int64(-1), time.Now()
	for {
		done := c.Joined.Load() + c.Failed.Load()
		if done >= int64(c.Size()) || c.count(stageNew) == 0 {
			return nil
		}
		if done != last {
			last, since = done, time.Now()
		}
		if time.Since(since) > patience {
			return nil
		}
		if err := WaitFor(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *Crowd) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// All returns the sessions opened so far, in the order of their dials' ends.
func (c *Crowd) All() []*Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[:len(c.sessions):len(c.sessions)]
}

// Live returns the sessions that are in their rooms.
func (c *Crowd) Live() []*Session {
	var out []*Session
	for _, s := range c.All() {
		if s.Joined() {
			out = append(out, s)
		}
	}
	return out
}

// Disperse ends all sessions that still are open, at most rate of them a second (0: at once), and waits until they are
// gone; what has not gone leaveTimeout after the last goodbye is cut.
func (c *Crowd) Disperse(ctx context.Context, how func(i int) Farewell, rate float64) {
	start := time.Now()
	for i, s := range c.All() {
		if rate > 0 && WaitUntil(ctx, start.Add(time.Duration(float64(i)/rate*1e9))) != nil {
			break
		}
		if s.stage.Load() != stageGone {
			s.end(how(i))
		}
	}
	for deadline := time.Now().Add(LeaveTimeout); c.count(stageNew, stageJoined, stageClosing) > 0 && time.Now().Before(deadline); {
		if WaitFor(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	for _, s := range c.All() {
		if s.stage.Load() != stageGone {
			s.end(HangUp)
		}
	}
}

// Politely is the farewell of a well-behaved page.
func Politely(int) Farewell { return leave }

// Rudely is that of a third each who leave politely, without a word, and by reset.
func Rudely(i int) Farewell { return Farewell(i % 3) }

// Dismiss sends all of them home.
func Dismiss(ctx context.Context, crowds ...*Crowd) {
	var wg sync.WaitGroup
	for _, c := range crowds {
		wg.Go(func() { c.Disperse(context.WithoutCancel(ctx), Politely, 0) })
	}
	wg.Wait()
}
