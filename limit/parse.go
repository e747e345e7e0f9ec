package limit

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// The bounds of a rule set's text. A reader's stack grows with the depth.
const (
	maxSpecBytes = 256 << 10
	maxDepth     = 32
)

// Parse reads a rule set in YAML, hence also in JSON. The error is Faults: a
// key that does not exist or a value of the wrong kind, each with its path.
// Whether the numbers make sense is for Compile.
func Parse(text []byte) (*Spec, error) {
	if len(text) > maxSpecBytes {
		return nil, Faults{{Problem: fmt.Sprintf("the text is over %d bytes", maxSpecBytes)}}
	}
	if tooDeep(string(text)) {
		return nil, Faults{{Problem: fmt.Sprintf("the text nests deeper than %d", maxDepth)}}
	}
	tree, err := readTree(text)
	if err != nil {
		return nil, Faults{{Problem: err.Error()}}
	}
	var spec Spec
	var faults Faults
	fill(reflect.ValueOf(&spec).Elem(), tree, "", &faults)
	return &spec, faults.err()
}

// tooDeep tells whether a text nests beyond what any rule set needs, counting
// brackets, list and key marks at a line's beginning, and indentation. It does
// not know quotes: a string full of brackets counts, too.
func tooDeep(text string) bool {
	depth := 0
	for line := range strings.Lines(text) {
		marks := strings.TrimLeft(line, " \t-?")
		start := line[:len(line)-len(marks)]
		if strings.Count(start, " ")+strings.Count(start, "\t") > 8*maxDepth || strings.Count(start, "- ")+strings.Count(start, "? ") > maxDepth {
			return true
		}
		for _, c := range []byte(marks) {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > maxDepth {
				return true
			}
		}
	}
	return false
}

// fill sets v from what readTree gave.
func fill(v reflect.Value, from any, path string, faults *Faults) {
	if from == nil {
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		text, isText := from.(string)
		if !isText {
			text = fmt.Sprint(from)
		}
		if err := u.UnmarshalText([]byte(text)); err != nil {
			faults.add(path, "%s", err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), from, path, faults)
	case reflect.Struct:
		fillStruct(v, from, path, faults)
	case reflect.Map:
		fillMap(v, from, path, faults)
	case reflect.Slice:
		fillSlice(v, from, path, faults)
	default:
		fillScalar(v, from, path, faults)
	}
}

func fillStruct(v reflect.Value, from any, path string, faults *Faults) {
	entries, ok := from.(mapping)
	if !ok {
		faults.add(path, "want a mapping, have %s", kindOf(from))
		return
	}
	fields := map[string]reflect.Value{}
	collect(v, fields)
	for _, e := range entries {
		key := e.key
		at := join(path, key)
		f, known := fields[key]
		if !known {
			faults.add(at, "there is no such key; keys here are %s", keyList(fields))
			continue
		}
		fill(f, e.value, at, faults)
	}
}

// collect maps the YAML names of v's fields, those of inlined structs included.
func collect(v reflect.Value, fields map[string]reflect.Value) {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			collect(value, fields)
			continue
		}
		fields[name] = value
	}
}

func keyList(fields map[string]reflect.Value) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func fillMap(v reflect.Value, from any, path string, faults *Faults) {
	entries, ok := from.(mapping)
	if !ok {
		faults.add(path, "want a mapping, have %s", kindOf(from))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		key := e.key
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, e.value, join(path, key), faults)
		v.SetMapIndex(reflect.ValueOf(key), value)
	}
}

func fillSlice(v reflect.Value, from any, path string, faults *Faults) {
	list, ok := from.([]any)
	if !ok {
		if text, single := from.(string); single && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf([]string{text}).Convert(v.Type()))
			return
		}
		faults.add(path, "want a list, have %s", kindOf(from))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, item := range list {
		fill(v.Index(i), item, fmt.Sprintf("%s[%d]", path, i), faults)
	}
}

func fillScalar(v reflect.Value, from any, path string, faults *Faults) {
	switch v.Kind() {
	case reflect.String:
		switch x := from.(type) {
		case string:
			v.SetString(x)
			return
		case int64, uint64:
			v.SetString(fmt.Sprint(x))
			return
		}
		faults.add(path, "want text, have %s", kindOf(from))
	case reflect.Bool:
		b, ok := from.(bool)
		if !ok {
			faults.add(path, "want true or false, have %s", kindOf(from))
			return
		}
		v.SetBool(b)
	case reflect.Int64:
		switch x := from.(type) {
		case int64:
			v.SetInt(x)
			return
		case uint64:
			if x <= math.MaxInt64 {
				v.SetInt(int64(x))
				return
			}
		}
		faults.add(path, "want a whole number, have %s", kindOf(from))
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func kindOf(from any) string {
	switch x := from.(type) {
	case mapping:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("text %.40q", x)
	default:
		return fmt.Sprintf("%v", x)
	}
}
