package model

import (
	"context"
	"sync"
	"time"

	"liveroom/limit"
)

// Node is one of the servers that share quotas: what it admits by, and what
// can befall it.
type Node struct {
	number int
	nth    int // started, of all
	world  *World
	link   *link
	// skew is how its clock differs from the true one: an origin, and parts in
	// a million.
	origin, drift int64
	quota         quota

	mu      sync.Mutex
	state   nodeState
	since   time.Time
	resumed chan struct{} // closed at the end of a pause
	noRedis bool
}

type nodeState uint8

const (
	nodeUp nodeState = iota
	nodePaused
	nodeDead
	nodeLeft
)

// quota is a way to decide at a node: the engine under test, or a way that
// others use. admit may wait, as long as a message may.
type quota interface {
	// admit decides on cost tokens of a subject and tells when they were taken.
	admit(subject int, cost int64) (at limit.Instant, ok bool)
	close(ctx context.Context)
}

// now is the node's own clock. While the process is stopped nobody reads it.
func (n *Node) now() limit.Instant {
	n.awake()
	t := int64(time.Since(n.world.start))
	return limit.Instant(n.origin + t + t/1_000_000*n.drift)
}

// trueTime is the instant since the run began at which the node's clock showed i.
func (n *Node) trueTime(i limit.Instant) time.Duration {
	shown := int64(i) - n.origin
	t := shown
	for range 3 { // each round leaves a ten-thousandth of the error
		t += shown - (t + t/1_000_000*n.drift)
	}
	return time.Duration(t)
}

// awake returns when the node is not paused. A process that is stopped neither
// sends nor hears; its timers fire when it goes on. It reports whether it was.
func (n *Node) awake() (paused bool) {
	n.mu.Lock()
	resumed := n.resumed
	n.mu.Unlock()
	if resumed != nil {
		<-resumed
	}
	return resumed != nil
}

// gone tells that the process is dead, so that nothing it starts has effect.
func (n *Node) gone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == nodeDead
}

func (n *Node) cut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.noRedis
}

func (n *Node) serving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state <= nodePaused
}

func (n *Node) turn(s nodeState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state == nodeDead || n.state == nodeLeft {
		return
	}
	n.state, n.since = s, time.Now()
	switch {
	case s == nodePaused:
		n.resumed = make(chan struct{})
	case n.resumed != nil:
		close(n.resumed)
		n.resumed = nil
	}
}

// Pause stops the process as SIGSTOP does; Resume lets it go on.
func (n *Node) Pause() { n.turn(nodePaused) }

// Resume ends a Pause.
func (n *Node) Resume() { n.turn(nodeUp) }

// Kill ends the process with all it holds.
func (n *Node) Kill() { n.turn(nodeDead) }

// Leave ends the process in order: traffic first, then what it holds goes back.
func (n *Node) Leave() {
	n.turn(nodeLeft)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n.quota.close(ctx)
}

// Cut parts the node from the store, or joins it again.
func (n *Node) Cut(off bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.noRedis = off
}

// message decides on one message and keeps the record of it. place orders those
// that a pause has held up, so that a run can be repeated.
func (n *Node) message(subject int, cost int64, place time.Duration) {
	if n.awake() {
		time.Sleep(place)
	}
	if !n.serving() {
		return
	}
	came := time.Now()
	at, ok := n.quota.admit(subject, cost)
	n.awake()
	if n.gone() {
		return
	}
	n.world.record(n, subject, cost, came, n.trueTime(at), ok)
}
