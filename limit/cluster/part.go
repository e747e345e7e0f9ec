package cluster

import (
	"time"

	"liveroom/limit"
)

// part is what a lease and slots have in common: whose bucket it is of, the way to the shard that has it, how its calls fare,
// and what it does while they can't be made. The subject's lock guards it, also after the subject has let it go.
type part struct {
	limit.Own
	cluster *Cluster
	lane    *lane // of the last call planned

	name     string // that the store knows it by
	seq      int64
	failures int           // calls in a row
	sent     limit.Instant // when the last call was sent, answered or not
	outage   outage
}

// outage is what a part does while its shard is away.
type outage struct {
	parted bool  // the subject's own bucket is this node's part of the shared one
	spent  int64 // shares, since it began
	debt   int64 // shares, of outages that are over; the store is to know
}

func newPart(c *Cluster, own limit.Own) part {
	return part{Own: own, cluster: c, lane: c.lane(own.Key), name: c.newName()}
}

// out tells whether the rule goes by its on_outage: while its shard is away,
// and while what nodes spent meanwhile is not yet told.
func (p *part) out(now limit.Instant) bool {
	return p.away() || p.opens() || p.Quota.OnOutage != limit.OutageClosed && p.lane.health.settles(now)
}

// opens tells whether the rule is open from the first failure on, before
// it is known whether that is an outage.
func (p *part) opens() bool {
	return p.Quota.OnOutage == limit.OutageOpen && p.lane.health.failing.Load() != 0
}

// tripAlone failures in a row of one key alone count as an outage for it.
const tripAlone = 8

func (p *part) away() bool {
	if p.lane.health.away.Load() {
		p.lane = p.cluster.lane(p.Key) // another shard may have the key by now
	}
	return p.lane.health.away.Load() || p.failures >= tripAlone || p.cluster.closing.Load()
}

// parts is how many parts the bucket has: one for each node alive, and one
// more while the parts are put together again, for what is on its way.
func (p *part) parts() int64 {
	n := p.cluster.nodes.Load()
	if !p.away() {
		n++
	}
	return n
}

// askOut answers by the rule's on_outage. What the node's part begins with is
// at most what the bucket is known to hold.
func (p *part) askOut(a limit.Ask, known int64) limit.Grant {
	g := limit.Grant{From: limit.FromNowhere, Cost: a.Cost, Unit: p.Unit(a)}
	switch p.Quota.OnOutage {
	case limit.OutageClosed:
		g.Away = true
		return refused(g, probeAfter+defaultBudget)
	case limit.OutageOpen:
		if down := limit.Instant(p.lane.health.down.Load()); (p.away() || p.opens()) && (down == 0 || a.Now.Sub(down) < p.Quota.Grace) {
			return g
		}
	}
	if !p.outage.parted {
		p.outage.parted, p.outage.spent = true, 0
		if p.Quota.Kind != limit.KindSlots { // each slot is told by its holder when to come back
			p.Divide(a.Now, p.cluster.nodes.Load(), known)
		}
	}
	return p.AskPart(a, p.parts())
}

// takeOut spends what askOut granted.
func (p *part) takeOut(a limit.Ask, from limit.Source) {
	p.outage.spent = min(p.outage.spent+p.TakePart(a, from, p.parts()), limit.MaxShares)
}

// retryAway is the wait told while it is not yet known whether a shard that
// did not answer in time is away.
const retryAway = 50 * time.Millisecond

func refused(g limit.Grant, wait time.Duration) limit.Grant {
	g.Verdict, g.Cost, g.Wait = limit.Reject, 0, wait
	return g
}
