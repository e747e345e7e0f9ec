package limit

import (
	"errors"
	"time"
)

var _ errand = (*lease)(nil)

// drySpacing bounds what is added to the spacing of draws that find little. It
// is random, else who draws right after another would find nothing for ever.
const drySpacing = 10 * time.Millisecond

// prepare decides what the lease's next call is, from what it has and what is
// wanted of it at this instant.
func (p *lease) prepare(l *lane, now Instant, c *Call) bool {
	p.owner.lock()
	defer p.owner.mu.Unlock()
	if p.flying {
		return false // what follows from it plans anew
	}
	p.planned = 0
	p.catchUpLocked()
	p.inHandLocked(now)
	p.oweLocked(now)
	*c = Call{Key: p.key, Tiers: p.rule.shared.terms, Lease: 2 * p.leaseLocked()}
	if !p.aimLocked(l, now, c) {
		p.wakeLocked()
		p.idleLocked(now)
		return false
	}
	p.seq++
	c.Node, c.Seq, c.Hold = p.name, p.seq, p.hold
	c.Received, c.Returned, c.Debt = p.received, p.returned, p.indebted+p.outage.debt
	c.Want, c.Stay = p.tierWantedLocked()
	p.clockLocked(l, now, c)
	p.cluster.count.used.Add(p.micro(p.spent))
	p.spent = 0
	p.call = draft{op: c.Op, debt: p.outage.debt, life: l.life.Load()}
	p.flying = true
	return true
}

// leaseLocked is for how long tokens are drawn. That of a window is part of its
// length, and so does not change.
func (p *lease) leaseLocked() time.Duration {
	if p.rule.shared.kind != KindBucket {
		return p.cluster.cfg.Lease
	}
	return p.cluster.lease()
}

// aimLocked chooses the operation; false means that none is needed.
func (p *lease) aimLocked(l *lane, now Instant, c *Call) bool {
	switch {
	case p.reset:
		p.reset = false
		c.Op = OpReset
		return true
	case p.claim.state == claimGiving:
		p.giveCallLocked(c)
		return true
	case l.health.settles(now) && p.claim.state != claimMine:
		return p.drawLocked(now, c)
	case p.claimsLocked() && (p.claim.state == claimMine || p.claim.state == claimNone && !p.gone):
		p.claimCallLocked(now, c)
		return true
	}
	return p.drawLocked(now, c)
}

// drawLocked asks for what is waited for and for what will soon be wanted, and
// gives back what will not.
func (p *lease) drawLocked(now Instant, c *Call) bool {
	p.unheardLocked(now)
	p.demand.measure(now)
	want := p.wantLocked()
	if p.gone || p.cluster.closing.Load() || p.outLocked(now) {
		want, p.wants = 0, wants{}
	}
	back := false
	if p.hold > want && (want == 0 || p.hold > 2*want || now.Sub(p.sent) >= p.leaseLocked()/3) {
		p.giveBackLocked(p.hold - want)
		back = true
	}
	c.Op = OpDraw
	c.Ask = max(p.wants.sum-p.hold, want-p.hold, 0)
	if now < p.dry.recheck && p.wants.sum == 0 {
		c.Ask = 0
	}
	c.Ask = min(c.Ask, p.terms().Size)
	if c.Ask > 0 {
		c.Least = 1
		if p.wants.least > p.hold {
			c.Least = min(p.wants.least-p.hold, c.Ask)
		}
	}
	c.Floor = p.floor * p.rule.shared.scale
	return c.Ask > 0 || back || p.hold > 0 || p.outage.debt > 0 || p.failures >= tripAfter || p.tellsLocked()
}

// giveBackLocked takes shares out of the hand; they are the store's again, if
// it hears of it in time.
func (p *lease) giveBackLocked(shares int64) {
	p.hold -= shares
	p.returned += shares
	p.cluster.count.returned.Add(p.micro(shares))
}

