package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Objective is a stated bound on one figure, and whether it was kept.
type Objective struct {
	Name     string  `json:"name"`
	Relation string  `json:"relation"` // "<=" or ">="
	Goal     bool    `json:"goal"`     // told, and fails nothing: it is about the machine as much as about the server
	Bound    float64 `json:"bound"`    // seconds, bytes, a count or a ratio
	Value    float64 `json:"value"`
	Measured bool    `json:"measured"` // false: this run has no such figure, so the objective is missed
	Met      bool    `json:"met"`
}

// parseObjectives reads p99=200ms,gift_loss=0,delivered>=99.9%. A plain "=" means "this or better", a "~" before the name
// makes it a goal. Every fault is told.
func parseObjectives(expr string) ([]Objective, error) {
	var out []Objective
	var faults []string
	for _, part := range strings.Split(expr, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		o, err := parseObjective(part)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		out = append(out, o)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("slo: %s", strings.Join(faults, "; "))
	}
	return out, nil
}

func parseObjective(s string) (Objective, error) {
	s, goal := strings.CutPrefix(s, "~")
	i := strings.IndexAny(s, "<>=")
	if i <= 0 {
		return Objective{}, fmt.Errorf("%q: want NAME=BOUND", s)
	}
	name, rest := strings.TrimSpace(s[:i]), s[i:]
	q, known := quantityNamed(name)
	if !known {
		return Objective{}, fmt.Errorf("%q is no figure; see -help", name)
	}
	o := Objective{Name: name, Relation: "<=", Goal: goal}
	if q.atLeast {
		o.Relation = ">="
	}
	switch {
	case strings.HasPrefix(rest, "<="):
		o.Relation, rest = "<=", rest[2:]
	case strings.HasPrefix(rest, ">="):
		o.Relation, rest = ">=", rest[2:]
	case rest[0] == '=':
		rest = rest[1:]
	default:
		return Objective{}, fmt.Errorf("%q: want =, <= or >=", s)
	}
	bound, err := q.unit.parse(strings.TrimSpace(rest))
	if err != nil {
		return Objective{}, fmt.Errorf("%s: %w", name, err)
	}
	o.Bound = bound
	return o, nil
}

// parse reads a value: 200ms for a latency, 6KB or 6KiB for memory, 1.3 or 99.9% for a ratio.
func (u unit) parse(s string) (float64, error) {
	switch u {
	case inSeconds:
		if s == "0" {
			return 0, nil
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("want a duration like 200ms, have %q", s)
		}
		return d.Seconds(), nil
	case inBytes:
		return parseBytes(s)
	}
	scale := 1.0
	if (u == inRatio || u == inShare) && strings.HasSuffix(s, "%") {
		s, scale = s[:len(s)-1], 0.01
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("want a number, have %q", s)
	}
	return v * scale, nil
}

func parseBytes(s string) (float64, error) {
	scale, whole := 1.0, s
	for _, u := range []struct {
		suffix string
		size   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, scale = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("want bytes like 6KB, have %q", whole)
	}
	return v * scale, nil
}

// measurable leaves out the objectives of a scenario that this run, told otherwise, has no figure for.
func measurable(objectives []Objective, values map[string]float64) []Objective {
	return slices.DeleteFunc(objectives, func(o Objective) bool {
		_, ok := values[o.Name]
		return !ok
	})
}

// judge fills in the values and reports whether all objectives but goals were met.
func judge(objectives []Objective, values map[string]float64) bool {
	all := true
	for i := range objectives {
		o := &objectives[i]
		o.Value, o.Measured = values[o.Name]
		o.Met = o.Measured && (o.Relation == "<=" && o.Value <= o.Bound || o.Relation == ">=" && o.Value >= o.Bound)
		all = all && (o.Met || o.Goal)
	}
	return all
}

// short reports whether the objective is a goal that was not reached.
func (o Objective) short() bool { return o.Goal && o.Measured && !o.Met }

// String is the objective as a line of the summary.
func (o Objective) String() string {
	q, _ := quantityNamed(o.Name)
	switch {
	case o.short():
		return fmt.Sprintf("goal   %s %s %s not reached: it was %s", o.Name, o.Relation, q.unit.format(o.Bound), q.unit.format(o.Value))
	case !o.Measured:
		return fmt.Sprintf("MISSED %s %s %s: not measured by this run", o.Name, o.Relation, q.unit.format(o.Bound))
	case !o.Met:
		return fmt.Sprintf("MISSED %s %s %s: it was %s", o.Name, o.Relation, q.unit.format(o.Bound), q.unit.format(o.Value))
	}
	return fmt.Sprintf("met    %s %s %s: it was %s", o.Name, o.Relation, q.unit.format(o.Bound), q.unit.format(o.Value))
}
