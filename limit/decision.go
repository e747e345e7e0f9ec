package limit

import (
	"errors"
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
	// Key names an API key or a service, for rules of scope key that hold over
	// all nodes.
	Key string
	// Audience is how many are in the room, for tiers.
	Audience int
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
