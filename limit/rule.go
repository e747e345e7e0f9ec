package limit

import (
	"net/netip"
	"slices"
	"strings"
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
	roles    uint64 // role classes the rule is for; all bits when it names none
	room     string
	exempt   uint64 // role classes
	users    map[string]struct{}
	networks []netip.Prefix
}

// rank orders rules for the same scope and action: the greatest that matches
// applies.
type rank struct {
	specific int
	priority int64
}

// matches tells whether the rule is for this room and role.
func (r *rule) matches(class uint8, room string) bool {
	return r.roles>>class&1 == 1 && (r.room == "" || matchRoom(r.room, room))
}

// exempts tells whether the rule passes this request over.
func (r *rule) exempts(class uint8, q *Request) bool {
	if r.exempt>>class&1 == 1 {
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
