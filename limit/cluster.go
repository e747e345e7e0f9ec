package limit

import (
	"context"
	"crypto/rand"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
)

// Cluster is this node's part in quotas that hold over all nodes: a Gate that
// has it asks it for every rule with cluster: true. It is safe for concurrent
// use.
type Cluster struct {
	// fixed
	cfg   ClusterConfig
	boot  string          // begins the names of this process
	ctx   context.Context // of the goroutines; ends with Close
	stop  context.CancelFunc
	tasks sync.WaitGroup

	names     atomic.Int64 // given so far
	reachable atomic.Int64 // until this Instant a claim needs no proof
	nodes     atomic.Int64 // alive
	roundTrip atomic.Int64 // the longest of late, in ns
	lag       atomic.Int64 // how late this process is, in ns
	closing   atomic.Bool
	count     counts

	lanes sync.Map // by shard: *lane; made under mu

	mu     lock.Mutex[lock.Cluster]
	closed bool              // no lane is made any more
	claims map[string]*lease // claims, by name
}

// NewCluster returns a Cluster, to be handed to Gate.Share and closed after the
// last decision. The error lists every fault of the configuration.
func NewCluster(cfg ClusterConfig) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg.withDefaults(), claims: map[string]*lease{}}
	c.boot = c.cfg.Node + "#" + strings.ToLower(rand.Text()[:10]) + "-"
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.roundTrip.Store(int64(time.Millisecond))
	c.lookAround()
	for _, shard := range c.cfg.Store.Shards() {
		c.laneOf(shard)
	}
	c.tasks.Go(c.watch)
	return c, nil
}

// Share makes the Gate's rules with cluster: true hold over all nodes of c. It
// is called before the first decision, with at most one Cluster.
func (g *Gate) Share(c *Cluster) {
	g.cluster = c
	g.current.Load().shared = ^uint16(0)
}

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

// patience is how long a call may take: longer than a decision waits for it at
// first, since a late grant is still a grant.
func (c *Cluster) patience() time.Duration { return 6 * c.cfg.Budget * c.allowance() }

// allowance is how many times as long as usual the store may take: more where
// this process is late itself, so that a storm of calls is nobody's outage.
func (c *Cluster) allowance() time.Duration {
	if time.Duration(c.lag.Load()) >= behind {
		return 4
	}
	return 1
}

// behind is the wait for a processor from which on a process counts as late.
const behind = 5 * time.Millisecond

// feelLag measures how long a goroutine waits for a processor now, and goes on
// with half of what that was before when it is less.
func (c *Cluster) feelLag() {
	began := c.cfg.Clock()
	runtime.Gosched()
	c.lag.Store(max(int64(c.cfg.Clock().Sub(began)), c.lag.Load()/2))
}

// slow is from which round trip on a shard counts as failing although it
// answers. It lies below patience, so that there is no round trip at which
// calls are given up and the shard is not away.
func (c *Cluster) slow() time.Duration { return 5 * c.cfg.Budget * c.allowance() }

// budget is how long a decision waits, over all of its rules: the configured
// time, and where the store is farther away as long as the longest way takes: a
// call under way is awaited, then a claim is asked for, given back by its owner
// (who may have a call under way, too), and drawn from.
func (c *Cluster) budget() time.Duration {
	return min(max(c.cfg.Budget, 6*c.trip()+c.cfg.Spacing), max(c.cfg.Budget, longestBudget))
}

// longestBudget bounds what a decision waits for a store that is just fast
// enough.
const longestBudget = time.Second

// horizon is how much of its demand a node keeps in hand: enough for two round
// trips, but nothing that would expire first.
func (c *Cluster) horizon() time.Duration {
	return max(c.cfg.Horizon, min(2*c.trip(), c.cfg.Lease-c.trip()))
}

// lease is how long a node may spend what it is granted: as configured, and
// longer where the store is far. A decision that waits for another rule's
// answer, four trips away, must find what it was granted before.
func (c *Cluster) lease() time.Duration {
	return min(max(c.cfg.Lease, 5*c.trip()), c.longestLease())
}

// longestLease bounds that.
func (c *Cluster) longestLease() time.Duration { return max(c.cfg.Lease, 750*time.Millisecond) }

// idle is how long a node keeps what nobody spends.
func (c *Cluster) idle() time.Duration {
	return max(c.cfg.Lease/2, min(4*c.trip(), c.lease()))
}

// trip is how long a call takes, from when it is due: the longest of late.
func (c *Cluster) trip() time.Duration { return time.Duration(c.roundTrip.Load()) }

// gather is how long the next call waits after an answer, so that those whom the
// answer wakes spend it first and ask for what they lack together: of a key one
// call is under way at a time, and one that asked too early costs a whole trip.
func (c *Cluster) gather() time.Duration { return c.trip() / 16 }

// sawTrip rises at once, since who waits for too short a time is refused, and
// falls by an eighth with each batch and beat.
func (c *Cluster) sawTrip(d time.Duration) {
	was := c.roundTrip.Load()
	c.roundTrip.Store(max(int64(d), was+(int64(d)-was)/8))
}

// enter makes a claim findable by its name, leave ends that.
func (c *Cluster) enter(p *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims[p.name] = p
}

func (c *Cluster) leave(p *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claims, p.name)
}

func (c *Cluster) find(name string) *lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claims[name]
}

// Close gives everything back, as far as it can before ctx ends, and returns
// when the last goroutine has ended; the error is ctx's, when it ended first.
// Decisions after it spend what is in hand, and are refused beyond.
func (c *Cluster) Close(ctx context.Context) error {
	c.closing.Store(true)
	c.mu.Lock()
	claims := make([]*lease, 0, len(c.claims))
	for _, p := range c.claims {
		claims = append(claims, p)
	}
	c.mu.Unlock()
	for _, p := range claims {
		p.owner.lock()
		p.leaveLocked(c.cfg.Clock())
		p.owner.mu.Unlock()
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
