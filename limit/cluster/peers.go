package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"liveroom/limit"
)

// Peers is what a Cluster knows of the other nodes by another way than its
// Store, so that the two do not fail together. It is safe for concurrent use.
type Peers interface {
	// Count is how many nodes are alive, this one included, at least 1.
	Count() int
	// Reachable tells whether the others can reach this node: it has heard
	// itself over their common bus within the last three seconds.
	Reachable() bool
	// Recall asks a node to give a claimed bucket back: it hands claim, which
	// is opaque, to that node's Cluster.Recalled and returns what that returns,
	// nil, ErrUnknownKey or ErrNoNode. Where no such node is alive it is
	// ErrNoNode. It returns when ctx ends at the latest.
	Recall(ctx context.Context, node, claim string) error
}

var (
	// ErrNoNode tells that who claimed a bucket is gone.
	ErrNoNode = errors.New("cluster: there is no such node")
	// ErrUnknownKey tells that a node no longer has the bucket it claimed.
	ErrUnknownKey = errors.New("cluster: the node does not have that bucket")
)

// Config says how a node takes part. Zero durations take their defaults.
type Config struct {
	// Store keeps the shared levels. Required.
	Store Store
	// Node names this node to its peers, without '#'. Required.
	Node string
	// Peers are the others. Nil: nobody can be asked to give a bucket back, so
	// none is claimed, and a user's buckets cost a call per message; and in an
	// outage this node takes itself for the only one.
	Peers Peers
	// Clock is the Gate's. Required. It must run as time.Timer does.
	Clock limit.Clock
	// Log gets one line when a shard's outage begins and one when it ends;
	// nil: none.
	Log *slog.Logger

	// Budget is how long a decision waits for a store nearby, over all of its
	// rules; for a store farther away it is six round trips, a second at most.
	// 30 ms by default. A store with a round trip of five times the Budget is
	// as good as away, and a call is given up after six times that.
	Budget time.Duration
	// Lease is how long a node may spend what it was granted. 250 ms by default;
	// of buckets five round trips where that is more, 750 ms at most.
	Lease time.Duration
	// Horizon is how much of its demand a node keeps in hand. 80 ms by default.
	Horizon time.Duration
	// Spacing is the least time between two draws of this node on one key.
	// 20 ms by default.
	Spacing time.Duration

	// Rand returns a number from 0 to below n, for what must not happen on all
	// nodes at once. Nil is math/rand/v2.Int64N.
	Rand func(n int64) int64
}

// The defaults of a Config.
const (
	defaultBudget  = 30 * time.Millisecond
	defaultLease   = 250 * time.Millisecond
	defaultHorizon = 80 * time.Millisecond
	defaultSpacing = 20 * time.Millisecond
)

// Validate returns every fault of the configuration joined, nil when it has none.
func (c Config) Validate() error {
	var faults []error
	if c.Store == nil {
		faults = append(faults, errors.New("store: required"))
	}
	if c.Clock == nil {
		faults = append(faults, errors.New("clock: required"))
	}
	if c.Node == "" || len(c.Node) > 64 {
		faults = append(faults, fmt.Errorf("node: want 1 to 64 characters, have %q", c.Node))
	}
	for _, b := range []byte(c.Node) {
		if b <= ' ' || b == '#' || b >= 0x7f {
			faults = append(faults, fmt.Errorf("node: want visible ASCII without #, have %q", c.Node))
			break
		}
	}
	d := c.withDefaults()
	for _, f := range []struct {
		name        string
		have        time.Duration
		least, most time.Duration
	}{
		{"budget", d.Budget, time.Millisecond, time.Second},
		{"lease", d.Lease, 50 * time.Millisecond, 5 * time.Second},
		{"horizon", d.Horizon, time.Millisecond, d.Lease / 2},
		{"spacing", d.Spacing, time.Millisecond, d.Lease / 4},
	} {
		if f.have < f.least || f.have > f.most {
			faults = append(faults, fmt.Errorf("%s: want %s to %s, have %s", f.name, f.least, f.most, f.have))
		}
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		value *time.Duration
		none  time.Duration
	}{{&c.Budget, defaultBudget}, {&c.Lease, defaultLease}, {&c.Horizon, defaultHorizon}, {&c.Spacing, defaultSpacing}} {
		if *f.value == 0 {
			*f.value = f.none
		}
	}
	if c.Rand == nil {
		c.Rand = rand.Int64N
	}
	return c
}
