package limit

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// rule is a Rule compiled: immutable, shared by all subjects and goroutines.
type rule struct {
	name  string
	scope Scope
	spec  *Rule

	// cell is where the rule's state begins among its subject's cells.
	cell int

	// plain rules are asked on the short path: an enforced token bucket that
	// concerns everybody, costs one, and knows no tier, floor or second bucket.
	// Its meter is main.
	plain bool
	main  rate

	meter     meter
	tiers     *tiered // the meter, when it follows the audience
	queue     *leaky  // the meter, when it paces
	second    *rate   // the degrade bucket
	quota     *Quota  // with cluster: true; asked when nodes share
	here      bool    // the meter is a presence, counted with the subject
	spares    bool    // exempts some
	byRequest bool    // costs Request.Cost, not one
	fold      bool
	shadow    bool
	floor     [actionCount]int64 // tokens kept from an action

	rank     rank
	where    uint64 // conditions that must hold
	roles    uint64 // role classes the rule is for; all bits when it names none
	room     string
	exempt   uint64 // role classes
	users    map[string]struct{}
	networks []netip.Prefix
	crowd    int64 // sessions below which a network is exempt
}

// rank orders rules for the same scope and action: the greatest that matches
// applies.
type rank struct {
	specific int
	priority int64
}

// matches tells whether the rule is for this room, role and attributes.
func (r *rule) matches(class uint8, traits uint64, room string) bool {
	return r.roles>>class&1 == 1 && r.where&^traits == 0 && (r.room == "" || matchRoom(r.room, room))
}

// exempts tells whether the rule passes this request over.
func (r *rule) exempts(class uint8, q *Request) bool {
	if r.exempt>>class&1 == 1 || r.crowd > int64(q.Crowd) {
		return true
	}
	if r.users != nil {
		if _, ok := r.users[q.User]; ok {
			return true
		}
	}
	return r.networks != nil && slices.ContainsFunc(r.networks, func(p netip.Prefix) bool {
		return p.Contains(q.Addr.Unmap())
	})
}

// cost returns what q pays in tokens.
func (r *rule) cost(q *Request) int64 {
	if r.byRequest {
		return q.Cost
	}
	return 1
}

// matchRoom tells whether room fits a pattern in which * is any run of
// characters. It takes time proportional to the product of the lengths at most.
func matchRoom(pattern, room string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == room
	}
	if !strings.HasPrefix(room, head) {
		return false
	}
	room = room[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(room, part)
		}
		i := strings.Index(room, part)
		if i < 0 {
			return false
		}
		room, rest = room[i+len(part):], more
	}
}

// answer is what one rule says.
type answer struct {
	outcome outcome
	from    Source
	away    bool  // refused because the store of shared quotas is away
	cost    int64 // tokens to spend
	unit    int64 // units that each of them costs
	left    int64 // units above the floor after that
	wait    time.Duration
}

// keep makes a copy field by field: one in wider steps would wait for the bytes just written.
func (a *answer) keep(b *answer) {
	a.outcome, a.from, a.away, a.cost, a.unit, a.left, a.wait = b.outcome, b.from, b.away, b.cost, b.unit, b.left, b.wait
}

// ask writes into a what the rule says to a request at that time, and changes
// no level. (An answer returned by value would cost more than the bucket.)
func (r *rule) ask(c []int64, at int64, class uint8, q *Request, a *answer) {
	if r.plain {
		r.main.one(c[0], at, class, a)
		return
	}
	if r.spares && r.exempts(class, q) {
		*a = answer{outcome: outcomeExempt}
		return
	}
	if r.tiers != nil {
		r.tiers.adapt(c, int64(q.Audience), at)
	}
	cost, floor := r.cost(q), r.floor[q.Action]
	a.away = false
	grant(r.meter, c, at, cost, floor, class, r.fold, a)
	r.finish(c, at, cost, class, a)
}

// finish turns to the degrade bucket after a refusal, and hides what a rule in
// shadow would do.
func (r *rule) finish(c []int64, at, cost int64, class uint8, a *answer) {
	if a.outcome == outcomeReject && r.second != nil {
		wait := a.wait
		grant(r.second, c[r.meter.width():], at, cost, 0, class, false, a)
		if a.outcome == outcomeAllow {
			a.outcome, a.away = outcomeDegrade, false
		}
		a.wait = min(a.wait, wait)
	}
	if r.shadow {
		a.outcome = a.outcome.shadow()
	}
}

// grant grants all of the cost above the floor or nothing, or, when it folds,
// as much of it as there is.
func grant(m meter, c []int64, at, cost, floor int64, class uint8, fold bool, a *answer) {
	s := m.shares(c)
	unit, reserve := s.unit[class], floor*s.whole
	level := m.level(c, at) - reserve
	a.outcome, a.cost, a.unit, a.left, a.wait = outcomeAllow, cost, unit, 0, 0
	switch {
	case fold:
		if a.cost = min(cost, max(level, 0)/unit); a.cost < cost {
			a.outcome = outcomeDegrade
		}
	case cost > s.most[class] || cost*unit > s.size-reserve:
		a.outcome, a.cost, a.wait = outcomeReject, 0, Never
		return
	case cost > 0 && cost*unit > level:
		a.outcome, a.cost, a.wait = outcomeReject, 0, m.wait(c, at, cost*unit+reserve)
		return
	}
	a.left = max(level-a.cost*unit, 0)
}

// spend takes what an answer grants, from the bucket that granted it.
func (r *rule) spend(c []int64, at int64, a *answer) {
	units := a.cost * a.unit
	switch {
	case units == 0:
	case !r.fold && (a.outcome == outcomeDegrade || a.outcome == outcomeShadowDegrade):
		r.second.take(c[r.meter.width():], at, units)
	default:
		r.meter.take(c, at, units)
	}
}

// width is the number of the rule's cells: its meter's, then its second's.
func (r *rule) width() int {
	if r.second != nil {
		return r.meter.width() + r.second.width()
	}
	return r.meter.width()
}

func (r *rule) reach() int64 {
	if r.second != nil {
		return min(r.meter.reach(), r.second.reach())
	}
	return r.meter.reach()
}

func (r *rule) start(c []int64, epoch Instant) {
	r.meter.start(c, epoch)
	if r.second != nil {
		r.second.start(c[r.meter.width():], epoch)
	}
}

func (r *rule) full(c []int64, at int64) bool {
	return r.meter.full(c, at) && (r.second == nil || r.second.full(c[r.meter.width():], at))
}

func (r *rule) shift(c []int64, ahead uint64) {
	r.meter.shift(c, ahead)
	if r.second != nil {
		r.second.shift(c[r.meter.width():], ahead)
	}
}

// takeOver fills started cells, whose epoch lies at of the old ones, with the
// levels of the rule of the same name in the set before.
func (r *rule) takeOver(c []int64, was *rule, old []int64, at int64) {
	takeOver(r.meter, c, was.meter, old, at)
	if r.second != nil && was.second != nil {
		takeOver(r.second, c[r.meter.width():], was.second, old[was.meter.width():], at)
	}
}