// wantLocked is what the node would keep in hand: its demand over the horizon,
// nothing when that is little, when there is little for each node, or of one
// user's bucket. Then decisions ask one by one.
func (p *lease) wantLocked() int64 {
	s := p.rule.shared
	if s.claims || s.single {
		return 0
	}
	want := p.demand.over(p.cluster.horizon())
	if want < 2*s.scale || p.terms().Size/int64(p.others+1) < 4*s.scale {
		return 0
	}
	return want
}

// clockLocked tells the store what this node knows of its time, and whether it
// must have the key.
func (p *lease) clockLocked(l *lane, now Instant, c *Call) {
	c.Lost = l.lost(now, p.terms())
	if p.got != 0 {
		c.Seen, c.LeastSince, c.MostSince = p.seen, now.Sub(p.got), now.Sub(p.asked)
		c.Lost = c.Lost || p.knowsLocked(now)
	}
	p.paceLocked(now)
}

// knowsLocked tells whether the store must have the key by what this node heard.
// Of a bucket that nodes claim only its owner can tell: who gives it back full
// has the key removed, and need not be this node.
func (p *lease) knowsLocked(now Instant) bool {
	return now.Add(keepMargin) < p.keep && (!p.rule.shared.claims || p.claim.state == claimMine)
}

// unheardLocked begins a new name when the store may have forgotten this one.
func (p *lease) unheardLocked(now Instant) {
	if p.got != 0 && now.Sub(p.asked) > silence {
		p.renameLocked()
	}
}

// keepMargin is how long before the store may forget a key, because its bucket
// is full, a node no longer takes a missing one for lost.
const keepMargin = 500 * time.Millisecond

// tierWantedLocked is the tier for the audience of the last request.
func (p *lease) tierWantedLocked() (want int, stay bool) {
	m := p.rule.tiers
	if m == nil {
		return 0, true
	}
	want = int(m.tierFor(p.audience))
	if p.tier < 0 || p.tier >= len(*m) {
		return want, true
	}
	return want, !m.beyond(int64(p.tier), p.audience)
}

// settle takes in the answer.
func (p *lease) settle(l *lane, sent, now Instant, c *Call) {
	p.owner.lock()
	defer p.owner.mu.Unlock()
	p.catchUpLocked()
	p.flying = false
	if c.Err != nil {
		p.failedLocked(now, c)
		return
	}
	p.answeredLocked(sent, now, &c.Reply)
	more := false
	switch p.call.op {
	case OpClaim:
		more = p.claimedLocked(l, sent, now, c)
	case OpGive:
		p.givenLocked()
	case OpDraw:
		more = p.grantedLocked(sent, now, c)
	}
	p.low = p.lowLocked()
	if !more {
		p.wakeLocked()
		p.planNextLocked(now)
	}
}

// failedLocked leaves everything as it is: what is in hand is good until its
// deadline, and the store will learn from the next call what was received.
func (p *lease) failedLocked(now Instant, c *Call) {
	p.failures++
	if errors.Is(c.Err, ErrStale) {
		p.expireLocked()
		p.renameLocked()
	}
	p.wakeLocked()
	switch {
	case p.claim.state == claimGiving:
		p.giveFailedLocked(now)
	case p.gone && p.call.op == OpClaim:
		p.cluster.leave(p)
	case p.hold > 0 && !errors.Is(c.Err, errAway):
		p.planLocked(p.nextLocked())
	}
}

// answeredLocked keeps what every answer says.
func (p *lease) answeredLocked(sent, now Instant, r *Reply) {
	p.failures = 0
	p.seen, p.asked, p.got = r.Now, sent, now
	p.keep = sent.Add(r.Keep)
	p.left, p.leftAt, p.others = r.Left, now, r.Others
	p.indebted += p.call.debt
	p.outage.debt = max(p.outage.debt-p.call.debt, 0)
	if p.rule.tiers != nil {
		p.tierLocked(now, r.Tier)
	}
}

