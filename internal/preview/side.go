package preview

import (
	"liveroom/limit"
)

// side is one of the two gates that are compared, on a virtual clock, with the buckets of everything.
type side struct {
	gate    *limit.Gate
	now     limit.Instant
	buckets map[bucket]*limit.Subject
	passed  map[passKey]*passed
	asked   []*limit.Subject // scratch
}

// bucket is whose a bucket is.
type bucket struct {
	scope      limit.Scope
	user, room string
	conn       uint32
}

func newSide(rules *limit.Rules) *side {
	s := &side{buckets: map[bucket]*limit.Subject{}, passed: map[passKey]*passed{}}
	s.gate = limit.NewGate(rules, func() limit.Instant { return s.now })
	return s
}

// swap puts rules in force at an instant. It reports whether the gate took them.
func (s *side) swap(rules *limit.Rules, at limit.Instant) bool {
	s.now = max(s.now, at)
	return s.gate.Swap(rules)
}

// with adds a bucket to those that are asked, if the real gate was asked about one of that scope.
func (s *side) with(k *kind, b bucket) {
	if !k.asked(b.scope) {
		return
	}
	subject := s.buckets[b]
	if subject == nil {
		subject = &limit.Subject{Scope: b.scope}
		s.buckets[b] = subject
	}
	s.asked = append(s.asked, subject)
}

// ask puts one request to the gate, with the user's own buckets when it is a sampled user's. Who came is gone at once: nobody has
// recorded when it went.
func (s *side) ask(at limit.Instant, q *limit.Request, k *kind, name string, conn uint32) limit.Decision {
	s.now = max(s.now, at)
	s.asked = s.asked[:0]
	if name != "" {
		own := bucket{scope: limit.ScopeConn, user: name, conn: conn}
		if q.Action == limit.Join { // an address comes back with another connection
			delete(s.buckets, own)
		}
		s.with(k, own)
		s.with(k, bucket{scope: limit.ScopeUser, user: name})
		s.with(k, bucket{scope: limit.ScopeUserRoom, user: name, room: k.Room})
	}
	s.with(k, bucket{scope: limit.ScopeRoom, room: k.Room})
	s.with(k, bucket{scope: limit.ScopeGlobal})
	if len(s.asked) == 0 {
		return limit.Decision{Counted: q.Cost}
	}
	d := s.gate.Decide(at, q, s.asked...)
	if q.Action.Lasts() && d.Verdict != limit.Reject {
		s.gate.Release(at, q, s.asked...)
	}
	return d
}

// passKey is what the share let through by personal limits is measured for.
type passKey struct {
	role, route string
	action      limit.Action
}

// passed measures that share on sampled users, and accumulates what of the unsampled load is due.
type passed struct {
	asked, through    float64
	cost, costThrough float64
	due, dueCost      float64
	traits            *limit.Traits // of the user who asked last: as many of the unsampled load have them
}

// passMemory is after how many requests older ones weigh half.
const passMemory = 1024

func (s *side) pass(k *kind) *passed {
	key := passKey{k.Role, k.Route, k.Action}
	p := s.passed[key]
	if p == nil {
		p = &passed{}
		s.passed[key] = p
	}
	return p
}

// measure notes what the gate's personal limits made of a sampled user's request.
func (p *passed) measure(q *limit.Request, d *limit.Decision) {
	asked := q.Cost
	p.traits = q.Traits
	if p.asked >= passMemory {
		p.asked, p.through, p.cost, p.costThrough = p.asked/2, p.through/2, p.cost/2, p.costThrough/2
	}
	p.asked++
	p.cost += float64(asked)
	switch personal := d.Scope < limit.ScopeRoom; {
	case personal && d.Verdict == limit.Reject:
	case personal && d.Verdict == limit.Degrade:
		p.through++
		p.costThrough += float64(d.Counted)
	default:
		p.through++
		p.costThrough += float64(asked)
	}
}

// take lets one request of the load come to its turn; it tells with what cost it goes to the shared buckets, if it does.
func (p *passed) take(cost float64) (whole int64, ok bool) {
	p.due += ratio(p.through, p.asked)
	if p.due < 1 {
		return 0, false
	}
	p.due--
	p.dueCost += cost * min(ratio(p.costThrough, p.cost)/max(ratio(p.through, p.asked), 1e-9), 1)
	whole = int64(p.dueCost + 1e-9)
	p.dueCost -= float64(whole)
	return whole, true
}

// ratio is 1 as long as nothing is known.
func ratio(n, of float64) float64 {
	if of == 0 {
		return 1
	}
	return n / of
}

// load lets one request of users who are not sampled at the shared buckets, when its turn has come.
func (s *side) load(at limit.Instant, k *kind, cost float64, audience uint32) {
	if !k.asked(limit.ScopeRoom) && !k.asked(limit.ScopeGlobal) {
		return
	}
	p := s.pass(k)
	if whole, ok := p.take(cost); ok {
		s.ask(at, &limit.Request{Traits: p.traits, Action: k.Action, Route: k.Route, Cost: whole, Role: k.Role, Room: k.Room, Audience: int(audience)}, k, "", 0)
	}
}
