package limit

import "slices"

// sharing is what a subject has in common with the same subject on other
// nodes. Its subject's mu guards it.
type sharing struct {
	cluster *Cluster
	id      string
	leases  []*lease // as shared.first and floorOf tell; nil until asked
	slots   []heldSlot
}

// source is where an answer's tokens are taken from.
type source uint8

const (
	byCells  source = iota // the subject's own cells
	byHold                 // a lease's shares in hand
	byPolicy               // this node's part, during an outage
	byGrace                // nowhere, at an outage's beginning
	bySlot                 // a slot of the store's
)

// beginSharing has a subject take part, if the request says whose it is.
func (s *Subject) beginSharing(c *Cluster, q *Request) {
	id := sharedID(s.Scope, q)
	if id == "" {
		return
	}
	s.sharing = &sharing{cluster: c, id: id, leases: make([]*lease, s.gen.rules.scopes[s.Scope].leases)}
}

// lease returns the lease of a rule for a floor.
func (h *sharing) lease(s *Subject, r *rule, floor uint8) *lease {
	at := &h.leases[r.shared.first+int(floor)]
	if *at == nil {
		*at = newLease(h.cluster, s, sharedKey(h.id, r.shared), r, r.shared.floors[floor])
	}
	return *at
}

// restLocked tells whether nothing that this node knows or holds is lost when
// the subject is forgotten, whose cells are all full. If so, it lets go.
func (h *sharing) restLocked(now Instant) bool {
	if len(h.slots) > 0 {
		return false
	}
	for _, p := range h.leases {
		if p != nil && !p.restLocked(now) {
			return false
		}
	}
	h.letGoLocked(now)
	return true
}

func (p *lease) restLocked(now Instant) bool {
	if p.claim.state == claimMine {
		return !p.flying
	}
	if p.flying || p.inHandLocked(now) > 0 || p.outage.spent > 0 || p.outage.debt > 0 {
		return false
	}
	return now >= p.keep || p.rule.shared.claims
}

// forgetLocked forgets a lease that lies idle: who joined and says nothing costs
// no memory. The cells keep the level, for an outage to begin from.
func (h *sharing) forgetLocked(p *lease, now Instant) {
	if level := p.levelLocked(now); p.got != 0 && p.rule.shared.kind == KindBucket && level < p.ownLevelLocked(now) {
		p.setLevelLocked(now, level)
	}
	idle := true
	for i, other := range h.leases {
		if other == p {
			h.leases[i] = nil
		}
		idle = idle && h.leases[i] == nil
	}
	if idle && len(h.slots) == 0 {
		p.owner.sharing = nil
	}
}

// letGoLocked gives everything back.
func (h *sharing) letGoLocked(now Instant) {
	for i, p := range h.leases {
		if p != nil {
			p.letGoLocked(now)
			h.leases[i] = nil
		}
	}
}

func (p *lease) letGoLocked(now Instant) {
	p.gone = true
	p.leaveLocked(now)
	if p.hold > 0 {
		p.planLocked(max(p.nextLocked(), now))
	}
}

// followLocked takes the leases over to the subject's new rules. A rule that
// counts alike keeps its leases.
func (h *sharing) followLocked(s *Subject) {
	set := &s.gen.rules.scopes[s.Scope]
	now := h.cluster.cfg.Clock()
	leases := make([]*lease, set.leases)
	for _, p := range h.leases {
		if p == nil {
			continue
		}
		next := s.gen.rules.byName[p.rule.name]
		i := -1
		if next != nil && next.scope == s.Scope && next.shared != nil && next.shared.suffix == p.rule.shared.suffix {
			i = slices.Index(next.shared.floors, p.floor)
		}
		if i < 0 {
			p.letGoLocked(now)
			continue
		}
		p.rule, p.dry = next, dry{} // what it refused for may be raised
		leases[next.shared.first+i] = p
	}
	h.leases = leases
}

// resetLocked has the store fill the buckets.
func (h *sharing) resetLocked() {
	for _, p := range h.leases {
		if p == nil {
			continue
		}
		p.dry, p.outage = dry{}, outage{}
		if p.claim.state != claimMine {
			p.reset = true
			p.planLocked(p.nextLocked())
		}
	}
}

// catchUpLocked brings the lease to the rules in force.
func (p *lease) catchUpLocked() {
	if p.owner.gen != nil && !p.gone {
		p.owner.catchUpLocked()
	}
}

// Leave gives buckets back that this node has claimed for the subject, as the
// owner does when a user's last session on this node ends. It does not wait.
// The subject goes on as it was; its next decision claims again.
func (s *Subject) Leave(now Instant) {
	s.lock()
	defer s.mu.Unlock()
	if s.sharing == nil {
		return
	}
	for _, p := range s.sharing.leases {
		if p != nil {
			p.leaveLocked(now)
		}
	}
}
