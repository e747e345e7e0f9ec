package limit

import "time"

// Own is a subject's own bucket of a rule that nodes share, as its [Part] sees it: the level while this node has the whole
// bucket, this node's part of it in an outage, and otherwise what is left as far as this node knows, for an outage to begin
// from. Amounts are shares. The caller holds its lock, and has it from the Part's methods.
type Own struct {
	// Key names the bucket to all nodes; fixed.
	Key string
	// Quota is what the rule grants, Floor how many tokens the Part leaves in the bucket.
	Quota *Quota
	Floor int64

	subject  *Subject // fixed
	rule     *rule
	detached bool
}

// LockSubject takes the subject's lock and brings it to the rules in force.
func (o *Own) LockSubject() {
	o.subject.lock()
	if o.subject.gen != nil {
		o.subject.catchUpLocked()
	}
}

// UnlockSubject gives the lock back.
func (o *Own) UnlockSubject() { o.subject.mu.Unlock() }

// Renew puts the numbers of another in force, of the same subject and key.
func (o *Own) Renew(next Own) { o.Quota, o.Floor, o.rule = next.Quota, next.Floor, next.rule }

// Detach parts it from its subject for good: from then on its level is 0, and nothing changes it.
func (o *Own) Detach() { o.detached = true }

// Detached tells whether the subject has let go of its Part.
func (o *Own) Detached() bool { return o.detached }

// Forget parts it from its subject, which asks for a new Part when it needs one.
func (o *Own) Forget() {
	h := o.subject.sharing
	h.parts[o.place()] = nil
	o.Detach()
	for _, p := range h.parts {
		if p != nil {
			return
		}
	}
	o.subject.sharing = nil
}

// place is where the Part stands among its subject's.
func (o *Own) place() int { return o.Quota.first + o.Quota.floorAt(o.Floor) }

// cells returns the rule's cells and an instant on their axis, nil when the subject has none.
func (o *Own) cells(now Instant) (c []int64, at int64) {
	s := o.subject
	if o.detached || s.gen == nil {
		return nil, 0
	}
	at = s.atLocked(now)
	return s.cells[o.rule.cell:], at
}

// Level is what the bucket holds, rounded down, at most the size.
func (o *Own) Level(now Instant) int64 {
	c, at := o.cells(now)
	if c == nil {
		return 0
	}
	m := o.rule.meter
	return scale(max(m.level(c, at), 0), o.Quota.Scale, m.shares(c).whole, 0)
}

// SetLevel brings the bucket to a level; one of a window is only ever lowered.
func (o *Own) SetLevel(now Instant, level int64) {
	c, at := o.cells(now)
	if c == nil {
		return
	}
	m := o.rule.meter
	whole := m.shares(c).whole
	if level < 0 {
		setLevel(m, c, at, -scale(-level, whole, o.Quota.Scale, 1))
		return
	}
	setLevel(m, c, at, scale(level, whole, o.Quota.Scale, 0))
}

// Spend takes so many tokens of a class of roles that were spent elsewhere, as far as they are there.
func (o *Own) Spend(now Instant, tokens int64, class uint8) {
	if c, at := o.cells(now); c != nil {
		m := o.rule.meter
		m.take(c, at, min(tokens*m.shares(c).unit[class], max(m.level(c, at), 0)))
	}
}

// Divide turns the bucket into the part of one of so many nodes, which holds at most known. The part is kept in the whole
// bucket's numbers: every cost counts times the nodes.
func (o *Own) Divide(now Instant, nodes, known int64) {
	c, at := o.cells(now)
	if c == nil {
		return
	}
	m := o.rule.meter
	units := m.shares(c)
	level := scale(max(m.level(c, at), 0), nodes, 1, 0)
	setLevel(m, c, at, min(level, scale(max(known, 0), units.whole, o.Quota.Scale, 0), units.size))
}

