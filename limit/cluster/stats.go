package cluster

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"
)

// Stats is what a Cluster has done since it began. Counts never fall;
// every label is there from the start.
type Stats struct {
	// Calls counts calls to the store.
	Calls []CallCount
	// What became of tokens: each that was granted is used, given back, or
	// expired in hand. Claimed buckets are not counted.
	Granted, Used, Returned, Expired int64
	// Breaker is the worst state of the shards' breakers.
	Breaker BreakerState
	// Degraded is how long shards were away, the longest of them.
	Degraded time.Duration
}

// CallCount is how many calls of one kind came to one result.
type CallCount struct {
	// Op is "room" for draws on what many share (rooms, networks, keys,
	// everything), "user" for claims, gives and draws of a user's buckets,
	// "other" for slots, resets and beats.
	Op string
	// Result is "ok", "error" or "timeout".
	Result string
	N      int64
}

// BreakerState is how a shard's breaker stands.
type BreakerState uint8

// The states. Open means that the shard is not asked; Probing that one call is
// under way to find out.
const (
	BreakerClosed BreakerState = iota
	BreakerProbing
	BreakerOpen
)

// String returns the state's name in lower case.
func (s BreakerState) String() string { return [...]string{"closed", "probing", "open"}[s] }

// callOp and callResult are the labels of calls.
type (
	callOp     uint8
	callResult uint8
)

const (
	opRoom callOp = iota
	opUser
	opOther
)

const (
	resultOK callResult = iota
	resultError
	resultTimeout
)

var (
	callOps     = [...]string{"room", "user", "other"}
	callResults = [...]string{"ok", "error", "timeout"}
)

// counts are the counters behind Stats; tokens in millionths.
type counts struct {
	byOp                             [len(callOps)][len(callResults)]atomic.Int64
	granted, used, returned, expired atomic.Int64
}

func (n *counts) calls(op callOp, err error) {
	result := resultOK
	switch {
	case err == nil || errors.Is(err, ErrStale):
	case timedOut(err):
		result = resultTimeout
	default:
		result = resultError
	}
	n.byOp[op][result].Add(1)
}

// countCalls counts what was sent.
func (c *Cluster) countCalls(calls []*Call) {
	for _, call := range calls {
		op := opOther
		switch call.Op {
		case OpDraw, OpClaim, OpGive:
			op = opRoom
			if strings.HasPrefix(call.Key, "lr:{user") {
				op = opUser
			}
		}
		c.count.calls(op, call.Err)
	}
}

// Stats returns the counts so far.
func (c *Cluster) Stats() Stats {
	const million = 1_000_000
	s := Stats{
		Granted:  c.count.granted.Load() / million,
		Used:     c.count.used.Load() / million,
		Returned: c.count.returned.Load() / million,
		Expired:  c.count.expired.Load() / million,
	}
	for op := range callOps {
		for result := range callResults {
			s.Calls = append(s.Calls, CallCount{callOps[op], callResults[result], c.count.byOp[op][result].Load()})
		}
	}
	c.eachLane(func(l *lane) {
		if l.exists() {
			s.Breaker = max(s.Breaker, l.health.state())
		}
		_, _, _, total := l.health.degraded()
		s.Degraded = max(s.Degraded, total)
	})
	return s
}

// Degraded tells whether some shard of the store is away, so that its rules go
// by their on_outage, since when, and why.
func (c *Cluster) Degraded() (since time.Time, reason string, yes bool) {
	longest := time.Duration(0)
	c.eachLane(func(l *lane) {
		if away, age, why, _ := l.health.degraded(); away && l.exists() && (!yes || age > longest) {
			longest, reason, yes = age, why, true
		}
	})
	if yes {
		since = time.Now().Add(-longest) // for people to read: no decision looks at it
	}
	return since, reason, yes
}
