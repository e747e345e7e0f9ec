package protocol

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is said of a user.
const (
	MaxAttrs      = 8
	MaxAttrsBytes = 256 // as they travel
)

// Attrs is what a platform says of a user beside name and role (a level, a badge, a fan club): a JSON object of texts, whole numbers
// and true or false, by name. It is encoded once, when who the user is has been proved, and rides on what the user says. "" is none.
type Attrs string

// ParseAttrs reads attributes of which all are among names.
func ParseAttrs(given map[string]json.RawMessage, names []string) (Attrs, *Error) {
	if len(given) == 0 {
		return "", nil
	}
	if len(given) > MaxAttrs {
		return "", BadField("attrs", "at most "+strconv.Itoa(MaxAttrs), strconv.Itoa(len(given)))
	}
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return "", BadField("attrs", "names of protocol.attributes: "+joinWords(names), name)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, name), ':')
		var ok bool
		if out, ok = appendAttr(out, given[name]); !ok {
			return "", BadField("attrs."+name, "a printable text, a whole number, true or false", string(given[name]))
		}
	}
	out = append(out, '}')
	if len(out) > MaxAttrsBytes {
		return "", BadField("attrs", fmt.Sprintf("at most %d bytes", MaxAttrsBytes), fmt.Sprintf("%d bytes", len(out)))
	}
	return Attrs(out), nil
}

// appendAttr writes a value in the one form that it has.
func appendAttr(dst []byte, value json.RawMessage) ([]byte, bool) {
	switch string(value) {
	case "true", "false":
		return append(dst, value...), true
	}
	const exact = 1 << 53 // in every reader of JSON
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n >= -exact && n <= exact {
		return strconv.AppendInt(dst, n, 10), true
	}
	var text string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil || text == "" {
		return dst, false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return dst, false
		}
	}
	return appendString(dst, text), true
}

// MarshalJSON implements [json.Marshaler].
func (a Attrs) MarshalJSON() ([]byte, error) {
	if a == "" {
		return []byte("null"), nil
	}
	return []byte(a), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Attrs) UnmarshalJSON(b []byte) error {
	if *a = Attrs(b); *a == "null" {
		*a = ""
	}
	return nil
}
