package limit

import (
	"context"
	"errors"
	"strings"
	"time"
)

// claim is a lease's part in the ownership of a bucket. While it is claimMine
// and valid, the subject's own cells are the level, as on a node alone, and
// the store is not asked.
type claim struct {
	state claimState
	// Of claimMine: under which life of which shard, until when the store
	// keeps it, when it is time to confirm it, and until when it needs no
	// further proof.
	lane   *lane
	life   int64
	ends   Instant
	renew  Instant
	proven Instant

	// alone is since when no other node draws, 0 when one does.
	alone Instant

	// Whose claim is in the way, since when it does not answer, when it was
	// asked last, and what the next claim says of it.
	owner       string
	owned       Instant
	asked       Instant
	steal, free string

	// Of claimGiving: the level to give, how often that failed, what the state
	// is to be afterwards, and what is closed when it is over.
	level int64
	fails int
	after claimState
	give  chan struct{}
}

type claimState uint8

const (
	claimNone   claimState = iota // the next call claims, where the rule does
	claimMine                     // this node has the whole bucket
	claimGiving                   // it had, and gives it back
	claimShared                   // several nodes draw
)

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

// claimsLocked tells whether one node may have the bucket.
func (p *lease) claimsLocked() bool {
	return p.rule.shared.claims && p.cluster.cfg.Peers != nil
}

// homeLocked tells whether the subject's cells are the level at an instant.
func (p *lease) homeLocked(now Instant) bool {
	c := &p.claim
	return c.state == claimMine && c.life == c.lane.life.Load() && now < c.ends &&
		(now < Instant(p.cluster.reachable.Load()) || now < c.proven)
}

// claimCallLocked claims the bucket, or proves that it still is this node's.
func (p *lease) claimCallLocked(now Instant, c *Call) {
	c.Op = OpClaim
	c.Steal, c.Free = p.claim.steal, p.claim.free
	if p.claim.state == claimMine {
		if now < Instant(p.cluster.reachable.Load()) {
			c.Owned, c.Level = true, p.ownLevelLocked(now)
		}
	} else {
		p.giveBackLocked(p.hold)
		p.unheardLocked(now)
	}
	p.cluster.enter(p)
}

// ownLevelLocked is the level of the subject's cells in shares, rounded down.
func (p *lease) ownLevelLocked(now Instant) int64 {
	s := p.owner
	if s.gen == nil {
		return 0
	}
	r, at := p.rule, s.atLocked(now)
	units := r.meter.shares(s.cells[r.cell:])
	level := r.meter.level(s.cells[r.cell:], at)
	return min(scale(max(level, 0), r.shared.scale, units.whole, 0), p.terms().Size)
}

// setLevelLocked brings the subject's cells to a level in shares.
func (p *lease) setLevelLocked(now Instant, level int64) {
	s := p.owner
	if s.gen == nil {
		return
	}
	r, at := p.rule, s.atLocked(now)
	cells := s.cells[r.cell:]
	units := r.meter.shares(cells)
	if level < 0 {
		setLevel(r.meter, cells, at, -scale(-level, units.whole, r.shared.scale, 1))
		return
	}
	setLevel(r.meter, cells, at, scale(level, units.whole, r.shared.scale, 0))
}

// claimedLocked takes in the answer to a claim.
func (p *lease) claimedLocked(l *lane, sent, now Instant, c *Call) (more bool) {
	r := &c.Reply
	p.claim.steal, p.claim.free = "", ""
	switch r.Owner {
	case p.name:
		level := r.Left
		if p.claim.state == claimMine {
			level = min(level, p.ownLevelLocked(now))
		}
		p.setLevelLocked(now, level)
		p.claim.state, p.claim.lane, p.claim.life = claimMine, l, p.call.life
		p.claim.ends, p.claim.renew = sent.Add(r.Keep), sent.Add(r.Keep/2)
		p.claim.proven = now.Add(proofLasts)
		p.claim.owner, p.dry = "", dry{}
		if p.gone {
			p.giveLocked(now, claimNone)
		}
		return false
	case "":
		p.cluster.leave(p)
		p.shareLocked()
		p.planLocked(now)
		return true
	}
	p.recallLocked(now, r.Owner)
	return true
}

// shareLocked has the node draw from now on as others do.
func (p *lease) shareLocked() {
	p.claim.state, p.claim.alone, p.claim.owner = claimShared, 0, ""
	p.renameLocked()
}

