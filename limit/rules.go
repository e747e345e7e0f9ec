package limit

import "maps"

// Rules is a compiled rule set: immutable, safe for use by any number of
// goroutines. A Gate puts it in force.
type Rules struct {
	version int64
	classes []string    // role names; class 0 is every other role
	where   *conditions // of all rules
	scopes  [scopeCount]scopeRules
	actions [actionCount]*lists
	routes  map[string]*lists
	every   []*lists // those of actions and routes, by id
	byName  map[string]*rule
}

// scopeRules is what a subject of the scope keeps.
type scopeRules struct {
	rules []*rule
	cells int // the epoch's included
	// anew means that a full subject is the same as a new one.
	anew bool
	// parts is how many a subject has for its rules with cluster: true.
	parts int
	// reach is the smallest of the rules' reaches, in nanoseconds.
	reach int64
}

// lists holds the rules asked for one action, by scope, in order.
type lists struct {
	of [scopeCount]list
	// name is the action's, with the template for a route.
	name string
	// id numbers the lists of a set, from 0.
	id int
	// special is the bit set of scopes with a rule that is not plain, or
	// with rules of unequal rank.
	special uint16
	// shared is the bit set of scopes to be asked with the other nodes in mind:
	// with a rule of cluster: true.
	shared uint16
}

// list is sorted by specificity, priority and name.
type list struct {
	rules []*rule
	// grouped lists hold rules of unequal rank or with patterns: only the
	// first group of equal rank in which a rule matches applies.
	grouped bool
}

// Version returns the set's version.
func (r *Rules) Version() int64 { return r.version }

// WithVersion returns the same rules as another version, 0 to 2^53: one is
// given when a set is stored, and it need not be compiled again for that.
func (r *Rules) WithVersion(version int64) *Rules {
	out := *r
	out.version = version
	return &out
}

// Rule returns the rule of that name as it was written, with defaults filled
// in, and whether there is one.
func (r *Rules) Rule(name string) (Rule, bool) {
	c, ok := r.byName[name]
	if !ok {
		return Rule{}, false
	}
	return *c.spec, true
}

// All returns every rule as it was written, with defaults filled in, in the
// order in which decisions ask: by scope, then most specific first, then
// priority, then name.
func (r *Rules) All() []Rule {
	var all []Rule
	for _, s := range r.scopes {
		for _, c := range s.rules {
			all = append(all, *c.spec)
		}
	}
	return all
}

// Asks tells whether the set has a rule for the action by that scope, so that
// a caller need not look up a subject that no rule asks. A route may have rules
// of its own, hence for API the answer is about all routes together.
func (r *Rules) Asks(a Action, s Scope) bool {
	if len(r.actions[a].of[s].rules) > 0 {
		return true
	}
	if a == API {
		for _, l := range r.routes {
			if len(l.of[s].rules) > 0 {
				return true
			}
		}
	}
	return false
}

// Names returns the set of rule names.
func (r *Rules) Names() map[string]bool {
	names := make(map[string]bool, len(r.byName))
	for name := range maps.Keys(r.byName) {
		names[name] = true
	}
	return names
}
