package cluster

import (
	"time"

	"liveroom/limit"
)

// lease is a subject's part in one bucket that all nodes share: what this node
// was granted and may spend until a deadline, or the whole bucket when it has
// claimed it.
//
// It has some forty methods, since its calls are decided from all that it has and
// all that is wanted of it: eleven are a Part's and an errand's, the others of
// what decisions ask stand in this file, those of its calls in calls.go. What
// has a state of its own is a type of its own: claim, demand.
type lease struct {
	part
	job   job // its place in a lane's queue; one call at a time
	stage stage
	next  limit.Instant // when the call is due that waits in the queue
	fill  bool          // the next call is an OpReset
	call  draft

	hand     hand
	told     sums
	heard    heard
	demand   demand
	audience int64 // of the last request
	wants    wants
	dry      dry
	even     limit.Instant // when the last call had been sent, had all been evenly spaced, and the spacing
	claim    claim
}

// hand is what may be spent, in shares: good until the deadline, and at instants
// from since on, the receipt of the latest grant.
type hand struct {
	shares int64
	low    int64 // at which more is asked for
	until  limit.Instant
	since  limit.Instant
	spent  int64 // since the last call, for the counters
}

// sums are what has been told under one name: of all grants, of what was given
// back, and of debts that the store knows of.
type sums struct{ received, returned, debts int64 }

// heard is what the last answer said.
type heard struct {
	tier   int // -1 before the first
	left   int64
	others int
	clock  int64         // the store's time
	asked  limit.Instant // when that call was sent
	got    limit.Instant // when its answer came, 0 before the first
	keep   limit.Instant // until when the store remembers the key, at least
}

// draft is what a call under way has told.
type draft struct {
	op   Op
	debt int64
	life int64 // of the shard when it was sent
}

// wants is what decisions wait for.
type wants struct {
	sum   int64         // shares that all of them need, together
	least int64         // that the most modest needs
	done  chan struct{} // closed when the next answer is there; nil while nobody waits
}

// dry is the memory of an answer that there is nothing more.
type dry struct {
	until   limit.Instant // told to those who are refused
	recheck limit.Instant // not before then is the store asked again
	least   int64         // shares that could not be had; fewer may be there
	unknown bool          // nobody could say: who has claimed the bucket does not answer
}

var _ limit.Part = (*lease)(nil)

func newLease(c *Cluster, own limit.Own) *lease {
	p := &lease{part: newPart(c, own), heard: heard{tier: -1}}
	p.job.errand, p.claim.of = p, p
	return p
}

// Ask implements [limit.Part]: of what is in hand, without waiting.
func (p *lease) Ask(a limit.Ask) limit.Grant {
	p.audience = a.Audience
	if p.claim.state == home && p.claim.holds(a.Now) {
		p.claim.keep(a.Now)
		return limit.Grant{From: limit.FromOwn}
	}
	q := p.Quota
	g := limit.Grant{From: limit.FromHand, Cost: a.Cost, Unit: q.Unit[a.Class]}
	whole := p.terms().Size - p.Floor*q.Scale
	if (g.Cost > 1 || whole < g.Unit) && g.Cost > whole/g.Unit {
		if !q.Fold {
			return refused(g, limit.Never)
		}
		g.Cost = whole / g.Unit
	}
	need := g.Cost * g.Unit
	if !a.Again {
		p.demand.asked += need
	}
	have := p.inHand(a.Now)
	p.outage.parted = p.outage.parted && p.out(a.Now)
	switch {
	case have >= need:
	case p.out(a.Now):
		return p.askAway(a)
	case a.Now < p.dry.recheck && need-have >= p.dry.least:
		g.Since, g.Away = p.hand.since, p.dry.unknown
		return p.lacks(g, p.dry.until.Sub(a.Now))
	case a.Last:
		return p.askLate(a, g)
	default:
		g.Pending, g.Left = true, need
		if q.Fold {
			g.Left = min(need, have+g.Unit)
		}
		return g
	}
	g.Since = p.hand.since
	g.Left = have - need + max(p.level(a.Now)-p.Floor*q.Scale, 0)
	if g.Cost < a.Cost {
		g.Verdict = limit.Degrade
	}
	return g
}

// lacks answers for want of shares: it folds, or it refuses for a while.
func (p *lease) lacks(g limit.Grant, wait time.Duration) limit.Grant {
	if p.Quota.Fold {
		g.Verdict, g.Cost = limit.Degrade, p.hand.shares/g.Unit
		return g
	}
	return refused(g, max(wait, 1))
}

// askAway answers while the shard is away. What this node spent now that it
// closes, the store would never hear of.
func (p *lease) askAway(a limit.Ask) limit.Grant {
	if p.cluster.closing.Load() {
		return p.lacks(limit.Grant{From: limit.FromHand, Away: true, Cost: a.Cost, Unit: p.Quota.Unit[a.Class]}, retryAway)
	}
	if p.failures >= tripAfter && !p.lane.health.away.Load() {
		p.plan(p.sent.Add(probeAfter)) // only this lease's calls failed, or it has not called since its shard is back
	}
	known := int64(limit.MaxShares)
	if p.Quota.Kind == limit.KindBucket && p.heard.got != 0 {
		// Others drew after that answer, as much as came since, or nearly.
		known = p.level(a.Now.Add(-2 * p.cluster.cfg.Spacing))
	}
	return p.askOut(a, known)
}