// aloneLocked notes whether other nodes draw, and claims the bucket again once
// none has for a while.
func (p *lease) aloneLocked(now Instant) {
	c := &p.claim
	switch {
	case c.state != claimShared:
	case p.others > 0:
		c.alone = 0
	case c.alone == 0:
		c.alone = now
	case now.Sub(c.alone) >= aloneAfter:
		c.state = claimNone
	}
}

// giveLocked begins to give a claimed bucket back; the decisions of this node
// do not count on it any more.
func (p *lease) giveLocked(now Instant, after claimState) {
	p.claim.level = p.ownLevelLocked(now)
	p.claim.state, p.claim.after, p.claim.fails = claimGiving, after, 0
	p.claim.give = make(chan struct{})
	p.planLocked(now)
}

func (p *lease) giveCallLocked(c *Call) {
	c.Op, c.Level = OpGive, p.claim.level
}

// givenLocked ends what giveLocked began.
func (p *lease) givenLocked() {
	p.cluster.leave(p)
	p.shareLocked()
	p.claim.state = p.claim.after
	close(p.claim.give)
	p.claim.give = nil
}

// giveFailedLocked tries again later: the store goes by what it was told last,
// until it hears otherwise.
func (p *lease) giveFailedLocked(now Instant) {
	if p.cluster.closing.Load() {
		p.givenLocked()
		return
	}
	p.claim.fails = min(p.claim.fails+1, mostPauses)
	p.planLocked(now.Add(giveAgain * time.Duration(p.claim.fails)))
}

// leaveLocked gives the bucket back because its subject is at rest here.
func (p *lease) leaveLocked(now Instant) {
	if p.claim.state == claimMine {
		p.giveLocked(now, claimNone)
	}
}

// recallLocked asks the owner of a claim to give it back, on a goroutine of
// its own; the lease counts as busy until that is over.
func (p *lease) recallLocked(now Instant, owner string) {
	p.cluster.leave(p)
	c := &p.claim
	if c.state == claimMine {
		c.state = claimNone // it was taken from us
	}
	if c.owner != owner || now.Sub(c.asked) > stealAfter/2 {
		c.owner, c.owned = owner, now
	}
	c.asked = now
	p.flying = true
	p.cluster.tasks.Go(func() { p.recall(owner) })
}

func (p *lease) recall(owner string) {
	c := p.cluster
	ctx, cancel := context.WithTimeout(c.ctx, recallPatience)
	defer cancel()
	node, _, _ := strings.Cut(owner, "#")
	var err error
	if node == c.cfg.Node {
		err = c.Recalled(ctx, owner+" "+p.key)
	} else {
		err = c.cfg.Peers.Recall(ctx, node, owner+" "+p.key)
	}
	now := c.cfg.Clock()
	p.owner.lock()
	defer p.owner.mu.Unlock()
	p.recalledLocked(now, owner, err)
}

func (p *lease) recalledLocked(now Instant, owner string, err error) {
	p.flying = false
	p.catchUpLocked()
	switch {
	case err == nil:
		p.shareLocked()
	case errors.Is(err, ErrUnknownKey):
		p.claim.state, p.claim.free = claimNone, owner
	case errors.Is(err, ErrNoNode), now.Sub(p.claim.owned) >= stealAfter:
		p.claim.state, p.claim.steal = claimNone, owner
	default:
		again := now.Add(recallAgain)
		p.dry = dry{until: again, recheck: again, least: 1, unknown: true}
		p.wakeLocked()
		return
	}
	p.planLocked(now)
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
	p := c.find(name)
	if p == nil || p.key != key {
		return ErrUnknownKey
	}
	for {
		given, busy := p.giveUp(name, c.cfg.Clock())
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

// giveUp begins to give a claim back, unless that is under way, and returns
// what is closed when it is over, nil when the lease has no such claim. It is
// busy when only the answer to a call under way will tell.
func (p *lease) giveUp(name string, now Instant) (over <-chan struct{}, busy bool) {
	p.owner.lock()
	defer p.owner.mu.Unlock()
	switch {
	case p.name != name:
		return nil, false
	case p.claim.state == claimMine:
		p.giveLocked(now, claimShared)
	case p.claim.state == claimGiving:
	case p.flying:
		return p.waitLocked(0, maxShares), true
	default:
		return nil, false
	}
	return p.claim.give, false
}
