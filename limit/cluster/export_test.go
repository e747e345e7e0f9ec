package cluster

import (
	"errors"
	"fmt"
	"time"

	"liveroom/limit"
)

// Check tells the first thing that is wrong with a subject's part.
func Check(p limit.Part) error {
	switch p := p.(type) {
	case *lease:
		p.LockSubject()
		defer p.UnlockSubject()
		if err := p.check(); err != nil {
			return fmt.Errorf("%s as %s, %v, %v: %w", p.Key, p.name, p.stage, p.claim.state, err)
		}
	case *slots:
		p.LockSubject()
		defer p.UnlockSubject()
		if err := p.check(); err != nil {
			return fmt.Errorf("%s as %s: %w", p.Key, p.name, err)
		}
	}
	return nil
}

// check holds a lease's states to one another, and to what it has.
func (p *lease) check() error {
	have, c := p.hand.shares, &p.claim
	switch {
	case have < 0 || have+p.told.returned > p.told.received:
		return fmt.Errorf("holds %d and gave back %d of %d received", have, p.told.returned, p.told.received)
	case p.hand.spent < 0 || p.wants.sum < 0 || p.demand.rate < 0 || p.demand.asked < 0:
		return fmt.Errorf("has spent %d, wants %d, asks %d at %d", p.hand.spent, p.wants.sum, p.demand.asked, p.demand.rate)
	case p.outage.spent < 0 || p.outage.debt < 0 || p.outage.debt > p.terms().Size:
		return fmt.Errorf("has spent %d and owes %d of an outage", p.outage.spent, p.outage.debt)
	case (c.state == giving) != (c.over != nil):
		return fmt.Errorf("gives a bucket back: %t", c.over != nil)
	case c.state == home && (have > 0 || c.lane == nil):
		return fmt.Errorf("has the bucket and holds %d", have)
	case p.wants.sum > 0 && p.wants.done == nil:
		return fmt.Errorf("wants %d for nobody", p.wants.sum)
	case p.stage != resting || p.cluster.closing.Load():
		return nil
	case p.wants.done != nil:
		return errors.New("somebody waits and no call is planned")
	case c.state == giving:
		return errors.New("gives a bucket back and no call is planned")
	case have > 0 && p.failures == 0:
		return fmt.Errorf("holds %d and no call is planned", have)
	}
	return nil
}

// check holds the slots' states to where they stand.
func (p *slots) check() error {
	for ticket, s := range p.tickets {
		if s.state > failed || s.seq != ticket {
			return fmt.Errorf("ticket %d is of slot %d, %v", ticket, s.seq, s.state)
		}
	}
	for _, s := range p.held {
		if s.state != kept {
			return fmt.Errorf("slot %d is held, %v", s.seq, s.state)
		}
	}
	return nil
}

// Shared tells whether a part is still its subject's.
func Shared(p limit.Part) bool {
	o := p.(interface {
		LockSubject()
		UnlockSubject()
		Detached() bool
	})
	o.LockSubject()
	defer o.UnlockSubject()
	return !o.Detached()
}

// FallBehind has the cluster take its process for late.
func (c *Cluster) FallBehind() { c.timing.lag.Store(int64(time.Minute)) }
