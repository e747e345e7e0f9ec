package edition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind says how an edition came to be.
type Kind string

// The kinds.
const (
	KindSeed     Kind = "seed"     // from the configuration
	KindPublish  Kind = "publish"  // by somebody, through the API
	KindRollback Kind = "rollback" // somebody went back to an older one
	KindGuard    Kind = "guard"    // a guard went back by itself
	KindFile     Kind = "file"     // from the file that is the source
)

// Story is an edition without its content. Types of editions embed it.
type Story struct {
	Version  uint64    `json:"version"`            // 0: from the configuration, not stored
	Kind     Kind      `json:"kind"`               //
	Author   string    `json:"author"`             // the user who made it, or the name of what did
	Note     string    `json:"note,omitempty"`     // why
	Override bool      `json:"override,omitempty"` // published although it refuses much more
	Restores uint64    `json:"restores,omitempty"` // the version whose content this is
	Time     time.Time `json:"time"`
	Node     string    `json:"node,omitempty"` // that it was published on; "" when unknown
}

// Told returns the story itself: that of whatever embeds it.
func (s *Story) Told() *Story { return s }

func (s *Story) stamp(r Record) { s.Version, s.Time, s.Node = r.Version, r.Time, r.Node }

// Record is an edition as a [Store] keeps it.
type Record struct {
	Version uint64
	Payload []byte
	Time    time.Time
	Node    string // that published it, "" when unknown
}

// payload is what is stored of the story; version, time and node are the store's. The content stands beside it.
type payload struct {
	Format   int    `json:"format"`
	Kind     Kind   `json:"kind"`
	Author   string `json:"author"`
	Note     string `json:"note,omitempty"`
	Override bool   `json:"override,omitempty"`
	Restores uint64 `json:"restores,omitempty"`
}

const format = 1

// encode writes an edition as it is stored, with the content under its key.
func encode(s *Story, key string, content any) ([]byte, error) {
	head, err := json.Marshal(payload{format, s.Kind, s.Author, s.Note, s.Override, s.Restores})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return fmt.Appendf(head[:len(head)-1], ",%q:%s}", key, raw), nil
}

// decode reads a stored edition, and refuses what this version of the server can't read whole.
func decode(r Record, key string) (s Story, content json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.Payload, &fields); err != nil {
		return s, nil, err
	}
	content, ok := fields[key]
	if !ok {
		return s, nil, errors.New("it has no " + key)
	}
	delete(fields, key)
	head, err := json.Marshal(fields)
	if err != nil {
		return s, nil, err
	}
	var p payload
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return s, nil, err
	}
	if p.Format != format {
		return s, nil, fmt.Errorf("format %d, this server reads %d", p.Format, format)
	}
	s = Story{Kind: p.Kind, Author: p.Author, Note: p.Note, Override: p.Override, Restores: p.Restores}
	s.stamp(r)
	return s, content, nil
}

// StoryOf is that of a stored edition, whatever its content; an error when it can't be read.
func StoryOf(r Record) (Story, error) {
	var p payload
	err := json.Unmarshal(r.Payload, &p)
	s := Story{Kind: p.Kind, Author: p.Author, Note: p.Note, Override: p.Override, Restores: p.Restores}
	s.stamp(r)
	return s, err
}
