package cluster

import (
	"errors"
	"time"

	"liveroom/limit"
)

var _ errand = (*lease)(nil)

const (
	// inARow is how many calls may go out without a pause.
	inARow = 4
	// drySpacing bounds what is added to the spacing of draws that find little. It
	// is random, else who draws right after another would find nothing for ever.
	drySpacing = 10 * time.Millisecond
	// silence is how long a name may be unheard before the store may have
	// forgotten it; a new one begins its counts anew. A store keeps names ten
	// seconds at least.
	silence = 8 * time.Second
	// keepMargin is how long before the store may forget a key, because its bucket
	// is full, a node no longer takes a missing one for lost.
	keepMargin = 500 * time.Millisecond
)

// plan has the lease's next call go out at an instant, or before.
func (p *lease) plan(at limit.Instant) {
	if at = max(at, 1); p.stage >= calling || p.stage == due && p.next <= at {
		return // settle plans what comes after a call
	}
	if p.stage == resting {
		move(&p.stage, stageMoves[:], due)
	}
	p.next = at
	p.lane = p.cluster.lane(p.Key)
	p.lane.schedule(&p.job, at)
}

// spaced is when the next call may go out that nobody waits for: some time
// after the last.
func (p *lease) spaced() limit.Instant {
	if p.sent == 0 {
		return 0
	}
	return p.sent.Add(p.cluster.cfg.Spacing)
}

// soonest is when the next call may go out that a decision waits for: at
// once, unless the last few came in a row. Over time they are as far apart as
// the others.
func (p *lease) soonest() limit.Instant {
	if p.even == 0 {
		return 0
	}
	return p.even.Add(-inARow * p.cluster.cfg.Spacing)
}

// wake lets those who wait look again.
func (p *lease) wake() {
	if p.wants.done != nil {
		close(p.wants.done)
	}
	p.wants = wants{}
}

// prepare decides what the lease's next call is, from what it has and what is
// wanted of it at this instant.
func (p *lease) prepare(l *lane, now limit.Instant, c *Call) bool {
	p.LockSubject()
	defer p.UnlockSubject()
	if p.stage != due {
		return false // what follows from the call under way plans anew
	}
	p.inHand(now)
	p.owe(now)
	*c = Call{Key: p.Key, Tiers: p.Quota.Terms, Lease: 2 * p.lasts()}
	if !p.aim(l, now, c) {
		move(&p.stage, stageMoves[:], resting)
		p.wake()
		p.idle(now)
		return false
	}
	p.seq++
	c.Node, c.Seq, c.Hold = p.name, p.seq, p.hand.shares
	c.Received, c.Returned, c.Debt = p.told.received, p.told.returned, p.told.debts+p.outage.debt
	c.Want, c.Stay = p.WantedTier(p.heard.tier, p.audience)
	c.Lost = l.lost(now, p.terms())
	if h := &p.heard; h.got != 0 {
		c.Seen, c.LeastSince, c.MostSince = h.clock, now.Sub(h.got), now.Sub(h.asked)
		c.Lost = c.Lost || p.knows(now)
	}
	p.sent, p.even = now, max(p.even, now).Add(p.cluster.cfg.Spacing)
	p.cluster.count.used.Add(p.micro(p.hand.spent))
	p.hand.spent = 0
	p.call = draft{op: c.Op, debt: p.outage.debt, life: l.life.Load()}
	move(&p.stage, stageMoves[:], calling)
	return true
}

// lasts is for how long tokens are drawn. That of a window is part of its
// length, and so does not change.
func (p *lease) lasts() time.Duration {
	if p.Quota.Kind != limit.KindBucket {
		return p.cluster.cfg.Lease
	}
	return p.cluster.timing.lease()
}

// knows tells whether the store must have the key by what this node heard.
// Of a bucket that nodes claim only its owner can tell: who gives it back full
// has the key removed, and need not be this node.
func (p *lease) knows(now limit.Instant) bool {
	return now.Add(keepMargin) < p.heard.keep && (!p.Quota.Claims || p.claim.state == home)
}

