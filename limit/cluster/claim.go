package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// claim is a lease's part in the ownership of a bucket. While it is home and
// holds, the subject's own bucket is the level, as on a node alone, and
// the store is not asked.
type claim struct {
	of    *lease // fixed
	state claimState

	// Of home: under which life of which shard, until when the store
	// keeps it, when it is time to confirm it, and until when it needs no
	// further proof.
	lane   *lane
	life   int64
	ends   limit.Instant
	renew  limit.Instant
	proven limit.Instant

	// alone is since when no other node draws, 0 when one does.
	alone limit.Instant

	// Whose claim is in the way, since when it does not answer, when it was
	// asked last, and what the next claim says of it.
	owner       string
	owned       limit.Instant
	asked       limit.Instant
	steal, free string

	// Of giving: the level to give, how often that failed, what the state
	// is to be afterwards, and what is closed when it is over.
	level int64
	fails int
	after claimState
	over  chan struct{}
}

const (
	// recallPatience is how long one recall may take, recallAgain the pause
	// before the next, stealAfter how long an owner may be silent before its
	// bucket is taken as empty. A node that is not heard by itself stops
	// trusting its claims before that.
	recallPatience = 300 * time.Millisecond
	recallAgain    = 200 * time.Millisecond
	stealAfter     = 4 * time.Second
	// proofLasts is how long a claim that was just confirmed is trusted on a
	// node that cannot be reached.
	proofLasts = 20 * time.Millisecond
	// aloneAfter is how long a bucket must be drawn from by one node only
	// before that node claims it again.
	aloneAfter = 10 * time.Second

	// giveAgain is the pause before a give is tried again, longer each time up
	// to mostPauses of it.
	giveAgain  = 250 * time.Millisecond
	mostPauses = 20
)

// to moves the claim on. Whoever waits for a give goes on when that is over.
func (c *claim) to(next claimState) {
	if c.state == giving {
		close(c.over)
		c.over = nil
	}
	move(&c.state, claimMoves[:], next)
}

// claims tells whether one node may have the bucket.
func (p *lease) claims() bool { return p.Quota.Claims && p.cluster.cfg.Peers != nil }

// holds tells whether a bucket that is home is to be trusted at an instant.
func (c *claim) holds(now limit.Instant) bool {
	return c.life == c.lane.life.Load() && now < c.ends && (now < c.of.cluster.reachableUntil() || now < c.proven)
}

// keep keeps a bucket that is home claimed, and ends an outage's part.
func (c *claim) keep(now limit.Instant) {
	p := c.of
	if p.outage.parted || p.outage.spent > 0 {
		p.outage = outage{} // its own level says it all
	}
	if now >= c.renew {
		c.renew = now.Add(time.Minute)
		p.plan(now)
	}
}

// call claims the bucket, or proves that it still is this node's.
func (c *claim) call(now limit.Instant, call *Call) {
	p := c.of
	call.Op, call.Steal, call.Free = OpClaim, c.steal, c.free
	if c.state != home {
		p.giveBack(p.hand.shares)
		p.unheard(now)
	} else if now < p.cluster.reachableUntil() {
		call.Owned, call.Level = true, p.ownLevel(now)
	}
	p.cluster.claims.enter(p)
}

// ownLevel is the level of a bucket that is home.
func (p *lease) ownLevel(now limit.Instant) int64 { return min(p.Level(now), p.terms().Size) }

// answered takes in the answer to a claim, and reports true when those who wait have to wait on.
func (c *claim) answered(l *lane, sent, now limit.Instant, r *Reply) (more bool) {
	p := c.of
	c.steal, c.free = "", ""
	switch {
	case r.Owner == p.name && c.state == giving:
		return false // it went out before: the give is next
	case r.Owner == p.name:
		level := r.Left
		if c.state == home {
			level = min(level, p.ownLevel(now))
		} else {
			c.to(home)
		}
		p.SetLevel(now, level)
		c.lane, c.life = l, p.call.life
		c.ends, c.renew, c.proven = sent.Add(r.Keep), sent.Add(r.Keep/2), now.Add(proofLasts)
		c.owner, p.dry = "", dry{}
		if p.Detached() {
			c.level = r.Left
			c.give(now, unclaimed)
		}
		return false
	case r.Owner == "":
		p.cluster.claims.leave(p)
		c.share()
		p.plan(now)
		return true
	}
	c.recall(now, r.Owner)
	return true
}

// share has the node draw from now on as others do.
func (c *claim) share() {
	if c.state != shared {
		c.to(shared)
	}
	c.alone, c.owner = 0, ""
	c.of.rename()
}

// others notes whether other nodes draw, and has the bucket claimed again once
// none has for a while.
func (c *claim) others(now limit.Instant, n int) {
	switch {
	case c.state != shared:
	case n > 0:
		c.alone = 0
	case c.alone == 0:
		c.alone = now
	case now.Sub(c.alone) >= aloneAfter:
		c.to(unclaimed)
	}
}

