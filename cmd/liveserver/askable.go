package main

import (
	"fmt"
	"slices"
	"strings"

	"liveroom/limit"
)

// askable lists, for the actions that this server asks few scopes about, which those are. A rule for another scope would
// never be asked, and its author would never learn it.
var askable = map[string][]string{
	limit.Frame.String():   {limit.ScopeConn.String()},
	limit.Connect.String(): {limit.ScopeIP.String(), limit.ScopeNet.String()},
}

// checkAskable returns a fault for each rule that this server would never ask.
func checkAskable(rules []limit.Rule) limit.Faults {
	var faults limit.Faults
	for i, r := range rules {
		for _, action := range r.Action {
			if scopes, few := askable[action]; few && !slices.Contains(scopes, r.Scope) {
				faults = append(faults, limit.Fault{
					Path:    fmt.Sprintf("rules[%d].scope", i),
					Problem: fmt.Sprintf("%q is never asked about %s; want %s", r.Scope, action, strings.Join(scopes, " or ")),
				})
			}
		}
	}
	return faults
}
