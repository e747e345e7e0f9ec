package audience

import (
	"cmp"
	"slices"
)

// shards are a room's members in the order of their sockets' descriptors, in which the kernel's tables are walked
// fastest. They are cut in pieces, so that a join moves little and a large room's shards are delivered in parallel.
//
// A flush reads a snapshot of the shards without a lock: freeze marks them, and whoever changes a frozen shard gives
// it a slice of its own first. Guarded by Audience.mu.
type shards[V Viewer] struct {
	all  []*shard[V] // none empty, in order
	size int
	// deflating is how many of them take deflated frames.
	deflating int
	joined    uint64 // numbers members
	most      int    // members of one shard; fixed
}

// shardMax is the size at which a shard is cut in two. A join during a flush copies at most this many pointers.
const shardMax = 512

type shard[V Viewer] struct {
	members []V
	frozen  bool
}

// own makes the members safe to change.
func (s *shard[V]) own() {
	if s.frozen {
		s.members = slices.Clone(s.members)
		s.frozen = false
	}
}

// Spot is where a viewer stands among the others.
type Spot struct {
	Order    int    // of its socket among all, its descriptor; fixed
	Deflates bool   // it takes deflated frames; fixed
	number   uint64 // of its join, which makes equal descriptors distinct
}

func inOrder[V Viewer](a, b V) int {
	p, q := a.Spot(), b.Spot()
	return cmp.Or(cmp.Compare(p.Order, q.Order), cmp.Compare(p.number, q.number))
}

// find returns the index of the shard that m belongs in.
func (a *shards[V]) find(m V) int {
	i, _ := slices.BinarySearchFunc(a.all, m, func(s *shard[V], m V) int {
		return inOrder(s.members[len(s.members)-1], m)
	})
	return min(i, len(a.all)-1)
}

func (a *shards[V]) add(m V) {
	a.joined++
	m.Spot().number = a.joined
	a.size++
	if m.Spot().Deflates {
		a.deflating++
	}
	if len(a.all) == 0 {
		a.all = append(a.all, &shard[V]{members: []V{m}})
		return
	}
	i := a.find(m)
	s := a.all[i]
	s.own()
	at, _ := slices.BinarySearchFunc(s.members, m, inOrder[V])
	s.members = slices.Insert(s.members, at, m)
	if len(s.members) >= a.most {
		half := len(s.members) / 2
		upper := &shard[V]{members: slices.Clone(s.members[half:])}
		clear(s.members[half:])
		s.members = s.members[:half]
		a.all = slices.Insert(a.all, i+1, upper)
	}
}

// remove takes m out and reports whether it was in.
func (a *shards[V]) remove(m V) bool {
	if len(a.all) == 0 {
		return false
	}
	i := a.find(m)
	s := a.all[i]
	at, found := slices.BinarySearchFunc(s.members, m, inOrder[V])
	if !found || s.members[at] != m {
		return false
	}
	s.own()
	s.members = slices.Delete(s.members, at, at+1)
	a.size--
	if m.Spot().Deflates {
		a.deflating--
	}
	switch {
	case len(s.members) == 0:
		a.all = slices.Delete(a.all, i, i+1)
	case i+1 < len(a.all):
		a.merge(i)
	case i > 0:
		a.merge(i - 1)
	}
	return true
}

// merge joins shard i and the next when both are small, so that many leaves do not leave many crumbs.
func (a *shards[V]) merge(i int) {
	s, next := a.all[i], a.all[i+1]
	if len(s.members)+len(next.members) > a.most/4 {
		return
	}
	s.own()
	s.members = append(s.members, next.members...)
	a.all = slices.Delete(a.all, i+1, i+2)
}

// freeze appends the shards' members to dst, which stay as they are until thaw.
func (a *shards[V]) freeze(dst [][]V) [][]V {
	for _, s := range a.all {
		s.frozen = true
		dst = append(dst, s.members)
	}
	return dst
}

// thaw ends what freeze began.
func (a *shards[V]) thaw() {
	for _, s := range a.all {
		s.frozen = false
	}
}