// Lack is what the bucket lacks, rounded up.
func (o *Own) Lack(now Instant) int64 {
	c, at := o.cells(now)
	if c == nil {
		return 0
	}
	m := o.rule.meter
	units := m.shares(c)
	return scale(max(units.size-m.level(c, at), 0), o.Quota.Scale, units.whole, 1)
}

// AskPart tells what the part of one of so many nodes says: it grants at least one token whenever nothing was taken.
func (o *Own) AskPart(a Ask, nodes int64) Grant {
	c, at := o.cells(a.Now)
	m := o.rule.meter
	g := Grant{From: FromPart, Cost: a.Cost, Unit: o.Unit(a)}
	units := m.shares(c)
	if o.Quota.Kind == KindSlots {
		free := m.level(c, at)
		if busy := units.size - free; busy > 0 && (busy+1)*nodes > units.size {
			g.refuse(m.wait(c, at, free+1))
		}
		return g
	}
	reserve := o.Floor * units.whole
	whole, level := units.size-reserve, m.level(c, at)-reserve
	each := scale(g.Unit, nodes, 1, 0)
	if o.Quota.Fold {
		fits := max(level, 0) / each
		if fits == 0 && level >= whole {
			fits = 1
		}
		g.fold(fits)
		return g
	}
	switch need := min(scale(a.Cost, each, 1, 0), whole); {
	case a.Cost == 0:
	case a.Cost > whole/g.Unit:
		g.refuse(Never)
	case level < need:
		g.refuse(m.wait(c, at, need+reserve))
	default:
		g.Left = (level - need) / nodes
	}
	return g
}

// TakePart spends what AskPart granted, and returns how much that was of the whole bucket.
func (o *Own) TakePart(a Ask, from Source, nodes int64) int64 {
	take := a.Cost * o.Unit(a)
	c, at := o.cells(a.Now)
	m := o.rule.meter
	spent := scale(take, o.Quota.Scale, m.shares(c).whole, 1)
	switch {
	case from == FromNowhere:
		take = min(take, max(m.level(c, at), 0))
	case o.Quota.Kind != KindSlots:
		take = scale(take, nodes, 1, 0)
	}
	m.take(c, at, take)
	return spent
}

// Unit is what a token costs in the bucket's own numbers, which Grant.Unit of a part is in.
func (o *Own) Unit(a Ask) int64 {
	c, at := o.cells(a.Now)
	if o.rule.tiers != nil {
		o.rule.tiers.adapt(c, a.Audience, at)
	}
	return o.rule.meter.shares(c).unit[a.Class]
}

// WantedTier is the tier that an audience asks for by itself; stay is false when it is beyond the bounds of the tier in
// force, below 0 for none, by the margin.
func (o *Own) WantedTier(inForce int, audience int64) (want int, stay bool) {
	m := o.rule.tiers
	if m == nil {
		return 0, true
	}
	want = int(m.tierFor(audience))
	if inForce < 0 || inForce >= len(*m) {
		return want, true
	}
	return want, !m.beyond(int64(inForce), audience)
}

// SetTier puts a tier in force.
func (o *Own) SetTier(now Instant, to int) {
	c, at := o.cells(now)
	m := o.rule.tiers
	if c == nil || m == nil {
		return
	}
	switch was := c[tierCell]; was {
	case int64(to):
	case noTier:
		c[tierCell] = int64(to)
		m.rate(c).start(c, 0)
		m.rate(c).back(c, at)
	default:
		m.change(c, int64(to), at)
	}
	c[askedCell] = settled
}

// refuse turns the grant into a refusal for a while.
func (g *Grant) refuse(wait time.Duration) { g.Verdict, g.Cost, g.Wait = Reject, 0, wait }

// fold grants as much of the cost as fits.
func (g *Grant) fold(fits int64) {
	if fits < g.Cost {
		g.Verdict, g.Cost = Degrade, fits
	}
}
