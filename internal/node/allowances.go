package node

import (
	"slices"
	"sync/atomic"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// allowances tells what a welcome says about limits: for each action the rule that a user meets first. Rules for single
// rooms are left out, since a page explains the usual case. The answer is worked out once per rule set.
type allowances struct {
	gate   *limit.Gate
	cached atomic.Pointer[allowed]
}

// allowed is the answer for one rule set.
type allowed struct {
	rules  *limit.Rules
	byRole map[protocol.Role]map[string]protocol.Allowance
}

// of implements room.Config.Allowances.
func (a *allowances) of(_ string, role protocol.Role) map[string]protocol.Allowance {
	rules := a.gate.Rules()
	c := a.cached.Load()
	if c == nil || c.rules != rules {
		c = allowedBy(rules)
		a.cached.Store(c)
	}
	return c.byRole[role]
}

func allowedBy(rules *limit.Rules) *allowed {
	c := &allowed{rules: rules, byRole: map[protocol.Role]map[string]protocol.Allowance{}}
	all := rules.All()
	for _, role := range []protocol.Role{protocol.RoleViewer, protocol.RoleHost, protocol.RoleModerator, protocol.RoleService, protocol.RoleAdmin} {
		c.byRole[role] = map[string]protocol.Allowance{}
		for _, action := range []limit.Action{limit.Danmaku, limit.Gift, limit.Like} {
			for _, scope := range []limit.Scope{limit.ScopeUserRoom, limit.ScopeUser, limit.ScopeConn} { // closest first
				if r, ok := first(all, scope, action, role); ok {
					c.byRole[role][action.String()] = allowance(r, role)
					break
				}
			}
		}
	}
	return c
}

// first returns the rule that is asked first of those that hold in any room.
func first(all []limit.Rule, scope limit.Scope, action limit.Action, role protocol.Role) (limit.Rule, bool) {
	i := slices.IndexFunc(all, func(r limit.Rule) bool {
		return r.Scope == scope.String() && r.Room == "" && !r.Shadow && slices.Contains(r.Action, action.String()) &&
			(len(r.Role) == 0 || slices.Contains(r.Role, string(role))) && !slices.Contains(r.Exempt.Roles, string(role))
	})
	if i < 0 {
		return limit.Rule{}, false
	}
	return all[i], true
}

func allowance(r limit.Rule, role protocol.Role) protocol.Allowance {
	times := max(1, r.Multiply[string(role)])
	per := time.Duration(r.Per)
	if per == 0 {
		per = time.Second
	}
	return protocol.Allowance{PerSecond: float64(r.Rate*times) / per.Seconds(), Burst: r.Burst * times}
}
