package rulebook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"liveroom/limit"
)

// Kind says how a set came to be.
type Kind string

// Kinds of sets.
const (
	KindSeed     Kind = "seed"     // from the configuration, into an empty store
	KindPublish  Kind = "publish"  // by somebody, through the API
	KindRollback Kind = "rollback" // somebody went back to an older one
	KindGuard    Kind = "guard"    // the guard went back by itself
	KindFile     Kind = "file"     // from the file that is the source
)

// Set is one version of the limits, with its story. The rules are never changed in place.
type Set struct {
	Version  uint64       `json:"version"`            // 0: from the configuration, not stored
	Kind     Kind         `json:"kind"`               //
	Author   string       `json:"author"`             // the user who made it, or the name of what did
	Note     string       `json:"note,omitempty"`     // why
	Override bool         `json:"override,omitempty"` // published although it refuses much more
	Restores uint64       `json:"restores,omitempty"` // the version whose rules these are
	Time     time.Time    `json:"time"`
	Node     string       `json:"node,omitempty"` // that it was published on; "" when unknown
	Rules    []limit.Rule `json:"rules,omitempty"`
	Changes  []Change     `json:"changes,omitempty"` // against the version before; only in a history
	Watch    *Ending      `json:"watch,omitempty"`   // how the guard's watch over it ended; only in a history

	compiled *limit.Rules
}

// Compiled returns the rules as the gate takes them; nil of a set that is only told of, in a history.
func (s *Set) Compiled() *limit.Rules { return s.compiled }

// payload is a set as the store keeps it. Version and time are the store's.
type payload struct {
	Format   int             `json:"format"`
	Kind     Kind            `json:"kind"`
	Author   string          `json:"author"`
	Note     string          `json:"note,omitempty"`
	Override bool            `json:"override,omitempty"`
	Restores uint64          `json:"restores,omitempty"`
	Rules    json.RawMessage `json:"rules"`
}

const format = 1

// Told is a stored set without its rules, as others hear of it; an error when it can't be read.
func Told(r Record) ([]byte, error) {
	var p payload
	if err := json.Unmarshal(r.Payload, &p); err != nil {
		return nil, fmt.Errorf("limits version %d: %w", r.Version, err)
	}
	return json.Marshal(Set{
		Version: r.Version, Kind: p.Kind, Author: p.Author, Note: p.Note, Override: p.Override, Restores: p.Restores, Time: r.Time, Node: r.Node,
	})
}

func (s *Set) encode() ([]byte, error) {
	rules, err := json.Marshal(s.Rules)
	if err != nil {
		return nil, fmt.Errorf("encode limits: %w", err)
	}
	return json.Marshal(payload{format, s.Kind, s.Author, s.Note, s.Override, s.Restores, rules})
}

// decode reads a stored set. It refuses what this version of the server can't read whole.
func decode(r Record) (*Set, error) {
	version := r.Version
	var p payload
	d := json.NewDecoder(bytes.NewReader(r.Payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("limits version %d: %w", version, err)
	}
	if p.Format != format {
		return nil, fmt.Errorf("limits version %d: format %d, this server reads %d", version, p.Format, format)
	}
	spec, err := limit.Parse(append(append([]byte(`{"rules":`), p.Rules...), '}'))
	if err != nil {
		return nil, fmt.Errorf("limits version %d: %w", version, err)
	}
	return &Set{
		Version: version, Kind: p.Kind, Author: p.Author, Note: p.Note, Override: p.Override, Restores: p.Restores,
		Time: r.Time, Node: r.Node, Rules: spec.Rules,
	}, nil
}