// askLate answers when the budget is used up. As long as the shard is
// not known to be away a rule that shares waits for that: whatever it granted
// beyond the bucket would break the bound whenever an answer is late.
func (p *lease) askLate(a limit.Ask, g limit.Grant) limit.Grant {
	if p.Quota.OnOutage != limit.OutageShare {
		return p.askAway(a)
	}
	g.Since, g.Away = p.hand.since, true
	return p.lacks(g, max(p.soonest().Sub(a.Now), retryAway))
}

// Take implements [limit.Part]. The subject's own bucket follows, so that an
// outage finds a level to begin from.
func (p *lease) Take(a limit.Ask, from limit.Source) {
	if from != limit.FromHand {
		if p.outage.spent == 0 {
			if p.lane.owes(p); !p.away() {
				p.plan(p.spaced())
			}
		}
		p.takeOut(a, from)
		return
	}
	shares := a.Cost * p.Quota.Unit[a.Class]
	p.hand.shares -= shares
	p.hand.spent += shares
	p.Spend(a.Now, a.Cost, a.Class)
	if p.hand.shares <= p.hand.low || p.tells() {
		p.plan(p.spaced())
	}
}

// tells reports whether so much was spent that the store should know, though
// nothing else is wanted: what it takes for held leaves no room to refill.
func (p *lease) tells() bool {
	return p.hand.spent > p.terms().Size/8 && !p.Quota.Claims && !p.Quota.Single
}

// Await implements [limit.Part].
func (p *lease) Await(_ limit.Ask, g limit.Grant) (answered <-chan struct{}, ticket int64) {
	return p.await(g.Cost*g.Unit, g.Left), 0
}

// await notes a decision that waits for shares and returns what is closed
// when the next answer is there.
func (p *lease) await(need, least int64) <-chan struct{} {
	w := &p.wants
	w.sum = min(w.sum+need, limit.MaxShares)
	if w.least == 0 || least < w.least {
		w.least = least
	}
	if w.done == nil {
		w.done = make(chan struct{})
	}
	p.plan(max(p.soonest(), p.heard.got.Add(p.cluster.timing.gather())))
	return w.done
}

// Follow implements [limit.Part]: what the rule refused for may be raised.
func (p *lease) Follow(own limit.Own) {
	p.Renew(own)
	p.dry = dry{}
}

// Rest implements [limit.Part].
func (p *lease) Rest(now limit.Instant) bool {
	switch {
	case p.stage >= calling:
		return false
	case p.claim.state == home:
		return true
	case p.inHand(now) > 0 || p.outage.spent > 0 || p.outage.debt > 0:
		return false
	}
	return now >= p.heard.keep || p.Quota.Claims
}

// Leave implements [limit.Part].
func (p *lease) Leave(now limit.Instant) {
	if p.claim.state == home {
		p.claim.give(now, unclaimed)
	}
}

// Drop implements [limit.Part].
func (p *lease) Drop() {
	now := p.cluster.cfg.Clock()
	p.Leave(now)
	p.Detach()
	if p.hand.shares > 0 {
		p.plan(max(p.spaced(), now))
	}
}

// Fill implements [limit.Part].
func (p *lease) Fill() {
	p.dry, p.outage = dry{}, outage{}
	if p.claim.state != home {
		p.fill = true
		p.plan(p.spaced())
	}
}

// Stand implements [limit.Part].
func (p *lease) Stand(a limit.Ask, s *limit.Standing) {
	switch {
	case p.heard.got == 0 && p.claim.state == unclaimed:
		return
	case p.claim.state == home && p.claim.holds(a.Now):
		s.Cluster = home.String()
		return
	case p.claim.state == giving:
		s.Cluster = giving.String()
		return
	case p.out(a.Now):
		s.Cluster = "outage"
		return
	}
	q, t := p.Quota, p.terms()
	unit, have := q.Unit[a.Class], p.inHand(a.Now)
	level := min(have+max(p.level(a.Now), 0), t.Size)
	s.Cluster, s.Held, s.Level, s.Burst = shared.String(), have/unit, level/unit, t.Size/unit
	switch need := a.Cost*unit + p.Floor*q.Scale; {
	case need <= level || q.Fold:
		s.RetryAfter = 0
	case a.Now < p.dry.until:
		s.RetryAfter = p.dry.until.Sub(a.Now)
	case t.Num > 0:
		s.RetryAfter = t.Takes(need - level)
	}
}

// terms are the numbers in force as far as this node knows.
func (p *lease) terms() *limit.Terms {
	t := p.Quota.Terms
	return &t[min(max(p.heard.tier, 0), len(t)-1)]
}

// inHand returns the shares that may be spent at an instant.
func (p *lease) inHand(now limit.Instant) int64 {
	if now >= p.hand.until {
		p.expire()
	}
	return p.hand.shares
}

// expire drops what is in hand.
func (p *lease) expire() {
	if p.hand.shares > 0 {
		p.cluster.count.expired.Add(p.micro(p.hand.shares))
		p.hand.shares = 0
	}
}

// micro is an amount of shares in millionths of a token.
func (p *lease) micro(shares int64) int64 { return shares * 1e6 / p.Quota.Scale }

// level estimates what the bucket holds beside what is in hand: what was
// left at the last answer and has come since, if nobody else took any.
func (p *lease) level(now limit.Instant) int64 {
	t := p.terms()
	if p.heard.got == 0 {
		return t.Start
	}
	return min(p.heard.left+t.Comes(now.Sub(p.heard.got)), t.Size)
}

// rename begins a new name, of which the store has heard nothing; what
// was in hand stays behind and expires there.
func (p *lease) rename() {
	p.expire()
	p.name, p.seq, p.told = p.cluster.newName(), 0, sums{}
}
