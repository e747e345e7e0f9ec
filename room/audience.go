package room

import (
	"cmp"
	"slices"
)

// audience is a room's members in the order of their sockets' descriptors, in which the kernel's tables are walked
// fastest. They stand in shards, so that a join moves little and a large room's shards are delivered in parallel.
//
// A flush reads a snapshot of the shards without a lock: freeze marks them, and whoever changes a frozen shard gives
// it a slice of its own first. Guarded by Room.mu.
type audience struct {
	shards []*shard // none empty, in order
	size   int
	// deflating is how many of them take deflated frames.
	deflating int
	joined    uint64 // numbers members, which makes equal descriptors distinct
	most      int    // members of one shard; fixed
}

// shardMax is the size at which a shard is cut in two. A join during a flush copies at most this many pointers.
const shardMax = 512

type shard struct {
	members []*Member
	frozen  bool
}

// own makes the members safe to change.
func (s *shard) own() {
	if s.frozen {
		s.members = slices.Clone(s.members)
		s.frozen = false
	}
}

func inOrder(a, b *Member) int {
	return cmp.Or(cmp.Compare(a.descriptor, b.descriptor), cmp.Compare(a.number, b.number))
}

// find returns the index of the shard that m belongs in.
func (a *audience) find(m *Member) int {
	i, _ := slices.BinarySearchFunc(a.shards, m, func(s *shard, m *Member) int {
		return inOrder(s.members[len(s.members)-1], m)
	})
	return min(i, len(a.shards)-1)
}

func (a *audience) add(m *Member) {
	a.joined++
	m.number = a.joined
	a.size++
	if m.deflates {
		a.deflating++
	}
	if len(a.shards) == 0 {
		a.shards = append(a.shards, &shard{members: []*Member{m}})
		return
	}
	i := a.find(m)
	s := a.shards[i]
	s.own()
	at, _ := slices.BinarySearchFunc(s.members, m, inOrder)
	s.members = slices.Insert(s.members, at, m)
	if len(s.members) >= a.most {
		half := len(s.members) / 2
		upper := &shard{members: slices.Clone(s.members[half:])}
		clear(s.members[half:])
		s.members = s.members[:half]
		a.shards = slices.Insert(a.shards, i+1, upper)
	}
}

// remove takes m out and reports whether it was in.
func (a *audience) remove(m *Member) bool {
	if len(a.shards) == 0 {
		return false
	}
	i := a.find(m)
	s := a.shards[i]
	at, found := slices.BinarySearchFunc(s.members, m, inOrder)
	if !found || s.members[at] != m {
		return false
	}
	s.own()
	s.members = slices.Delete(s.members, at, at+1)
	a.size--
	if m.deflates {
		a.deflating--
	}
	switch {
	case len(s.members) == 0:
		a.shards = slices.Delete(a.shards, i, i+1)
	case i+1 < len(a.shards):
		a.merge(i)
	case i > 0:
		a.merge(i - 1)
	}
	return true
}

// merge joins shard i and the next when both are small, so that many leaves do not leave many crumbs.
func (a *audience) merge(i int) {
	s, next := a.shards[i], a.shards[i+1]
	if len(s.members)+len(next.members) > a.most/4 {
		return
	}
	s.own()
	s.members = append(s.members, next.members...)
	a.shards = slices.Delete(a.shards, i+1, i+2)
}

// freeze appends the shards' members to dst, which stay as they are until thaw.
func (a *audience) freeze(dst [][]*Member) [][]*Member {
	for _, s := range a.shards {
		s.frozen = true
		dst = append(dst, s.members)
	}
	return dst
}

// thaw ends what freeze began.
func (a *audience) thaw() {
	for _, s := range a.shards {
		s.frozen = false
	}
}

// of appends the members of a user to dst.
func (a *audience) of(user string, dst []*Member) []*Member {
	for _, s := range a.shards {
		for _, m := range s.members {
			if m.user.id == user {
				dst = append(dst, m)
			}
		}
	}
	return dst
}
