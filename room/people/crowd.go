package people

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

const (
	// sampleMost bounds the persons of whom a node tells others one by one.
	sampleMost = 4096
	hashBytes  = 5 // of a hash as it is told: its first 40 bits
	levelMost  = 32
)

// sample holds those persons whose hashes begin with level zeros.
type sample struct {
	all   int // persons, sampled or not
	level uint8
	known map[Hash]struct{}
}

func (s *sample) wants(h Hash) bool { return h>>(64-s.level) == 0 } // a shift by 64 leaves nothing

func (s *sample) enter(h Hash) {
	s.all++
	s.put(h)
}

func (s *sample) put(h Hash) {
	if !s.wants(h) {
		return
	}
	if s.known == nil {
		s.known = map[Hash]struct{}{}
	}
	s.known[h] = struct{}{}
	for len(s.known) > sampleMost && s.level < levelMost {
		s.level++
		maps.DeleteFunc(s.known, func(h Hash, _ struct{}) bool { return !s.wants(h) })
	}
}

func (s *sample) leave(h Hash) {
	s.all--
	delete(s.known, h)
}

// coarse reports whether so many have left that a sample of those who are there would tell more.
func (s *sample) coarse() bool { return s.level > 0 && s.all < sampleMost/2<<(s.level-1) }

// passage is somebody who came, or went.
type passage struct {
	h  Hash
	in bool
}

// again samples anew those who are there, by a list that was made while others came and went.
func (s *sample) again(there []Hash, during []passage) {
	s.level, s.known = 0, nil
	for _, h := range there {
		s.put(h)
	}
	for _, p := range during {
		if p.in {
			s.put(p.h)
		} else {
			delete(s.known, p.h)
		}
	}
}

// Crowd is who is in a room on one node, as it tells others.
type Crowd struct {
	People int
	level  uint8
	known  []uint64 // the first 40 bits of the sampled hashes, in their order
}

func (s *sample) crowd() Crowd {
	c := Crowd{People: s.all, level: s.level, known: make([]uint64, 0, len(s.known))}
	for h := range s.known {
		c.known = append(c.known, uint64(h)>>(64-8*hashBytes))
	}
	slices.Sort(c.known)
	return c
}

// AppendBinary appends what [ParseCrowd] reads.
func (c Crowd) AppendBinary(dst []byte) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(c.People)), c.level)
	for _, h := range c.known {
		dst = append(dst, byte(h>>32), byte(h>>24), byte(h>>16), byte(h>>8), byte(h))
	}
	return dst
}

var errCrowd = errors.New("people: no crowd")

// ParseCrowd reads what another node told.
func ParseCrowd(b []byte) (c Crowd, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > 1<<32 || len(b) <= size || b[size] > levelMost {
		return c, errCrowd
	}
	c.People, c.level = int(n), b[size]
	if b = b[size+1:]; len(b)%hashBytes != 0 || len(b) > sampleMost*hashBytes {
		return c, errCrowd
	}
	for ; len(b) > 0; b = b[hashBytes:] {
		c.known = append(c.known, uint64(b[0])<<32|uint64(b[1])<<24|uint64(b[2])<<16|uint64(b[3])<<8|uint64(b[4]))
	}
	return c, nil
}

// Together is how many persons several nodes have: the sum, less those that several have. Of nodes that told a number
// alone nobody is taken for a double.
func Together(crowds ...Crowd) int {
	sum, level := 0, uint8(0)
	for _, c := range crowds {
		sum += c.People
		level = max(level, c.level)
	}
	seen, doubles := map[uint64]struct{}{}, 0
	for _, c := range crowds {
		for _, h := range c.known {
			if h>>(8*hashBytes-level) != 0 {
				break // in their order: nothing behind it is sampled at this level
			}
			if _, twice := seen[h]; twice {
				doubles++
			}
			seen[h] = struct{}{}
		}
	}
	return max(sum-doubles<<level, 0)
}