// aim chooses the operation; false means that none is needed.
func (p *lease) aim(l *lane, now limit.Instant, c *Call) bool {
	switch mine := p.claim.state == home; {
	case p.fill:
		p.fill = false
		c.Op = OpReset
		return true
	case p.claim.state == giving:
		c.Op, c.Level = OpGive, p.claim.level
		return true
	case l.health.settles(now) && !mine:
	case p.claims() && (mine || p.claim.state == unclaimed && !p.Detached()):
		p.claim.call(now, c)
		return true
	}
	return p.draw(now, c)
}

// draw asks for what is waited for and for what will soon be wanted, and
// gives back what will not.
func (p *lease) draw(now limit.Instant, c *Call) bool {
	p.unheard(now)
	p.demand.measure(now)
	want, have := p.want(), p.hand.shares
	if p.Detached() || p.cluster.closing.Load() || p.out(now) {
		want, p.wants.sum, p.wants.least = 0, 0, 0
	}
	back := have > want && (want == 0 || have > 2*want || now.Sub(p.sent) >= p.lasts()/3)
	if back {
		p.giveBack(have - want)
		have = want
	}
	c.Op = OpDraw
	c.Ask = max(p.wants.sum-have, want-have, 0)
	if now < p.dry.recheck && p.wants.sum == 0 {
		c.Ask = 0
	}
	c.Ask = min(c.Ask, p.terms().Size)
	if c.Ask > 0 {
		c.Least = min(max(p.wants.least-have, 1), c.Ask)
	}
	c.Floor = p.Floor * p.Quota.Scale
	return c.Ask > 0 || back || have > 0 || p.outage.debt > 0 || p.failures >= tripAfter || p.tells()
}

// unheard begins a new name when the store may have forgotten this one.
func (p *lease) unheard(now limit.Instant) {
	if p.heard.got != 0 && now.Sub(p.heard.asked) > silence {
		p.rename()
	}
}

// giveBack takes shares out of the hand; they are the store's again, if
// it hears of it in time.
func (p *lease) giveBack(shares int64) {
	p.hand.shares -= shares
	p.told.returned += shares
	p.cluster.count.returned.Add(p.micro(shares))
}

// want is what the node would keep in hand: its demand over the horizon,
// nothing when that is little, when there is little for each node, or of one
// user's bucket. Then decisions ask one by one.
func (p *lease) want() int64 {
	q := p.Quota
	if q.Claims || q.Single {
		return 0
	}
	want := p.demand.over(p.cluster.timing.horizon())
	if want < 2*q.Scale || p.terms().Size/int64(p.heard.others+1) < 4*q.Scale {
		return 0
	}
	return want
}

// skew is how much later one node may notice than another that a shard is back.
// What its part has refilled since, the store has refilled as well.
const skew = probeAfter + 300*time.Millisecond

// owe turns what was spent into a debt that the store is told of, at most
// what this node's part lacks or has lacked when the shard came back.
func (p *lease) owe(now limit.Instant) {
	o := &p.outage
	if o.spent == 0 || p.away() {
		return
	}
	lacks := o.spent
	if o.parted && !p.Detached() && p.Quota.Kind == limit.KindBucket {
		lack := p.Lack(now) + p.terms().Comes(skew) + 1
		lacks = min(lacks, (lack-1)/p.cluster.nodes.Load()+1)
	}
	o.debt = min(o.debt+lacks, p.terms().Size)
	o.spent = 0
}

// settle takes in the answer.
func (p *lease) settle(l *lane, sent, now limit.Instant, c *Call) {
	p.LockSubject()
	defer p.UnlockSubject()
	move(&p.stage, stageMoves[:], resting)
	if c.Err != nil {
		p.failed(now, c.Err)
		return
	}
	p.answered(sent, now, &c.Reply)
	more := false
	switch p.call.op {
	case OpClaim:
		more = p.claim.answered(l, sent, now, &c.Reply)
	case OpGive:
		p.claim.given()
	case OpDraw:
		more = p.granted(sent, now, c)
	}
	p.hand.low = p.demand.over(2 * p.cluster.timing.trip())
	if !more {
		p.wake()
		p.planNext(now)
	}
}

// failed leaves everything as it is: what is in hand is good until its
// deadline, and the store will learn from the next call what was received.
func (p *lease) failed(now limit.Instant, err error) {
	p.failures++
	if errors.Is(err, ErrStale) {
		p.rename()
	}
	p.wake()
	switch {
	case p.claim.state == giving:
		p.claim.giveFailed(now)
	case p.Detached() && p.call.op == OpClaim:
		p.cluster.claims.leave(p)
	case p.hand.shares > 0 && !errors.Is(err, errAway):
		p.plan(p.spaced())
	}
}

