package limit

import "strings"

// Action is what a request wants to do.
type Action uint8

// The actions of a live room. API stands for the HTTP calls; which one is told
// by Request.Route. A new one goes before actionCount: recordings of before
// know an action by its number.
const (
	Danmaku Action = iota
	Gift
	Like
	Join
	Connect
	Frame
	API
	Event // one of a platform's own making

	actionCount
)

var actionNames = [actionCount]string{"danmaku", "gift", "like", "join", "connect", "frame", "api", "event"}

// Messages returns the actions of what somebody who is in a room sends to all.
func Messages() []Action { return []Action{Danmaku, Gift, Like} }

// String returns the name that rules and metrics use.
func (a Action) String() string { return nameOf(actionNames[:], int(a)) }

// routePrefix starts the name of an action that is one HTTP route; the rest is
// the route's template, never a raw path.
const routePrefix = "api:"

// parseAction splits an action's name in a rule into the Action and, for one
// HTTP route, its template.
func parseAction(name string) (a Action, route string, ok bool) {
	if template, found := strings.CutPrefix(name, routePrefix); found {
		return API, template, template != ""
	}
	i, ok := indexOf(actionNames[:], name)
	return Action(i), "", ok
}

// ParseAction returns the Action of a name, as String gives it.
func ParseAction(name string) (Action, bool) {
	i, ok := indexOf(actionNames[:], name)
	return Action(i), ok
}

// Scope is whose bucket a rule fills. The order of the constants is the order
// in which a decision asks: what is cheap and personal first, what is shared
// and contended last.
type Scope uint8

// The scopes. ScopeIP is one address (/32) or one IPv6 subscriber (/64),
// ScopeNet the network around it (/24 and /48), ScopeKey one API key,
// ScopeNetRoom what one network has of one room. The last stands where no
// recording of before means another scope by its number.
const (
	ScopeConn Scope = iota
	ScopeKey
	ScopeUser
	ScopeUserRoom
	ScopeIP
	ScopeNet
	ScopeRoom
	ScopeGlobal
	ScopeNetRoom

	scopeCount
)

var scopeNames = [scopeCount]string{"conn", "key", "user", "user_room", "ip", "net", "room", "global", "net_room"}

// String returns the name that rules, answers and metrics use.
func (s Scope) String() string { return nameOf(scopeNames[:], int(s)) }

// ParseScope returns the Scope of a name, as String gives it.
func ParseScope(name string) (Scope, bool) {
	i, ok := indexOf(scopeNames[:], name)
	return Scope(i), ok
}

// Verdict is the answer to a request.
type Verdict uint8

// The verdicts, worst last. Degrade admits with less effect: only the sender
// sees the danmaku, or only Decision.Counted of the taps count. Invalid means
// that nothing was asked, because the request is malformed; see Decision.Err.
const (
	Allow Verdict = iota
	Degrade
	Reject
	Invalid

	verdictCount
)

var verdictNames = [verdictCount]string{"allow", "degrade", "reject", "invalid"}

// String returns the verdict's name in lower case.
func (v Verdict) String() string { return nameOf(verdictNames[:], int(v)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

func indexOf(names []string, name string) (int, bool) {
	for i, n := range names {
		if n == name {
			return i, true
		}
	}
	return 0, false
}