// tierLocked puts the tier in force that the store says.
func (p *lease) tierLocked(now Instant, tier int) {
	p.tier = min(max(tier, 0), len(*p.rule.tiers)-1)
	s := p.owner
	if s.gen == nil {
		return
	}
	at, cells := s.atLocked(now), s.cells[p.rule.cell:]
	switch m := p.rule.tiers; cells[tierCell] {
	case int64(p.tier):
	case noTier:
		cells[tierCell] = int64(p.tier)
		m.rate(cells).start(cells, 0)
		m.rate(cells).back(cells, at)
	default:
		m.change(cells, int64(p.tier), at)
	}
	cells[askedCell] = settled
}

// grantedLocked takes a grant in hand. Its deadline counts from before the
// call was sent, and so is over before the store takes the shares for void. It
// reports true when those who wait have to wait on.
func (p *lease) grantedLocked(sent, now Instant, c *Call) (more bool) {
	r := &c.Reply
	if r.Owner != "" && r.Owner != p.name {
		p.recallLocked(now, r.Owner)
		return true
	}
	p.inHandLocked(now)
	p.received += r.Granted
	p.cluster.count.granted.Add(p.micro(r.Granted))
	p.hold += r.Granted
	p.until, p.since = sent.Add(c.Lease/2), now
	if r.Ends > 0 {
		p.until = min(p.until, sent.Add(r.Ends))
	}
	p.inHandLocked(now)
	p.aloneLocked(now)
	p.dry = dry{}
	if r.Granted < c.Ask {
		p.dryLocked(sent, now, c)
	}
	return false
}

// dryLocked remembers that the bucket has no more than was granted.
func (p *lease) dryLocked(sent, now Instant, c *Call) {
	wait, least := c.Reply.Wait, c.Least
	if c.Reply.Granted > 0 {
		least = 1
		if t := p.terms(); t.Num > 0 {
			wait = time.Duration(scale(max(1+c.Floor-c.Reply.Left, 1), t.Den, t.Num, 1)) * time.Microsecond
		} else if t.Kind == KindFixed {
			wait = c.Reply.Ends
		}
	}
	soonest := sent.Add(p.cluster.cfg.Spacing + time.Duration(p.cluster.cfg.Rand(int64(drySpacing))))
	p.dry.least = least
	p.dry.until = max(now.Add(wait), soonest)
	p.dry.recheck = min(p.dry.until, now.Add(time.Second))
}

// planNextLocked plans the call after this one, if there is to be one without
// being asked for.
func (p *lease) planNextLocked(now Instant) {
	soon := now.Add(p.cluster.gather())
	switch {
	case p.reset || p.claim.state == claimGiving || p.gone && p.hold > 0:
		p.planLocked(now)
	case p.claim.state == claimMine:
	case p.wantLocked() > 0 && p.dry.recheck > now:
		p.planLocked(p.dry.recheck)
	case p.wantLocked() > 0 && p.hold <= p.low:
		p.planLocked(max(p.nextLocked(), soon))
	}
	if p.hold > 0 || p.passesLocked() {
		p.planLocked(max(soon, p.sent.Add(p.cluster.idle())))
	}
}

// idleLocked forgets a user's lease that nothing is to be done for, as soon as
// its answer decides nothing any more.
func (p *lease) idleLocked(now Instant) {
	h := p.owner.sharing
	switch {
	case h == nil || !p.passesLocked() || p.failures > 0 || p.outage.spent > 0 || p.outage.debt > 0:
	case now < p.dry.recheck:
		p.planLocked(p.dry.recheck)
	case p.outage.sharing && p.outLocked(now):
		p.planLocked(now.Add(settling))
	default:
		h.forgetLocked(p, now)
	}
}

// passesLocked tells whether the lease is one that a user's join leaves behind.
// An address's stays, since many join from one.
func (p *lease) passesLocked() bool {
	return p.rule.shared.single && (p.rule.scope == ScopeUser || p.rule.scope == ScopeUserRoom)
}

// lowLocked is how little in hand makes the node ask for more.
func (p *lease) lowLocked() int64 { return p.demand.over(2 * p.cluster.trip()) }
