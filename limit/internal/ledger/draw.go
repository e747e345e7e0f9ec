package ledger

import (
	"liveroom/limit"
	"liveroom/limit/cluster"
)

// draw settles what became of a node's grants and grants more; or, for a claim,
// hands over the whole bucket. fresh tells that this call created the key.
func (s *state) draw(c *cluster.Call, fresh bool) {
	i := s.find(c.Node)
	if i < 0 {
		s.nodes = append(s.nodes, entry{node: c.Node, received: c.Received, returned: c.Returned})
		i = len(s.nodes) - 1
		e := &s.nodes[i]
		if fresh {
			e.hold = min(c.Hold, s.size)
		} else { // the store lost the node, with whatever it had been granted
			e.hold = min(c.Received, s.size)
			s.debit(e.hold)
		}
	}
	e := &s.nodes[i]
	s.settle(c, e)
	e.seq, e.at, e.grant, e.expires = c.Seq, s.t, 0, s.t+microsUp(c.Lease)
	if s.kind == limit.KindFixed {
		e.expires = min(e.expires, (s.window+1)*s.length)
	}
	if s.kind == limit.KindBucket {
		s.cap()
	}
	if c.Op == cluster.OpClaim {
		s.claim(c)
	} else {
		s.grant(c, e)
	}
}

// settle compares what the node says with what the store knows.
func (s *state) settle(c *cluster.Call, e *entry) {
	live := e.expires > s.t
	switch lost := e.received - c.Received; {
	case lost > 0: // a reply: nobody has what it granted
		lost = min(lost, e.hold)
		e.hold -= lost
		if live {
			s.credit(lost, e)
		}
	case lost < 0: // the store's memory: it was granted, and may be spent
		lost = min(-lost, s.grantable(s.t-e.at))
		e.hold += lost
		s.debit(lost)
	}
	hold := min(c.Hold, e.hold)
	if c.Op == cluster.OpClaim {
		hold = 0
	}
	if back := min(c.Returned-e.returned, e.hold-hold); live && back > 0 {
		s.credit(back, e)
	}
	s.debit(min(c.Debt-e.debt, s.size))
	e.received, e.returned, e.debt, e.hold = c.Received, c.Returned, c.Debt, hold
}

// grantable is the most that can have been granted in a time.
func (s *state) grantable(elapsed int64) int64 {
	if s.num == 0 || elapsed >= up(s.size*s.den, s.num) {
		return 2 * s.size
	}
	return s.size + div(s.num*elapsed, s.den)
}

// grant gives as much of Ask as there is above the floor, at least Least.
func (s *state) grant(c *cluster.Call, e *entry) {
	n := min(c.Ask, s.left()-c.Floor)
	if n <= 0 || n < c.Least {
		return
	}
	s.debit(n)
	e.grant, e.fresh, e.granted = n, n, s.t
	e.hold += n
	e.received += n
	c.Reply.Granted = n
}

// claim makes the node the owner, unless others hold anything.
func (s *state) claim(c *cluster.Call) {
	if s.owner == c.Node || s.heldByOthers(c.Node) > 0 {
		return
	}
	if c.Owned {
		s.level = min(s.level, max(c.Level, -s.size)*s.den)
	}
	s.owner = c.Node
}

// give takes the bucket back from its owner. Of one that the store does not know
// as the owner's it takes the lower level.
func (s *state) give(c *cluster.Call) {
	level := max(min(c.Level, s.size), -s.size) * s.den
	if s.owner != c.Node {
		level = min(level, s.level)
	}
	s.owner, s.level = "", level
	i := s.find(c.Node)
	if i < 0 {
		s.nodes = append(s.nodes, entry{node: c.Node, received: c.Received, returned: c.Returned, debt: c.Debt})
		i = len(s.nodes) - 1
	}
	e := &s.nodes[i]
	e.seq, e.at, e.hold, e.grant, e.expires = c.Seq, s.t, 0, 0, s.t+microsUp(c.Lease)
}

// forgettable tells that a full bucket that was given back says nothing more.
func (s *state) forgettable(node string) bool {
	for i := range s.nodes {
		if e := &s.nodes[i]; e.node != node && e.expires > s.t {
			return false
		}
	}
	return s.owner == "" && s.level == s.size*s.den
}
