package people

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/axiomhq/hyperloglog"
	"github.com/cespare/xxhash/v2"
)

// Hash is what a person is known by.
type Hash uint64

// HashOf returns a user's hash, the same on every node.
func HashOf(user string) Hash { return Hash(xxhash.Sum64String(user)) }

// exactMost is how many persons a set holds by themselves: 32 KiB when it is stored.
const exactMost = 4096

// set is different persons. It only grows.
type set struct {
	exact  map[Hash]struct{}   // nil once there is a sketch
	sketch *hyperloglog.Sketch // nil: all are in exact
	told   int                 // the least that it counts: an estimate may fall where the set grows
}

// add reports whether the set has changed.
func (s *set) add(h Hash) bool {
	if s.sketch == nil {
		if _, ok := s.exact[h]; ok {
			return false
		}
		if len(s.exact) < exactMost {
			if s.exact == nil {
				s.exact = map[Hash]struct{}{}
			}
			s.exact[h] = struct{}{}
			return true
		}
		s.toSketch()
	}
	s.sketch.InsertHash(uint64(h))
	return true
}

func (s *set) toSketch() {
	s.told = max(s.told, len(s.exact))
	s.sketch = hyperloglog.NewNoSparse()
	for h := range s.exact {
		s.sketch.InsertHash(uint64(h))
	}
	s.exact = nil
}

// merge takes what another set has.
func (s *set) merge(o *set) {
	s.told = max(s.told, o.told)
	if o.sketch == nil {
		for h := range o.exact {
			s.add(h)
		}
		return
	}
	if s.sketch == nil {
		s.toSketch()
	}
	_ = s.sketch.Merge(o.sketch) // fails for another precision alone, which parse refuses
}

// count is how many persons there are, and whether that is exact.
func (s *set) count() (n int, exact bool) {
	if s.sketch == nil {
		return max(s.told, len(s.exact)), true
	}
	s.told = max(s.told, int(s.sketch.Estimate()))
	return s.told, false
}

// A set's encoding begins with its form.
const (
	formExact  = 'e' // hashes of eight bytes in their order
	formSketch = 's'
)

var errSet = errors.New("people: no set of persons")

// MarshalBinary implements [encoding.BinaryMarshaler].
func (s *set) MarshalBinary() ([]byte, error) {
	if s.sketch != nil {
		return s.sketch.AppendBinary([]byte{formSketch})
	}
	out := make([]byte, 1, 1+8*len(s.exact))
	out[0] = formExact
	for _, h := range slices.Sorted(maps.Keys(s.exact)) {
		out = binary.BigEndian.AppendUint64(out, uint64(h))
	}
	return out, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler].
func (s *set) UnmarshalBinary(b []byte) error {
	*s = set{}
	switch {
	case len(b) == 0:
	case b[0] == formExact && len(b)%8 == 1 && len(b)/8 <= exactMost:
		for b = b[1:]; len(b) > 0; b = b[8:] {
			s.add(Hash(binary.BigEndian.Uint64(b)))
		}
		return nil
	case b[0] == formSketch:
		s.sketch = hyperloglog.NewNoSparse()
		read := &hyperloglog.Sketch{}
		if err := read.UnmarshalBinary(b[1:]); err != nil {
			return err
		}
		return s.sketch.Merge(read) // refuses another precision
	}
	return errSet
}
