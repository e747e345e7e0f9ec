package limit

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// maxVersion leaves room to count on, and is exact in every JSON reader.
const maxVersion = 1 << 53

// Compile checks the whole set and makes it ready for a Gate. The error is
// Faults, all of them. An action without a rule for everybody gets the default
// rule, so that nothing passes because nobody thought of it.
func (s *Spec) Compile() (*Rules, error) {
	var faults Faults
	out := &Rules{
		version: s.Version,
		classes: s.roleClasses(&faults),
		where:   &conditions{},
		routes:  map[string]*lists{},
		byName:  map[string]*rule{},
	}
	if s.Version < 0 || s.Version > maxVersion {
		faults.add("version", "want 0 to %d, have %d", int64(maxVersion), s.Version)
	}
	if len(s.Rules) > maxRules {
		faults.add("rules", "want at most %d, have %d", maxRules, len(s.Rules))
	}
	compiled := make([]*rule, 0, len(s.Rules))
	for i := range s.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		spec := s.Rules[i]
		if spec.Share != "" {
			spec = s.share(spec, path, &faults)
		}
		r := compileRule(spec, path, out.classes, &faults)
		out.where.compile(r, path+".where", &faults)
		if _, taken := out.byName[r.name]; taken {
			faults.add(path+".name", "%q is taken by an earlier rule", r.name)
		}
		out.byName[r.name] = r
		compiled = append(compiled, r)
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	for _, r := range defaultRules(compiled, out.classes) {
		out.byName[r.name] = r
		compiled = append(compiled, r)
	}
	out.place(compiled)
	return out, nil
}

// maxRules bounds a set.
const maxRules = 1000

// maxClasses is the number of roles that a set may name, plus the rest.
const maxClasses = 64

// roleClasses numbers the roles that the rules tell apart.
func (s *Spec) roleClasses(faults *Faults) []string {
	classes := []string{""}
	add := func(role string) {
		if !slices.Contains(classes, role) {
			classes = append(classes, role)
		}
	}
	for _, r := range s.Rules {
		for _, role := range r.Role {
			add(role)
		}
		for _, role := range r.Exempt.Roles {
			add(role)
		}
		for _, role := range sortedKeys(r.Multiply) {
			add(role)
		}
	}
	if len(classes) > maxClasses {
		faults.add("rules", "want at most %d roles told apart, have %d", maxClasses-1, len(classes)-1)
		return classes[:maxClasses]
	}
	return classes
}

// place sorts the rules into lists and gives them their cells.
func (r *Rules) place(rules []*rule) {
	slices.SortFunc(rules, func(a, b *rule) int {
		return cmp.Or(
			cmp.Compare(a.scope, b.scope),
			cmp.Compare(b.rank.specific, a.rank.specific),
			cmp.Compare(b.rank.priority, a.rank.priority),
			strings.Compare(a.name, b.name),
		)
	})
	for a := range actionCount {
		r.actions[a] = r.newLists(a.String())
	}
	for scope := range r.scopes {
		r.scopes[scope] = scopeRules{cells: epochCell + 1, anew: true, reach: maxSpanUnits}
	}
	for _, c := range rules {
		s := &r.scopes[c.scope]
		c.cell = s.cells
		s.rules = append(s.rules, c)
		s.cells += c.width()
		s.reach = min(s.reach, c.reach())
		if c.quota != nil {
			c.quota.first = s.parts
			s.parts += len(c.quota.floors)
		}
		s.anew = s.anew && c.tiers == nil && c.spec.Initial == nil
		for _, name := range c.spec.Action {
			r.listsNamed(name).add(c)
		}
	}
}

func (r *Rules) newLists(name string) *lists {
	l := &lists{name: name, id: len(r.every)}
	r.every = append(r.every, l)
	return l
}

func (r *Rules) listsNamed(name string) *lists {
	action, route, _ := parseAction(name)
	if route == "" {
		return r.actions[action]
	}
	l := r.routes[route]
	if l == nil {
		l = r.newLists(name)
		r.routes[route] = l
	}
	return l
}

func (l *lists) add(r *rule) {
	of := &l.of[r.scope]
	of.rules = append(of.rules, r)
	of.grouped = of.grouped || r.rank != of.rules[0].rank || r.rank.specific != 0
	if of.grouped || !r.plain {
		l.special |= 1 << r.scope
	}
	if r.quota != nil {
		l.shared |= 1 << r.scope
	}
}

// defaultRules returns the rules that cover the actions for which no rule
// applies to everybody: one for each scope that a caller may come with. An API
// call comes with one of key, user and address alone, so each must have one.
func defaultRules(rules []*rule, classes []string) []*rule {
	covered := func(action Action, scopes ...Scope) bool {
		return slices.ContainsFunc(rules, func(r *rule) bool {
			return r.rank.specific == 0 && !r.shadow && slices.Contains(scopes, r.scope) &&
				slices.Contains(r.spec.Action, action.String())
		})
	}
	everywhere := []Scope{ScopeConn, ScopeKey, ScopeUser, ScopeUserRoom, ScopeIP, ScopeNet, ScopeRoom, ScopeGlobal, ScopeNetRoom}
	var open StringList
	for action := range API {
		if !covered(action, everywhere...) {
			open = append(open, action.String())
		}
	}
	var added []*rule
	for _, scope := range []Scope{ScopeConn, ScopeKey, ScopeUser, ScopeIP} {
		actions := slices.Clone(open)
		if scope == ScopeUser && !covered(Event, everywhere...) { // who sends it has no connection, and pays by no key
			actions = append(actions, Event.String())
		}
		if scope != ScopeConn && !covered(API, scope, ScopeGlobal) {
			actions = append(actions, API.String())
		}
		if len(actions) > 0 {
			spec := Rule{Name: "default-" + scope.String(), Action: actions, Scope: scope.String(), Limit: Limit{Rate: 10, Burst: 20}}
			added = append(added, compileRule(spec, "", classes, new(Faults)))
		}
	}
	return added
}

//go:embed default.yaml
var defaultText []byte

// Default returns the rules that ship, a copy of its own for each caller.
func Default() *Spec {
	spec, err := Parse(defaultText)
	if err != nil {
		panic("limit: default.yaml: " + err.Error())
	}
	return spec
}
