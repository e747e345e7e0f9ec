package cluster

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Cluster is this node's part in quotas that hold over all nodes: a Gate that
// has it asks it for every rule with cluster: true. It is safe for concurrent
// use.
type Cluster struct {
	// fixed
	cfg   Config
	boot  string          // begins the names of this process
	ctx   context.Context // of the goroutines; ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup

	names     atomic.Int64 // given so far
	reachable atomic.Int64 // until this Instant a claim needs no proof
	nodes     atomic.Int64 // alive
	closing   atomic.Bool
	timing    timing
	count     counts
	claims    claims

	lanes  sync.Map // by shard: *lane; made under mu
	mu     lock.Mutex[lock.Cluster]
	closed bool // no lane is made any more
}

var _ limit.Sharer = (*Cluster)(nil)

// New returns a Cluster, to be handed to Gate.Share and closed after the
// last decision. The error lists every fault of the configuration.
func New(cfg Config) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg.withDefaults(), claims: claims{byName: map[string]*lease{}}}
	c.boot = c.cfg.Node + "#" + strings.ToLower(rand.Text()[:10]) + "-"
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.timing.cfg = &c.cfg
	c.timing.roundTrip.Store(int64(time.Millisecond))
	c.lookAround()
	for _, shard := range c.cfg.Store.Shards() {
		c.laneOf(shard)
	}
	c.tasks.Go(c.watch)
	return c, nil
}

// Part implements [limit.Sharer].
func (c *Cluster) Part(own limit.Own) limit.Part {
	if own.Quota.Kind == limit.KindSlots {
		return &slots{part: newPart(c, own)}
	}
	return newLease(c, own)
}

// Budget implements [limit.Sharer].
func (c *Cluster) Budget() time.Duration { return c.timing.budget() }

// newName returns a name of which the store has heard nothing.
func (c *Cluster) newName() string { return c.boot + strconv.FormatInt(c.names.Add(1), 36) }

// lane returns the way to the shard that has a key.
func (c *Cluster) lane(key string) *lane { return c.laneOf(c.cfg.Store.Shard(key)) }

func (c *Cluster) laneOf(shard string) *lane {
	if l, ok := c.lanes.Load(shard); ok {
		return l.(*lane)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.lanes.Load(shard); ok {
		return l.(*lane)
	}
	l := newLane(c, shard)
	if l.closed = c.closed; !c.closed {
		c.tasks.Go(func() { l.run(c.ctx) })
		c.tasks.Go(func() { l.beat(c.ctx) })
	}
	c.lanes.Store(shard, l)
	return l
}

func (c *Cluster) eachLane(f func(*lane)) {
	c.lanes.Range(func(_, l any) bool {
		f(l.(*lane))
		return true
	})
}

// reachableUntil is until when a claim needs no proof, since others that want
// the bucket would have reached this node.
func (c *Cluster) reachableUntil() limit.Instant { return limit.Instant(c.reachable.Load()) }

// watch keeps what is known of the peers.
func (c *Cluster) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			c.timing.feelLag()
			c.lookAround()
		}
	}
}

func (c *Cluster) lookAround() {
	nodes := 1
	if peers := c.cfg.Peers; peers != nil {
		now := c.cfg.Clock()
		if peers.Reachable() {
			c.reachable.Store(int64(now.Add(stillReachable)))
		}
		nodes = max(peers.Count(), 1)
	}
	c.nodes.Store(int64(nodes))
}

// Close gives everything back, as far as it can before ctx ends, and returns
// when the last goroutine has ended; the error is ctx's, when it ended first.
// Decisions after it spend what is in hand, and are refused beyond.
func (c *Cluster) Close(ctx context.Context) error {
	c.closing.Store(true)
	for _, p := range c.claims.all() {
		p.LockSubject()
		p.Leave(c.cfg.Clock())
		p.UnlockSubject()
	}
	c.eachLane((*lane).hasten)
	err := c.drain(ctx)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.eachLane(func(l *lane) { l.fail(l.close()) })
	c.tasks.Wait()
	return err
}

// drain waits until nothing is on its way.
func (c *Cluster) drain(ctx context.Context) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		idle := true
		c.eachLane(func(l *lane) { idle = idle && (l.idle() || l.health.away.Load()) })
		if idle {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
