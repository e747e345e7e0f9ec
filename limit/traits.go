package limit

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
)

// maxTraits is how many different conditions the rules of a set may have.
const maxTraits = 64

// trait is a condition on one attribute.
type trait struct {
	name string
	op   string // of whole numbers: >=, <=, >, <; "=" of a text
	n    int64
	text string
}

var (
	traitName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	traitForm = regexp.MustCompile(`^ *(>=|<=|>|<|=)? *(.*?) *$`)
)

// parseTrait reads a condition, such as >=10 or gold.
func parseTrait(name, text string) (t trait, ok bool) {
	if !traitName.MatchString(name) {
		return t, false
	}
	m := traitForm.FindStringSubmatch(text)
	if m == nil || m[2] == "" {
		return t, false
	}
	t = trait{name: name, op: m[1], text: m[2]}
	if t.op == "" || t.op == "=" {
		t.op = "="
		return t, true
	}
	var err error
	t.n, err = strconv.ParseInt(t.text, 10, 64)
	t.text = ""
	return t, err == nil
}

// holds tells whether the condition is true of an attribute's value, in JSON.
func (t *trait) holds(value json.RawMessage) bool {
	if t.op == "=" {
		text := string(value)
		if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) != nil {
			return false
		}
		return text == t.text
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case err != nil:
		return false
	case t.op == ">=":
		return n >= t.n
	case t.op == "<=":
		return n <= t.n
	case t.op == ">":
		return n > t.n
	}
	return n < t.n
}

// conditions are those of a set's rules, each once.
type conditions struct{ all []trait }

// compile numbers the conditions of a rule, and tells it which they are.
func (c *conditions) compile(r *rule, path string, faults *Faults) {
	for _, name := range slices.Sorted(maps.Keys(r.spec.Where)) {
		text := r.spec.Where[name]
		t, ok := parseTrait(name, text)
		if !ok {
			faults.add(join(path, name), "want an attribute's name and >=, <=, > or < with a whole number, or a text, have %.40q", text)
			continue
		}
		bit := slices.Index(c.all, t)
		if bit < 0 {
			if len(c.all) == maxTraits {
				faults.add(path, "want at most %d different conditions in a set", maxTraits)
				return
			}
			bit = len(c.all)
			c.all = append(c.all, t)
		}
		r.where |= 1 << bit
	}
}

// Traits are what is known of a requester beside its role, for rules with
// where. What a set of rules makes of them is worked out once and kept: a
// decision compares a pointer. They are safe for concurrent use; nil is none.
type Traits struct {
	attrs string // fixed
	known atomic.Pointer[knownTraits]
	whole atomic.Pointer[wholeTrait]
}

// wholeTrait is what was read of an attribute.
type wholeTrait struct {
	name string
	n    int64
	next *wholeTrait
}

type knownTraits struct {
	of    *conditions
	holds uint64 // by the number of the condition
}

// NewTraits takes attributes as a JSON object of texts, whole numbers, true
// and false; "" makes none.
func NewTraits(attrs string) *Traits {
	if attrs == "" {
		return nil
	}
	return &Traits{attrs: attrs}
}

// Attrs returns what [NewTraits] was given.
func (t *Traits) Attrs() string {
	if t == nil {
		return ""
	}
	return t.attrs
}

// Whole returns an attribute that is a whole number; 0 when it is another thing or none. What was read of a name is kept as long as t is, so
// names are of the configuration.
func (t *Traits) Whole(name string) int64 {
	if t == nil {
		return 0
	}
	had := t.whole.Load()
	for k := had; k != nil; k = k.next {
		if k.name == name {
			return k.n
		}
	}
	k := &wholeTrait{name: name, next: had}
	var values map[string]json.RawMessage
	if json.Unmarshal([]byte(t.attrs), &values) != nil || json.Unmarshal(values[name], &k.n) != nil {
		k.n = 0
	}
	t.whole.CompareAndSwap(had, k) // who is slower leaves it to the next
	return k.n
}

// hold returns which of the conditions hold for t.
func (c *conditions) hold(t *Traits) uint64 {
	if t == nil || len(c.all) == 0 {
		return 0
	}
	if k := t.known.Load(); k != nil && k.of == c {
		return k.holds
	}
	k := &knownTraits{of: c}
	var values map[string]json.RawMessage
	if json.Unmarshal([]byte(t.attrs), &values) == nil {
		for i := range c.all {
			if v, has := values[c.all[i].name]; has && c.all[i].holds(v) {
				k.holds |= 1 << i
			}
		}
	}
	t.known.Store(k)
	return k.holds
}
