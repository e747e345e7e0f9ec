package limit

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"
)

// ErrNegativeCost tells of a request whose Cost is below zero.
var ErrNegativeCost = errors.New("limit: the cost is negative")

// Request is what is asked of a Gate.
type Request struct {
	// Action is what shall be done.
	Action Action
	// Route is the route's template when Action is API: the router's
	// pattern, never the raw path.
	Route string
	// Cost is what rules with cost "value" or "count" charge, >= 0: the value
	// of a gift, the number of taps. It costs nothing when 0. Other rules
	// charge one and do not look at it.
	Cost int64
	// Role, User, Room and Addr select rules and exemptions. They must come
	// from a verified identity, never from what the client merely says.
	Role string
	User string
	Room string
	Addr netip.Addr
	// Traits are the requester's attributes, for rules with where; nil for none.
	Traits *Traits
	// Key names an API key or a service, for rules of scope key that hold over
	// all nodes.
	Key string
	// Audience is how many are in the room, for tiers.
	Audience int
	// Crowd is how many of these the network around Addr has, for rules with sessions.
	Crowd int
}

// Decision is the answer of a Gate.
type Decision struct {
	// Verdict says whether the request goes ahead.
	Verdict Verdict
	// Scope and Rule name what decided: the rule that refuses for longest,
	// the one that degraded, else the one with the least left. Rule is empty
	// when every rule was exempt.
	Scope Scope
	Rule  string
	// RetryAfter is the exact wait after which the same request would not be
	// rejected if nobody else came, Never when no wait helps, 0 unless
	// rejected. Put jitter on it before a client sees it: see Jitter.
	RetryAfter time.Duration
	// At is when the tokens were taken: now, or later when a decision had to ask
	// other nodes' store first. By it, rules with cluster: true keep their bound.
	At Instant
	// Unavailable tells that a rejection is not for want of tokens: the store
	// of shared quotas is away and the rule says on_outage: closed.
	Unavailable bool
	// Remaining is how many more such tokens Rule grants at this instant
	// after this decision.
	Remaining int64
	// Delay is how long to hold the request before it goes ahead: 0 unless a
	// leaky bucket paces it.
	Delay time.Duration
	// Counted is how much of Request.Cost counts: all of it when allowed, a
	// part, perhaps 0, when a rule that folds degrades, 0 when rejected.
	Counted int64
}

// Err returns ErrNegativeCost when the verdict is Invalid, else nil.
func (d Decision) Err() error {
	if d.Verdict == Invalid {
		return ErrNegativeCost
	}
	return nil
}

// unjudged is the least wait told when a store is away.
const unjudged = time.Second

// Told is the wait that a client is told of a rejection: RetryAfter with jitter,
// a second at least of one that is Unavailable, Never when no wait helps.
func (d Decision) Told() time.Duration {
	switch {
	case d.RetryAfter == Never:
		return Never
	case d.Unavailable:
		return Jitter(max(d.RetryAfter, unjudged))
	}
	return Jitter(d.RetryAfter)
}

// The jitter's share of the wait, and its bounds.
const (
	jitterShare = 8
	minJitter   = 50 * time.Millisecond
	maxJitter   = 2 * time.Second
)

// Jitter returns what to tell a client in place of an exact wait: 1 ms more,
// and a random part of an eighth of the wait, or of 50 ms or 2 s where that
// eighth is less or more. So a thousand refused in the same instant do not
// come back in one. Never stays Never.
func Jitter(wait time.Duration) time.Duration {
	if wait >= Never-maxJitter {
		return Never
	}
	return wait + time.Millisecond + rand.N(min(max(wait/jitterShare, minJitter), maxJitter))
}
