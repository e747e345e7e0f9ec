package limit

import (
	"slices"
	"time"
)

// Sharer makes the rules with cluster: true of a Gate hold over several nodes;
// package cluster has one. It is safe for concurrent use.
type Sharer interface {
	// Part returns a subject's part in the bucket that nodes share. It is called
	// once for each rule and subject, whose lock is held, and does not wait.
	Part(Own) Part
	// Budget is how long a decision may wait for an answer that is Pending, over
	// all of its rules.
	Budget() time.Duration
}

// Part is a subject's part in one bucket that nodes share. Its methods are
// called with the subject locked, and do not wait.
type Part interface {
	// Ask tells what the bucket says to a request, and spends nothing. The same
	// question has the same answer at the same instant.
	Ask(Ask) Grant
	// Take spends the cost, which Ask has granted, from there.
	Take(Ask, Source)
	// Await has the answer asked for that a Grant is Pending. What it returns is
	// closed when there is one; the ticket, if any, is of the Asks after that.
	Await(Ask, Grant) (answered <-chan struct{}, ticket int64)

	// Follow puts other numbers in force, of a rule that counts alike.
	Follow(Own)
	// Rest tells whether nothing that this node knows or holds is lost with the
	// Part, whose own bucket is full.
	Rest(now Instant) bool
	// Leave gives back what this node alone has; see Subject.Leave.
	Leave(now Instant)
	// Drop gives everything back. The Part is not used any more.
	Drop()
	// Fill has the bucket filled for all nodes; see Subject.Reset.
	Fill()
	// Stand fills in what is known of the bucket; see Gate.Explain.
	Stand(Ask, *Standing)
}

// SlotPart is the Part of a rule that counts slots.
type SlotPart interface {
	Part
	// Abandon ends a ticket: what was not taken goes back.
	Abandon(ticket int64)
	// Release gives back a slot that was taken by a decision of that instant.
	Release(taken, now Instant)
}

// Ask is a question to a Part.
type Ask struct {
	// Now is the instant of the question, First that of the decision's first one.
	Now, First Instant
	// Cost is in tokens, of a class of roles.
	Cost  int64
	Class uint8
	// Audience is how many are in the room, for Quota.Tiers.
	Audience int64
	// Again tells that the same request has asked before, Last that no time is
	// left to wait.
	Again, Last bool
	// Ticket is what Await returned to this decision, 0 for none.
	Ticket int64
}

// Grant is the answer of a Part.
type Grant struct {
	// Verdict is Allow, Degrade where a rule that folds grants a part of the
	// cost, or Reject.
	Verdict Verdict
	// From tells where the tokens come from.
	From Source
	// Pending tells that only the other nodes know. Left then is the least that
	// is of use, in shares.
	Pending bool
	// Away tells that nobody could say: a rejection is not for want of tokens.
	Away bool
	// Cost is the tokens to spend, Unit what each costs, Left what stays, in one
	// and the same unit.
	Cost, Unit, Left int64
	// Wait is after how long a rejected request may be granted.
	Wait time.Duration
	// Since is from when on what is granted counts.
	Since Instant
}

// Source is where a Grant's tokens come from.
type Source uint8

// The sources.
const (
	FromOwn     Source = iota // the subject's own bucket is asked, as on a node alone
	FromHand                  // what this node holds
	FromPart                  // this node's part, in an outage
	FromNowhere               // at an outage's beginning
)

// sharing is what a subject has in common with the same subject on other
// nodes. Its subject's mu guards it.
type sharing struct {
	id    string
	rules *Rules // that the parts are of
	parts []Part // as Own.place tells; nil until asked
}

// Share makes the Gate's rules with cluster: true hold over all nodes of s. It
// is called before the first decision, once at most.
func (g *Gate) Share(s Sharer) {
	g.sharer = s
	g.current.Load().shared = ^uint16(0)
}

// shareLocked has the subjects take part that a shared rule asks, as far as the request
// says whose they are.
func shareLocked(l *lists, q *Request, subjects []*Subject) {
	for _, s := range subjects {
		if l.shared>>s.Scope&1 == 0 || s.sharing != nil {
			continue
		}
		if id := sharedID(s.Scope, q); id != "" {
			s.sharing = &sharing{id: id, rules: s.gen.rules, parts: make([]Part, s.gen.rules.scopes[s.Scope].parts)}
		}
	}
}

