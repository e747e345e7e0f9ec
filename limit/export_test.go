package limit

import (
	"fmt"
	"time"
)

// Check tells the first thing that is wrong with what a subject has in common
// with others.
func (s *Subject) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sharing == nil {
		return nil
	}
	for _, p := range s.sharing.leases {
		if p == nil {
			continue
		}
		if err := p.check(); err != nil {
			return fmt.Errorf("%s as %s: %w", p.key, p.name, err)
		}
	}
	return nil
}

// check tells the first invariant of a lease that does not hold.
func (p *lease) check() error {
	switch {
	case p.gone:
		return fmt.Errorf("is gone and still its subject's")
	case p.hold < 0 || p.hold+p.returned > p.received:
		return fmt.Errorf("holds %d and gave back %d of %d received", p.hold, p.returned, p.received)
	case p.hold > p.received:
		return fmt.Errorf("holds %d of %d received", p.hold, p.received)
	case p.spent < 0 || p.wants.sum < 0 || p.demand.rate < 0 || p.demand.asked < 0:
		return fmt.Errorf("has spent %d, wants %d, asks %d at %d", p.spent, p.wants.sum, p.demand.asked, p.demand.rate)
	case p.outage.spent < 0 || p.outage.debt < 0 || p.outage.debt > p.terms().Size:
		return fmt.Errorf("has spent %d and owes %d of an outage", p.outage.spent, p.outage.debt)
	case (p.claim.state == claimGiving) != (p.claim.give != nil):
		return fmt.Errorf("is in state %d of its claim, giving %t", p.claim.state, p.claim.give != nil)
	case p.claim.state == claimMine && (p.hold > 0 || p.claim.lane == nil):
		return fmt.Errorf("has claimed the bucket and holds %d", p.hold)
	case p.wants.sum > 0 && p.done == nil:
		return fmt.Errorf("wants %d for nobody", p.wants.sum)
	case p.done != nil && !p.flying && p.planned == 0 && !p.cluster.closing.Load():
		return fmt.Errorf("somebody waits and no call is planned")
	case p.claim.state == claimGiving && !p.flying && p.planned == 0:
		return fmt.Errorf("gives a bucket back and no call is planned")
	case p.hold > 0 && !p.flying && p.planned == 0 && p.failures == 0:
		return fmt.Errorf("holds %d and no call is planned", p.hold)
	}
	return nil
}

// Shares tells whether a subject keeps anything that it has in common with others.
func (s *Subject) Shares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sharing != nil
}

// FallBehind has the cluster take its process for late.
func (c *Cluster) FallBehind() { c.lag.Store(int64(time.Minute)) }
