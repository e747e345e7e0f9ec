package cluster

import (
	"time"

	"liveroom/limit"
)

// slots is a subject's part in the slots of a concurrency rule, which nodes
// take and give back one by one.
type slots struct {
	part
	tickets map[int64]*slot // of decisions under way
	held    []*slot         // until they are released
}

// slot is one that a decision asked for. It is an errand at its shard.
type slot struct {
	job
	of    *slots
	op    Op
	seq   int64 // names the slot
	state slotState
	done  chan struct{} // closed when the store has answered

	wait  time.Duration // when denied
	since limit.Instant // when granted
	taken limit.Instant // when kept: the instant that was passed to Decide,
	until limit.Instant // and when it comes back by itself
}

var (
	_ limit.SlotPart = (*slots)(nil)
	_ errand         = (*slot)(nil)
)

// Ask implements [limit.Part].
func (p *slots) Ask(a limit.Ask) limit.Grant {
	g := limit.Grant{From: limit.FromHand, Cost: 1, Unit: 1}
	s := p.tickets[a.Ticket]
	switch {
	case s != nil && s.state == granted:
		g.Since = s.since
		return g
	case s != nil && s.state == denied:
		return refused(g, max(s.wait, time.Millisecond))
	case p.out(a.Now) && (s != nil || !p.probes(a.Now)):
		return p.askAway(a)
	case s != nil || a.Last:
		if p.Quota.OnOutage != limit.OutageShare {
			return p.askAway(a)
		}
		g.Away = true
		return refused(g, retryAway)
	}
	g.Pending = true
	return g
}

// askAway answers while the shard is away. A slot that this node took now that
// it closes, the store would never hear of.
func (p *slots) askAway(a limit.Ask) limit.Grant {
	if p.cluster.closing.Load() {
		return refused(limit.Grant{Away: true, From: limit.FromHand}, retryAway)
	}
	a.Cost = 1
	return p.askOut(a, 0)
}

// probes tells whether a decision may find out by itself whether the calls
// still fail.
func (p *slots) probes(now limit.Instant) bool {
	if p.failures < tripAfter || p.lane.health.away.Load() || p.cluster.closing.Load() || now.Sub(p.sent) < probeAfter {
		return false
	}
	p.sent = now
	return true
}

// Await implements [limit.Part]: each decision asks for a slot of its own.
func (p *slots) Await(limit.Ask, limit.Grant) (answered <-chan struct{}, ticket int64) {
	p.seq++
	s := &slot{of: p, op: OpSlot, seq: p.seq, done: make(chan struct{})}
	if p.tickets == nil {
		p.tickets = map[int64]*slot{}
	}
	p.tickets[s.seq] = s
	s.send(OpSlot)
	return s.done, s.seq
}

// Take implements [limit.Part].
func (p *slots) Take(a limit.Ask, from limit.Source) {
	if from != limit.FromHand {
		p.takeOut(a, from)
		return
	}
	s := p.tickets[a.Ticket]
	delete(p.tickets, a.Ticket)
	move(&s.state, slotMoves[:], kept)
	s.taken, s.until = a.First, a.Now.Add(p.longest())
	p.held = append(p.held, s)
	p.Spend(a.First, 1, a.Class)
}

// longest is for how long a slot is held at most.
func (p *slots) longest() time.Duration { return p.Quota.Terms[0].Length }

// Abandon implements [limit.SlotPart].
func (p *slots) Abandon(ticket int64) {
	s := p.tickets[ticket]
	if s == nil {
		return // kept
	}
	delete(p.tickets, ticket)
	switch s.state {
	case asked:
		move(&s.state, slotMoves[:], unwanted)
	case granted:
		s.free()
	}
}

// Release implements [limit.SlotPart].
func (p *slots) Release(taken, now limit.Instant) {
	found, left := false, p.held[:0]
	for _, s := range p.held {
		switch {
		case s.taken == taken && !found:
			found = true
			s.free()
		case now < s.until:
			left = append(left, s)
		}
	}
	clear(p.held[len(left):])
	p.held = left
}

// Follow implements [limit.Part].
func (p *slots) Follow(own limit.Own) { p.Renew(own) }

// Rest implements [limit.Part].
func (p *slots) Rest(now limit.Instant) bool {
	for _, s := range p.held {
		if now < s.until {
			return false
		}
	}
	return len(p.tickets) == 0
}

// Leave implements [limit.Part]: no slot is claimed.
func (p *slots) Leave(limit.Instant) {}

// Drop implements [limit.Part]: what is held comes back by itself.
func (p *slots) Drop() { p.Detach() }

// Fill implements [limit.Part].
func (p *slots) Fill() {
	p.outage = outage{}
	p.seq++
	(&slot{of: p, seq: p.seq}).send(OpReset)
}

// Stand implements [limit.Part]: how many are free, only the store knows.
func (p *slots) Stand(a limit.Ask, s *limit.Standing) {
	if p.out(a.Now) {
		s.Cluster = "outage"
	}
}

// free gives the slot back.
func (s *slot) free() {
	move(&s.state, slotMoves[:], freed)
	s.send(OpFree)
}

func (s *slot) send(op Op) {
	s.op, s.job.errand = op, s
	s.of.cluster.lane(s.of.Key).schedule(&s.job, 0)
}

// prepare implements errand.
func (s *slot) prepare(_ *lane, _ limit.Instant, c *Call) bool {
	p := s.of
	p.LockSubject()
	defer p.UnlockSubject()
	*c = Call{Op: s.op, Key: p.Key, Node: p.name, Seq: s.seq, Tiers: p.Quota.Terms, Stay: true, Ask: 1, Least: 1, Lease: p.longest()}
	return s.state != unwanted
}

// settle implements errand.
func (s *slot) settle(_ *lane, _, now limit.Instant, c *Call) {
	p := s.of
	p.LockSubject()
	defer p.UnlockSubject()
	if c.Op != OpSlot {
		return // one that was not freed comes back by itself
	}
	to := denied
	switch {
	case c.Err != nil:
		p.failures++
		to = failed
	case c.Reply.Granted > 0:
		p.failures, s.since, to = 0, now, granted
	default:
		p.failures, s.wait = 0, c.Reply.Wait
	}
	close(s.done)
	switch {
	case s.state == asked:
		move(&s.state, slotMoves[:], to)
	case to == granted:
		s.free()
	}
}