// answered keeps what every answer says.
func (p *lease) answered(sent, now limit.Instant, r *Reply) {
	p.failures = 0
	p.heard = heard{tier: p.heard.tier, left: r.Left, others: r.Others, clock: r.Now, asked: sent, got: now, keep: sent.Add(r.Keep)}
	p.told.debts += p.call.debt
	p.outage.debt = max(p.outage.debt-p.call.debt, 0)
	if p.Quota.Tiers {
		p.heard.tier = min(max(r.Tier, 0), len(p.Quota.Terms)-1)
		p.SetTier(now, p.heard.tier)
	}
}

// granted takes a grant in hand. Its deadline counts from before the
// call was sent, and so is over before the store takes the shares for void. It
// reports true when those who wait have to wait on.
func (p *lease) granted(sent, now limit.Instant, c *Call) (more bool) {
	r, h := &c.Reply, &p.hand
	if r.Owner != "" && r.Owner != p.name {
		p.claim.recall(now, r.Owner)
		return true
	}
	p.inHand(now)
	p.told.received += r.Granted
	p.cluster.count.granted.Add(p.micro(r.Granted))
	h.shares += r.Granted
	h.until, h.since = sent.Add(c.Lease/2), now
	if r.Ends > 0 {
		h.until = min(h.until, sent.Add(r.Ends))
	}
	p.inHand(now)
	p.claim.others(now, r.Others)
	p.dry = dry{}
	if r.Granted < c.Ask {
		p.ranDry(sent, now, c)
	}
	return false
}

// ranDry remembers that the bucket has no more than was granted.
func (p *lease) ranDry(sent, now limit.Instant, c *Call) {
	wait, least := c.Reply.Wait, c.Least
	if c.Reply.Granted > 0 {
		least = 1
		if t := p.terms(); t.Num > 0 {
			wait = t.Takes(max(1+c.Floor-c.Reply.Left, 1))
		} else if t.Kind == limit.KindFixed {
			wait = c.Reply.Ends
		}
	}
	until := max(now.Add(wait), sent.Add(p.cluster.cfg.Spacing+time.Duration(p.cluster.cfg.Rand(int64(drySpacing)))))
	p.dry = dry{least: least, until: until, recheck: min(until, now.Add(time.Second))}
}

// planNext plans the call after this one, if there is to be one without
// being asked for.
func (p *lease) planNext(now limit.Instant) {
	soon := now.Add(p.cluster.timing.gather())
	switch {
	case p.fill || p.claim.state == giving || p.Detached() && p.hand.shares > 0:
		p.plan(now)
	case p.claim.state == home:
	case p.want() > 0 && p.dry.recheck > now:
		p.plan(p.dry.recheck)
	case p.want() > 0 && p.hand.shares <= p.hand.low:
		p.plan(max(p.spaced(), soon))
	}
	if p.hand.shares > 0 || p.passes() {
		p.plan(max(soon, p.sent.Add(p.cluster.timing.idle())))
	}
}

// passes tells whether the lease is one that a user's join leaves behind.
// An address's stays, since many join from one.
func (p *lease) passes() bool {
	return p.Quota.Single && (p.Quota.Scope == limit.ScopeUser || p.Quota.Scope == limit.ScopeUserRoom)
}

// idle forgets a user's lease that nothing is to be done for, as soon as its
// answer decides nothing any more: who joined and says nothing costs no memory.
// The subject's own bucket keeps the level, for an outage to begin from.
func (p *lease) idle(now limit.Instant) {
	switch {
	case p.Detached() || !p.passes() || p.failures > 0 || p.outage.spent > 0 || p.outage.debt > 0:
	case now < p.dry.recheck:
		p.plan(p.dry.recheck)
	case p.outage.parted && p.out(now):
		p.plan(now.Add(settling))
	default:
		if level := p.level(now); p.heard.got != 0 && p.Quota.Kind == limit.KindBucket && level < p.Level(now) {
			p.SetLevel(now, level)
		}
		p.Forget()
	}
}