// own is a subject's own bucket of a rule, for one of its floors.
func (h *sharing) own(s *Subject, r *rule, floor int64) Own {
	return Own{Key: sharedKey(h.id, r.quota), Quota: r.quota, Floor: floor, subject: s, rule: r}
}

// part returns the Part of a rule for an action.
func (t *trial) part(s *Subject, r *rule, a Action) Part {
	floor := int(r.quota.floorOf[a])
	p := &s.sharing.parts[r.quota.first+floor]
	if *p == nil {
		*p = t.sharer.Part(s.sharing.own(s, r, r.quota.floors[floor]))
	}
	return *p
}

// savedAnswers is how many rules that nodes share a usual message meets.
const savedAnswers = 4

// askShared writes into a what a rule with cluster: true says to a request.
func (t *trial) askShared(s *Subject, r *rule, at int64, q *Request, a *answer) {
	i := t.asked
	t.asked++
	if t.spending && i < savedAnswers {
		*a = t.saved[i]
		return
	}
	t.askPart(s, r, at, q, a)
	if i < savedAnswers {
		t.saved[i].keep(a)
	}
}

// askPart asks the subject's part, and notes what cannot be told without asking
// the other nodes.
func (t *trial) askPart(s *Subject, r *rule, at int64, q *Request, a *answer) {
	if r.spares && r.exempts(t.class, q) {
		*a = answer{outcome: outcomeExempt}
		return
	}
	cells, cost := s.cells[r.cell:], r.cost(q)
	p, ask := t.part(s, r, q.Action), t.question(q, cost)
	if t.tickets != nil {
		ask.Ticket = t.ticketOf(p)
	}
	g := p.Ask(ask)
	if g.From == FromOwn {
		a.from, a.away = FromOwn, false
		grant(r.meter, cells, at, cost, r.floor[q.Action], t.class, r.fold, a)
	} else {
		a.outcome, a.from, a.away, a.cost, a.unit, a.left, a.wait = outcome(g.Verdict), g.From, g.Away, g.Cost, g.Unit, g.Left, g.Wait
		t.at = max(t.at, g.Since)
		if g.Pending {
			a.left = 0
			t.misses = append(t.misses, miss{p, ask, g})
		}
	}
	if r.second != nil || r.shadow {
		r.finish(cells, at, cost, t.class, a)
	}
}

func (t *trial) question(q *Request, cost int64) Ask {
	return Ask{
		Now: t.now, First: t.first, Cost: cost, Class: t.class, Audience: int64(q.Audience),
		Again: t.spending || t.first != t.now || t.verdict == Reject, Last: t.last,
	}
}

// spendShared takes what an answer grants from where it comes.
func (t *trial) spendShared(s *Subject, r *rule, at int64, q *Request, a *answer) {
	cells := s.cells[r.cell:]
	if a.cost == 0 || a.from == FromOwn || !r.fold && (a.outcome == outcomeDegrade || a.outcome == outcomeShadowDegrade) {
		r.spend(cells, at, a)
		return
	}
	p, ask := t.part(s, r, q.Action), t.question(q, a.cost)
	if t.tickets != nil {
		ask.Ticket = t.ticketOf(p)
	}
	p.Take(ask, a.from)
}

// miss is what only other nodes can answer.
type miss struct {
	part  Part
	ask   Ask
	grant Grant
}

// ticket is what a Part knows this decision by.
type ticket struct {
	part   SlotPart
	number int64
}

func (t *trial) ticketOf(p Part) int64 {
	for _, k := range t.tickets {
		if Part(k.part) == p {
			return k.number
		}
	}
	return 0
}

// decideShared decides where rules hold over all nodes; it has the subjects'
// locks and gives them up. What everything in memory would allow, and only
// that, waits for the other nodes.
func (g *Gate) decideShared(gen *generation, l *lists, now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	shareLocked(l, q, subjects)
	var t trial
	t.begin(g, gen, l, now, q)
	t.run(q, subjects, scopes)
	if t.misses != nil && t.verdict != Reject {
		g.decideWaiting(&t, now, q, subjects, scopes, d)
		return
	}
	t.decision(d)
	leave(q, subjects, d)
}

