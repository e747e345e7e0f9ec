package preview

import (
	"liveroom/limit"
)

// world is one gate on a virtual clock, with the buckets of everything that is not one user's.
type world struct {
	gate   *limit.Gate
	now    limit.Instant
	rooms  map[string]*limit.Subject
	global limit.Subject
	passes map[passKey]*passage
	bound  []passages       // by kind of the recording that is fed
	asked  []*limit.Subject // scratch
}

func newWorld(rules *limit.Rules) *world {
	w := &world{
		rooms: map[string]*limit.Subject{}, passes: map[passKey]*passage{},
		global: limit.Subject{Scope: limit.ScopeGlobal},
	}
	w.gate = limit.NewGate(rules, func() limit.Instant { return w.now })
	return w
}

// swap puts rules in force at an instant. It reports whether the gate took them.
func (w *world) swap(rules *limit.Rules, at limit.Instant) bool {
	w.now = max(w.now, at)
	return w.gate.Swap(rules)
}

func (w *world) room(name string) *limit.Subject {
	s := w.rooms[name]
	if s == nil {
		s = &limit.Subject{Scope: limit.ScopeRoom}
		w.rooms[name] = s
	}
	return s
}

// shared adds the buckets of the room and of all rooms, as far as the gate was asked about them.
func (w *world) shared(k *kind) {
	if k.asked(limit.ScopeRoom) {
		w.asked = append(w.asked, w.room(k.Room))
	}
	if k.asked(limit.ScopeGlobal) {
		w.asked = append(w.asked, &w.global)
	}
}

// selves are one user's buckets in one world.
type selves struct {
	user  limit.Subject
	seats map[string]*limit.Subject
	conns map[connKey]*limit.Subject
}

type connKey struct {
	node    string
	ordinal uint16
}

func newSelves() *selves {
	return &selves{
		user: limit.Subject{Scope: limit.ScopeUser}, seats: map[string]*limit.Subject{}, conns: map[connKey]*limit.Subject{},
	}
}

func (s *selves) seat(room string) *limit.Subject {
	at := s.seats[room]
	if at == nil {
		at = &limit.Subject{Scope: limit.ScopeUserRoom}
		s.seats[room] = at
	}
	return at
}

func (s *selves) conn(key connKey) *limit.Subject {
	at := s.conns[key]
	if at == nil {
		at = &limit.Subject{Scope: limit.ScopeConn}
		s.conns[key] = at
	}
	return at
}

// ask puts one request of a sampled user to the gate.
func (w *world) ask(at limit.Instant, q *limit.Request, k *kind, by *selves, conn connKey) limit.Decision {
	w.now = max(w.now, at)
	w.asked = w.asked[:0]
	if k.asked(limit.ScopeConn) {
		w.asked = append(w.asked, by.conn(conn))
	}
	if k.asked(limit.ScopeUser) {
		w.asked = append(w.asked, &by.user)
	}
	if k.asked(limit.ScopeUserRoom) {
		w.asked = append(w.asked, by.seat(k.Room))
	}
	w.shared(k)
	if len(w.asked) == 0 {
		return limit.Decision{Counted: q.Cost}
	}
	return w.decide(at, q)
}

// decide asks. Who came is gone at once: nobody has recorded when it went.
func (w *world) decide(at limit.Instant, q *limit.Request) limit.Decision {
	d := w.gate.Decide(at, q, w.asked...)
	if q.Action.Lasts() && d.Verdict != limit.Reject {
		w.gate.Release(at, q, w.asked...)
	}
	return d
}

// passKey is what the share let through by personal limits is measured for.
type passKey struct {
	room   string // empty for all rooms together
	role   string
	route  string
	action limit.Action
}

func (k *kind) pass(room string) passKey {
	return passKey{room: room, role: k.Role, route: k.Route, action: k.Action}
}

// passage measures that share, and accumulates what of the unsampled load is due.
type passage struct {
	asked, passed         float64
	cost, costPassed      float64
	dueCount, dueCostPart float64
}

const (
	// passMemory is after how many requests older ones weigh half.
	passMemory = 1024
	// passPrior is how many requests of all rooms a room's own are mixed with.
	passPrior = 20
)

func (w *world) passage(key passKey) *passage {
	p := w.passes[key]
	if p == nil {
		p = &passage{}
		w.passes[key] = p
	}
	return p
}

// passages are those of one kind: of all rooms together, and of its own.
type passages struct{ all, own *passage }

// bind looks the passages of a recording's kinds up, once.
func (w *world) bind(kinds []kind) {
	w.bound = w.bound[:0]
	for i := range kinds {
		k := &kinds[i]
		w.bound = append(w.bound, passages{w.passage(k.pass("")), w.passage(k.pass(k.Room))})
	}
}

// measure notes what the personal limits made of a sampled user's request.
func (p passages) measure(cost int64, passed bool, costPassed int64) {
	p.own.measure(cost, passed, costPassed)
	if p.all != p.own {
		p.all.measure(cost, passed, costPassed)
	}
}

func (p *passage) measure(cost int64, passed bool, costPassed int64) {
	if p.asked >= passMemory {
		p.asked, p.passed, p.cost, p.costPassed = p.asked/2, p.passed/2, p.cost/2, p.costPassed/2
	}
	p.asked++
	p.cost += float64(cost)
	if passed {
		p.passed++
		p.costPassed += float64(costPassed)
	}
}

// through returns the share of requests that pass, and for those the share of the cost.
func (p passages) through() (requests, cost float64) {
	all, own := p.all, p.own
	if all.asked == 0 {
		return 1, 1
	}
	mix := func(n, of, nAll, ofAll float64) float64 {
		prior := 1.0
		if ofAll > 0 {
			prior = nAll / ofAll
		}
		scale := passPrior / max(own.asked, 1) * max(of, 1) // in units of the denominator
		return (n + scale*prior) / (of + scale)
	}
	requests = mix(own.passed, own.asked, all.passed, all.asked)
	total := mix(own.costPassed, own.cost, all.costPassed, all.cost)
	if requests > 0 {
		cost = min(total/requests, 1)
	}
	return requests, cost
}

// press lets one request of the unsampled load at the shared buckets, when its turn has come.
func (w *world) press(at limit.Instant, k *kind, pass passages, cost float64, audience uint32) {
	w.now = max(w.now, at)
	w.asked = w.asked[:0]
	w.shared(k)
	if len(w.asked) == 0 {
		return
	}
	p := pass.own
	requests, part := pass.through()
	p.dueCount += requests
	if p.dueCount < 1 {
		return
	}
	p.dueCount--
	p.dueCostPart += cost * part
	whole := int64(p.dueCostPart + 1e-9)
	p.dueCostPart -= float64(whole)
	w.decide(at, &limit.Request{
		Action: k.Action, Route: k.Route, Cost: whole, Role: k.Role, Room: k.Room, Audience: int(audience),
	})
}
