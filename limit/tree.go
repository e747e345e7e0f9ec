package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// mapping is a YAML mapping or a JSON object in the order of its text.
type mapping []entry

type entry struct {
	key   string
	value any
}

// The bounds of what a text may become. A set of as many rules as there may be
// has some 20 values in each.
const (
	// maxValues bounds the values of a text with its aliases unfolded.
	maxValues = 50_000
	// maxMarks bounds the lines and commas of a YAML text, each of which costs
	// its reader some kilobytes. JSON costs a tenth and has no such bound.
	maxMarks = 16_000
)

// readTree reads a text as nested mappings, lists ([]any), text, int64, uint64,
// number, bool and nil. It takes time and memory proportional to the text.
func readTree(text []byte) (any, error) {
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		d := json.NewDecoder(bytes.NewReader(trimmed))
		d.UseNumber()
		return readJSON(d)
	}
	if bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte(",")) > maxMarks {
		return nil, fmt.Errorf("the text has over %d lines and commas; write JSON, or fewer", maxMarks)
	}
	var doc, more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	switch err := documents.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, errors.New(strings.TrimSpace(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if !errors.Is(documents.Decode(&more), io.EOF) {
		return nil, errors.New("the text is more than one document") // whoever wrote the second means it, too
	}
	u := unfolding{left: maxValues}
	return u.value(&doc, 0)
}

func readJSON(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		return numberOf(t.String()), nil
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				item, err := readJSON(d)
				if err != nil {
					return nil, err
				}
				list = append(list, item)
			}
			_, err = d.Token()
			return list, err
		}
		m, seen := mapping{}, map[string]bool{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // an object's key is
			if seen[name] {
				return nil, fmt.Errorf("the key %.70q stands twice, at byte %d", name, d.InputOffset())
			}
			seen[name] = true
			value, err := readJSON(d)
			if err != nil {
				return nil, err
			}
			m = append(m, entry{name, value})
		}
		_, err = d.Token()
		return m, err
	}
	return token, nil
}

func numberOf(text string) any {
	if i, err := strconv.ParseInt(text, 0, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 0, 64); err == nil {
		return u
	}
	return number(text)
}

// number is one that no field takes, told as it stands.
type number string

// unfolding replaces aliases and merge keys by what they mean, as long as there
// is room for it.
type unfolding struct{ left int }

func (u *unfolding) value(n *yaml.Node, depth int) (any, error) {
	if u.left--; u.left < 0 {
		return nil, fmt.Errorf("line %d: unfolds to more than %d values", n.Line, maxValues)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("line %d: nests deeper than %d", n.Line, maxDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return u.value(n.Content[0], depth)
	case yaml.AliasNode:
		return u.value(n.Alias, depth+1) // deeper, or one that contains itself would never end
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			item, err := u.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	case yaml.MappingNode:
		return u.mapping(n, depth)
	}
	return scalarOf(n), nil
}

// mapping reads a mapping's own keys, then what it merges and does not have.
func (u *unfolding) mapping(n *yaml.Node, depth int) (mapping, error) {
	m, seen := make(mapping, 0, len(n.Content)/2), map[string]bool{}
	var merged []any
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		value, err := u.value(n.Content[i+1], depth+1)
		switch {
		case err != nil:
			return nil, err
		case key.ShortTag() == "!!merge":
			if list, many := value.([]any); many {
				merged = append(merged, list...)
			} else {
				merged = append(merged, value)
			}
			continue
		case key.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: a key is text", key.Line)
		case seen[key.Value]:
			return nil, fmt.Errorf("line %d: the key %.70q stands twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		m = append(m, entry{key.Value, value})
	}
	for _, from := range merged {
		more, ok := from.(mapping)
		if !ok {
			return nil, fmt.Errorf("line %d: << wants a mapping or a list of them", n.Line)
		}
		for _, e := range more {
			if !seen[e.key] {
				seen[e.key] = true
				m = append(m, e)
			}
		}
	}
	return m, nil
}

func scalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!str", "!!timestamp", "!!binary":
		return n.Value
	}
	return numberOf(n.Value)
}
