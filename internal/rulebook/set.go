package rulebook

import (
	"encoding/json"

	"liveroom/internal/edition"
	"liveroom/limit"
)

// Set is one version of the limits, with its story. The rules are never changed in place.
type Set struct {
	edition.Story
	Rules   []limit.Rule     `json:"rules,omitempty"`
	Changes []edition.Change `json:"changes,omitempty"` // against the version before; only in a history
	Watch   *Ending          `json:"watch,omitempty"`   // how the guard's watch over it ended; only in a history

	compiled *limit.Rules
}

// Compiled returns the rules as the gate takes them; nil of a set that is only told of, in a history.
func (s *Set) Compiled() *limit.Rules { return s.compiled }

// Told is a stored set without its rules, as others hear of it; an error when it can't be read.
func Told(r edition.Record) ([]byte, error) {
	story, err := edition.StoryOf(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(story)
}

func decode(raw json.RawMessage, s *Set) error {
	spec, err := limit.Parse(append(append([]byte(`{"rules":`), raw...), '}'))
	if err == nil {
		s.Rules = spec.Rules
	}
	return err
}

// changes says what leads from one set to another.
func changes(before, after *Set) int {
	after.Changes = diff(before.Rules, after.Rules)
	return len(after.Changes)
}

func diff(before, after []limit.Rule) []edition.Change {
	return edition.Diff(before, after, "name", func(name string) edition.Change { return edition.Change{Rule: name} })
}
