package limit

import "time"

// Standing is how a rule stands towards a request, for people who ask why.
type Standing struct {
	Rule      string `json:"rule"`
	Scope     string `json:"scope"`
	Algorithm string `json:"algorithm"`
	// Why is "applies", "shadow", "exempt", or what keeps the rule from
	// being asked: "other_room", "other_role", "other_attrs", or "superseded" by a more
	// specific rule.
	Why string `json:"why"`
	// Level is the tokens in the bucket now, Burst its capacity, both as the
	// request's role counts them. They are zero where the rule is not asked.
	Level int64 `json:"level"`
	Burst int64 `json:"burst"`
	// Cluster tells how a rule with cluster: true stands here: "home" while this
	// node has the whole bucket, "shared" while nodes draw from it, "giving" in
	// between, "outage" while it goes by on_outage; empty while nobody has
	// asked, and for rules of this node alone. Held is how many tokens of Level
	// this node has in hand; the rest is an estimate from the store's last answer.
	Cluster string `json:"cluster,omitempty"`
	Held    int64  `json:"held,omitempty"`
	// RetryAfter is how long the rule would refuse the request from now on:
	// 0 when it would not, Never when it always would.
	RetryAfter time.Duration `json:"retry_after_ns"`
}

// Explain tells how every rule for q's action stands towards q, for the
// subjects given, in the order in which Decide asks. It spends nothing.
func (g *Gate) Explain(now Instant, q *Request, subjects ...*Subject) []Standing {
	var all []Standing
	for scope := range scopeCount {
		for _, s := range subjects {
			if s.Scope == scope {
				all = append(all, g.explain(now, q, s)...)
			}
		}
	}
	return all
}

func (g *Gate) explain(now Instant, q *Request, s *Subject) []Standing {
	s.lock()
	defer s.mu.Unlock()
	rules := g.current.Load().rules
	set := &rules.scopes[s.Scope]
	cells, at := set.newCells(now), int64(0)
	if s.gen != nil {
		s.catchUpLocked()
		rules = s.gen.rules
		at = s.atLocked(now)
		cells = append([]int64(nil), s.cells...)
	}
	class, traits := rules.class(q.Role), rules.where.hold(q.Traits)
	l := &rules.lists(q).of[s.Scope]
	from, to := l.group(class, traits, q.Room)
	all := make([]Standing, 0, len(l.rules))
	for i, r := range l.rules {
		standing := Standing{Rule: r.name, Scope: r.scope.String(), Algorithm: r.spec.Algorithm}
		standing.Why = r.why(class, traits, q, i >= from && i < to)
		if standing.Why == "applies" || standing.Why == "shadow" {
			if r.here {
				cells[r.cell] = int64(s.here)
			}
			r.stand(&standing, cells[r.cell:], at, class, q)
			r.standShared(&standing, s.sharing, now, class, q)
		}
		all = append(all, standing)
	}
	return all
}

func (r *rule) why(class uint8, traits uint64, q *Request, inGroup bool) string {
	switch {
	case r.room != "" && !matchRoom(r.room, q.Room):
		return "other_room"
	case r.roles>>class&1 == 0:
		return "other_role"
	case !r.matches(class, traits, q.Room):
		return "other_attrs"
	case !inGroup:
		return "superseded"
	case r.exempts(class, q):
		return "exempt"
	case r.shadow:
		return "shadow"
	}
	return "applies"
}

// stand fills in what the rule would answer; the cells are a copy.
func (r *rule) stand(s *Standing, cells []int64, at int64, class uint8, q *Request) {
	var a answer
	r.ask(cells, at, class, q, &a)
	s.RetryAfter = a.wait
	shares := r.meter.shares(cells)
	s.Level = max(r.meter.level(cells, at), 0) / shares.unit[class]
	s.Burst = shares.size / shares.unit[class]
}

// standShared fills in what is known of a bucket that nodes share.
func (r *rule) standShared(s *Standing, h *sharing, now Instant, class uint8, q *Request) {
	if h == nil || r.quota == nil {
		return
	}
	if p := h.parts[r.quota.first+int(r.quota.floorOf[q.Action])]; p != nil {
		retry := s.RetryAfter
		p.Stand(Ask{Now: now, First: now, Cost: r.cost(q), Class: class, Audience: int64(q.Audience)}, s)
		if r.second != nil {
			s.RetryAfter = retry // when it degrades or refuses is told by the node's own buckets
		}
	}
}