// give begins to give a bucket back that is home; the decisions of this node
// do not count on it any more.
func (c *claim) give(now limit.Instant, after claimState) {
	p := c.of
	if !p.Detached() {
		c.level = p.ownLevel(now)
	}
	c.to(giving)
	c.after, c.fails, c.over = after, 0, make(chan struct{})
	p.plan(now)
}

// given ends what give began, if nothing else has.
func (c *claim) given() {
	c.of.cluster.claims.leave(c.of)
	if c.state == giving {
		after := c.after
		c.share()
		if after != shared {
			c.to(after)
		}
	}
}

// giveFailed tries again later: the store goes by what it was told last,
// until it hears otherwise.
func (c *claim) giveFailed(now limit.Instant) {
	if c.of.cluster.closing.Load() {
		c.given()
		return
	}
	c.fails = min(c.fails+1, mostPauses)
	c.of.plan(now.Add(giveAgain * time.Duration(c.fails)))
}

// recall asks the owner of a claim to give it back, on a goroutine of
// its own; the lease counts as busy until that is over.
func (c *claim) recall(now limit.Instant, owner string) {
	p := c.of
	switch c.state {
	case home:
		c.to(unclaimed) // it was taken from us
	case giving:
		c.given()
	}
	p.cluster.claims.leave(p)
	if c.owner != owner || now.Sub(c.asked) > stealAfter/2 {
		c.owner, c.owned = owner, now
	}
	c.asked = now
	move(&p.stage, stageMoves[:], recalling)
	p.cluster.tasks.Go(func() {
		err := p.cluster.recall(owner, p.Key)
		now := p.cluster.cfg.Clock()
		p.LockSubject()
		defer p.UnlockSubject()
		c.recalled(now, owner, err)
	})
}

func (c *claim) recalled(now limit.Instant, owner string, err error) {
	p := c.of
	move(&p.stage, stageMoves[:], resting)
	switch {
	case err == nil:
		c.share()
		p.plan(now)
		return
	case errors.Is(err, ErrUnknownKey):
		c.free = owner
	case errors.Is(err, ErrNoNode), now.Sub(c.owned) >= stealAfter:
		c.steal = owner
	default:
		again := now.Add(recallAgain)
		p.dry = dry{until: again, recheck: again, least: 1, unknown: true}
		p.wake()
		return
	}
	if c.state != unclaimed {
		c.to(unclaimed)
	}
	p.plan(now)
}

// giveUp begins to give a claim back, unless that is under way, and returns
// what is closed when it is over, nil when the lease has no such claim. It is
// busy when only the answer to a call under way will tell.
func (c *claim) giveUp(name string, now limit.Instant) (over <-chan struct{}, busy bool) {
	p := c.of
	p.LockSubject()
	defer p.UnlockSubject()
	switch {
	case p.name != name:
		return nil, false
	case c.state == home:
		c.give(now, shared)
	case c.state == giving:
	case p.stage >= calling:
		return p.await(0, limit.MaxShares), true
	default:
		return nil, false
	}
	return c.over, false
}

// claims are the leases that have claimed their bucket or are about to, by name.
type claims struct {
	mu     lock.Mutex[lock.Cluster]
	byName map[string]*lease
}

// enter makes a claim findable by its name, leave ends that.
func (c *claims) enter(p *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[p.name] = p
}

func (c *claims) leave(p *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byName, p.name)
}

func (c *claims) find(name string) *lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byName[name]
}

func (c *claims) all() []*lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*lease, 0, len(c.byName))
	for _, p := range c.byName {
		all = append(all, p)
	}
	return all
}

// recall has the owner of a bucket give it back, which may be another lease of
// this node.
func (c *Cluster) recall(owner, key string) error {
	ctx, cancel := context.WithTimeout(c.ctx, recallPatience)
	defer cancel()
	node, _, _ := strings.Cut(owner, "#")
	if node == c.cfg.Node {
		return c.Recalled(ctx, owner+" "+key)
	}
	return c.cfg.Peers.Recall(ctx, node, owner+" "+key)
}

// Recalled gives the bucket back that another node's Peers.Recall asked for.
// It returns when the store has it, with ErrUnknownKey when this node does not
// hold it, with ErrNoNode when it was claimed by an earlier process of this
// node, and when ctx ends at the latest.
func (c *Cluster) Recalled(ctx context.Context, claim string) error {
	name, key, _ := strings.Cut(claim, " ")
	if !strings.HasPrefix(name, c.boot) {
		return ErrNoNode
	}
	p := c.claims.find(name)
	if p == nil || p.Key != key {
		return ErrUnknownKey
	}
	for {
		given, busy := p.claim.giveUp(name, c.cfg.Clock())
		if given == nil {
			return ErrUnknownKey
		}
		select {
		case <-given:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !busy {
			return nil
		}
	}
}
