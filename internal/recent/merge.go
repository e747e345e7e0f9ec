package recent

import (
	"cmp"
	"slices"
)

// Merge lays several nodes' traffic over one another, newest step on newest step. The changes are the first one's: each
// node puts the same sets in force.
func Merge(all ...Traffic) Traffic {
	if len(all) == 0 {
		return NewRing().Traffic()
	}
	out := all[0]
	out.Nodes = 0
	series, figures, top := map[key][]int64{}, map[string][]int64{}, map[string]Refused{}
	for _, t := range all {
		out.Nodes += t.Nodes
		for _, s := range t.Series {
			k := key{s.Rule, s.Scope, s.Action, s.Outcome}
			series[k] = add(series[k], s.N)
		}
		for name, n := range t.Figures {
			figures[name] = add(figures[name], n)
		}
		for _, u := range t.Top {
			top[u.User] = top[u.User].plus(u)
		}
	}
	out.Figures, out.Series, out.Top = figures, make([]Series, 0, len(series)), most(top)
	for k, n := range series {
		out.Series = append(out.Series, Series{k.rule, k.scope, k.action, k.outcome, n})
	}
	slices.SortFunc(out.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out
}

// add sums two columns that end with the same step.
func add(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := append([]int64{}, a[max(0, len(a)-Steps):]...) // a list in JSON, also when empty
	for i := 1; i <= min(len(out), len(b)); i++ {
		out[len(out)-i] += b[len(b)-i]
	}
	return out
}