// decideWaiting asks again whenever there is an answer, until nothing is
// lacking or the budget is used up.
func (g *Gate) decideWaiting(t *trial, now Instant, q *Request, subjects []*Subject, scopes uint16, d *Decision) {
	began, budget := g.clock(), g.sharer.Budget()
	w := waiting{gate: g, began: began, budget: budget, timer: time.NewTimer(budget)}
	defer w.timer.Stop()
	var tickets []ticket
	for {
		waits := t.await(&tickets)
		unlock(subjects)
		over := slices.ContainsFunc(waits, w.over)
		again := g.clock()
		gen := g.lock(again, subjects)
		l := gen.rules.lists(q)
		shareLocked(l, q, subjects)
		*t = trial{}
		t.begin(g, gen, l, again, q)
		t.first, t.tickets, t.last = now, tickets, over || again.Sub(began) >= w.budget
		t.run(q, subjects, scopes)
		if t.misses == nil || t.verdict == Reject || t.last {
			break
		}
	}
	t.decision(d)
	for _, k := range tickets {
		k.part.Abandon(k.number)
	}
	leave(q, subjects, d)
}

// await says what is waited for while the locks are held.
func (t *trial) await(tickets *[]ticket) []<-chan struct{} {
	waits := make([]<-chan struct{}, 0, len(t.misses))
	for _, m := range t.misses {
		answered, number := m.part.Await(m.ask, m.grant)
		if number != 0 {
			*tickets = append(*tickets, ticket{m.part.(SlotPart), number})
		}
		waits = append(waits, answered)
	}
	return waits
}

// waiting is how long a decision waits.
type waiting struct {
	gate   *Gate
	began  Instant
	budget time.Duration
	timer  *time.Timer
}

// over waits for an answer and reports true when the budget is used up first.
// That may have grown: many may have come at once.
func (w *waiting) over(answered <-chan struct{}) bool {
	for !wait(answered, w.timer) {
		w.budget = max(w.budget, w.gate.sharer.Budget())
		left := w.budget - w.gate.clock().Sub(w.began)
		if left <= 0 {
			return true
		}
		w.timer.Reset(left)
	}
	return false
}

// wait waits for an answer and reports false when the time is over first.
func wait(answered <-chan struct{}, timer *time.Timer) bool {
	select {
	case <-answered:
		return true
	default:
	}
	select {
	case <-answered:
		return true
	case <-timer.C:
		return false
	}
}

// followLocked takes the parts over to other rules, before the subject's own
// buckets are. A rule that counts alike keeps its part.
func (h *sharing) followLocked(s *Subject, next *Rules) {
	parts := make([]Part, next.scopes[s.Scope].parts)
	for _, was := range h.rules.scopes[s.Scope].rules {
		if was.quota == nil {
			continue
		}
		for i, floor := range was.quota.floors {
			p, is, at := h.parts[was.quota.first+i], next.byName[was.name], -1
			if p == nil {
				continue
			}
			if is != nil && is.scope == was.scope && is.quota != nil && is.quota.suffix == was.quota.suffix {
				at = is.quota.floorAt(floor)
			}
			if at < 0 {
				p.Drop()
				continue
			}
			parts[is.quota.first+at] = p
			p.Follow(h.own(s, is, floor))
		}
	}
	h.parts, h.rules = parts, next
}

// each calls f for every part there is.
func (h *sharing) each(f func(Part)) {
	if h == nil {
		return
	}
	for _, p := range h.parts {
		if p != nil {
			f(p)
		}
	}
}

// restLocked tells whether nothing that this node knows or holds is lost when
// the subject is forgotten, whose own buckets are all full.
func (h *sharing) restLocked(now Instant) bool {
	rest := true
	h.each(func(p Part) { rest = rest && p.Rest(now) })
	return rest
}

// Leave gives buckets back that this node has claimed for the subject, as the
// owner does when a user's last session on this node ends. It does not wait.
// The subject goes on as it was; its next decision claims again.
func (s *Subject) Leave(now Instant) {
	s.lock()
	defer s.mu.Unlock()
	s.sharing.each(func(p Part) { p.Leave(now) })
}
