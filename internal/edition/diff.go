package edition

import (
	"encoding/json"
	"maps"
	"slices"
)

// Change is one field of one named thing that differs between two editions. A thing that came or went is one change with an empty Field.
type Change struct {
	Rule   string `json:"rule,omitempty"` // the name, of a rule
	Gift   string `json:"gift,omitempty"` // of a gift
	Field  string `json:"field,omitempty"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// Diff returns what leads from one list to another, by name and field; key is the field that has the name, and of begins each change.
func Diff[T any](before, after []T, key string, of func(name string) Change) []Change {
	old, now := byName(before, key), byName(after, key)
	names := slices.Sorted(maps.Keys(old))
	for name := range now {
		if _, ok := old[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Change
	add := func(name, field string, before, after any) {
		c := of(name)
		c.Field, c.Before, c.After = field, before, after
		out = append(out, c)
	}
	for _, name := range names {
		was, had := old[name]
		is, has := now[name]
		switch {
		case !had:
			add(name, "", nil, is)
		case !has:
			add(name, "", was, nil)
		default:
			all := maps.Clone(was)
			maps.Copy(all, is)
			for _, f := range slices.Sorted(maps.Keys(all)) {
				if !same(was[f], is[f]) {
					add(name, f, was[f], is[f])
				}
			}
		}
	}
	return out
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// byName turns things into their JSON fields, which is how people see them.
func byName[T any](things []T, key string) map[string]map[string]any {
	out := make(map[string]map[string]any, len(things))
	for _, t := range things {
		raw, err := json.Marshal(t)
		var fields map[string]any
		if err != nil || json.Unmarshal(raw, &fields) != nil {
			continue // what was decoded from JSON encodes
		}
		name, _ := fields[key].(string)
		delete(fields, key)
		out[name] = fields
	}
	return out
}
