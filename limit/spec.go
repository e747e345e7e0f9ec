package limit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Spec is a rule set as people write it, in YAML or JSON. It is data: nothing
// is checked before Compile.
type Spec struct {
	// Version orders sets; a Gate ignores one older than its own.
	Version int64 `yaml:"version,omitempty" json:"version,omitempty"`
	// Rules in any order; Compile sorts them.
	Rules []Rule `yaml:"rules" json:"rules"`
}

// Rule is one limit. Of the rules for a scope and an action, the most specific
// ones that match a request apply: a room pattern beats none (an exact one
// beats a wildcard), then a role list beats none, then Where
// beats none, then higher Priority; rules
// equal in all of that apply together, in the order of their names.
type Rule struct {
	// Name identifies the rule in answers, metrics and over reloads:
	// [a-z0-9-]{1,64}, unique in the set.
	Name string `yaml:"name" json:"name"`
	// Action lists what the rule covers; several share one bucket. Names of
	// Action, or "api:" and a route template.
	Action StringList `yaml:"action" json:"action"`
	// Scope is whose bucket it is: a name of Scope.
	Scope string `yaml:"scope" json:"scope"`
	// Room restricts the rule to rooms: an id, or a pattern with * for any
	// run of characters. Empty means every room.
	Room string `yaml:"room,omitempty" json:"room,omitempty"`
	// Role restricts the rule to these roles. Empty means every role.
	Role StringList `yaml:"role,omitempty" json:"role,omitempty"`
	// Where restricts the rule to requesters whose attributes are so: by
	// name ">=10" (also <=, >, <) of a whole number, or a text. All must hold.
	Where map[string]string `yaml:"where,omitempty" json:"where,omitempty"`
	// Priority breaks ties between equally specific rules; higher wins.
	Priority int64 `yaml:"priority,omitempty" json:"priority,omitempty"`
	// Algorithm is how it counts; token_bucket when empty.
	Algorithm string `yaml:"algorithm,omitempty" json:"algorithm,omitempty"`

	Limit `yaml:",inline" json:",inline"`

	// Share, "25%", makes of it a share of the room's rule for the same
	// actions, instead of a Limit.
	Share string `yaml:"share,omitempty" json:"share,omitempty"`
	// Sessions is from how many of them in the room on a network is asked.
	Sessions int64 `yaml:"sessions,omitempty" json:"sessions,omitempty"`
	// Initial is the level of a new bucket in tokens; Burst when absent.
	Initial *int64 `yaml:"initial,omitempty" json:"initial,omitempty"`
	// Cost is what a request pays: "1" (when empty), or Request.Cost, which
	// a rule for gifts calls "value" and one for likes "count".
	Cost string `yaml:"cost,omitempty" json:"cost,omitempty"`
	// Fold counts as much of a request's cost as there is room for and
	// degrades the rest, instead of refusing all of it.
	Fold bool `yaml:"fold,omitempty" json:"fold,omitempty"`
	// Degrade is a second bucket of its own: what the first refuses and
	// this one grants is admitted degraded.
	Degrade *Limit `yaml:"degrade,omitempty" json:"degrade,omitempty"`
	// Floor keeps tokens back per action: an action is granted only what
	// lies above its floor.
	Floor map[string]int64 `yaml:"floor,omitempty" json:"floor,omitempty"`
	// Tiers replace Limit by audience, smallest first; the last has no Below.
	Tiers []Tier `yaml:"tiers,omitempty" json:"tiers,omitempty"`
	// Multiply gives a role so many times the rate and burst, 1 to 1,000.
	Multiply map[string]int64 `yaml:"multiply,omitempty" json:"multiply,omitempty"`
	// Exempt are those whom the rule does not ask.
	Exempt Exempt `yaml:"exempt,omitempty" json:"exempt,omitzero"`
	// Shadow counts what the rule would do and does not do it.
	Shadow bool `yaml:"shadow,omitempty" json:"shadow,omitempty"`
	// Cluster makes the quota hold over all nodes together, once the Gate has
	// a Cluster; without one this node is the whole cluster. Not for scope conn.
	Cluster bool `yaml:"cluster,omitempty" json:"cluster,omitempty"`
	// OnOutage is what a cluster rule does without its store: "share" (when
	// empty), "open" or "closed".
	OnOutage string `yaml:"on_outage,omitempty" json:"on_outage,omitempty"`
	// Grace is how long "open" stays open before it turns to share, counted
	// from the first failure; 10 s when zero.
	Grace Duration `yaml:"grace,omitempty" json:"grace,omitempty"`
}

// Limit is Rate tokens per Per, up to Burst at once. Rate 0 means nothing
// comes after the burst.
type Limit struct {
	// Rate is tokens per Per, 0 to 10^9.
	Rate int64 `yaml:"rate" json:"rate"`
	// Per is 1 ms to 366 days; one second when zero.
	Per Duration `yaml:"per,omitempty" json:"per,omitempty"`
	// Burst is the bucket's capacity in tokens, at least 1.
	Burst int64 `yaml:"burst" json:"burst"`
}

// Tier is the limit for an audience below a bound.
type Tier struct {
	// Below is the audience at which the next tier begins; 0 for the last.
	Below int64 `yaml:"below,omitempty" json:"below,omitempty"`

	Limit `yaml:",inline" json:",inline"`
}

// Exempt lists those a rule does not ask.
type Exempt struct {
	// Roles by name.
	Roles StringList `yaml:"roles,omitempty" json:"roles,omitempty"`
	// Users by id.
	Users StringList `yaml:"users,omitempty" json:"users,omitempty"`
	// Networks as CIDR prefixes.
	Networks StringList `yaml:"networks,omitempty" json:"networks,omitempty"`
}

// StringList is a list that may be written as a single string.
type StringList []string

// MarshalJSON writes a list of one as that one.
func (l StringList) MarshalJSON() ([]byte, error) { return json.Marshal(l.short()) }

// MarshalYAML writes a list of one as that one.
func (l StringList) MarshalYAML() (any, error) { return l.short(), nil }

func (l StringList) short() any {
	if len(l) == 1 {
		return l[0]
	}
	return []string(l)
}

// Duration is a time.Duration written as text, like 30s.
type Duration time.Duration

// String returns the text form.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("want a duration like 30s, have %q", text)
	}
	*d = Duration(v)
	return nil
}

// Fault is one thing wrong in a rule set.
type Fault struct {
	// Path leads to it, like rules[2].degrade.burst.
	Path string `json:"path"`
	// Problem says what is wrong and what would be right.
	Problem string `json:"problem"`
}

// Faults is the error of Parse and Compile: the first 200 faults, in the order
// of the text.
type Faults []Fault

// Error lists the faults, one a line.
func (f Faults) Error() string {
	var text strings.Builder
	for i, fault := range f {
		if i > 0 {
			text.WriteByte('\n')
		}
		if fault.Path != "" {
			text.WriteString(fault.Path + ": ")
		}
		text.WriteString(fault.Problem)
	}
	return text.String()
}

// maxFaults bounds how many faults are told; who mends those sees the next.
const maxFaults = 200

func (f *Faults) add(path, format string, args ...any) {
	if len(*f) >= maxFaults {
		return
	}
	*f = append(*f, Fault{Path: fmt.Sprintf("%.200s", path), Problem: fmt.Sprintf(format, args...)})
}

// err returns f as an error, nil when it is empty.
func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
