package rulebook

import (
	"encoding/json"
	"maps"
	"slices"

	"liveroom/limit"
)

// Change is one field of one rule that differs between two sets. A rule that came or went is one change with an empty
// Field.
type Change struct {
	Rule   string `json:"rule"`
	Field  string `json:"field,omitempty"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// Diff returns what leads from one list of rules to another, by rule and field.
func Diff(before, after []limit.Rule) []Change {
	old, now := byName(before), byName(after)
	names := slices.Sorted(maps.Keys(old))
	for name := range now {
		if _, ok := old[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Change
	for _, name := range names {
		was, had := old[name]
		is, has := now[name]
		switch {
		case !had:
			out = append(out, Change{Rule: name, After: is})
		case !has:
			out = append(out, Change{Rule: name, Before: was})
		default:
			out = append(out, diffFields(name, was, is)...)
		}
	}
	return out
}

func diffFields(name string, was, is map[string]any) []Change {
	fields := map[string]bool{}
	for f := range was {
		fields[f] = true
	}
	for f := range is {
		fields[f] = true
	}
	var out []Change
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		a, b := was[f], is[f]
		if !same(a, b) {
			out = append(out, Change{Rule: name, Field: f, Before: a, After: b})
		}
	}
	return out
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// byName turns rules into their JSON fields, which is how people see them.
func byName(rules []limit.Rule) map[string]map[string]any {
	out := make(map[string]map[string]any, len(rules))
	for _, r := range rules {
		raw, err := json.Marshal(r)
		if err != nil {
			continue // a rule that was decoded from JSON encodes
		}
		var fields map[string]any
		if json.Unmarshal(raw, &fields) == nil {
			delete(fields, "name")
			out[r.Name] = fields
		}
	}
	return out
}
