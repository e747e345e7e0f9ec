package preview

import (
	"cmp"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/limit"
)

// Recording is a piece of traffic: of one node, or of several after Merge. It is immutable.
type Recording struct {
	traits
	records []record // in order of time; at counts from base
}

// traits are what a Recording has beside its records.
type traits struct {
	Base, Span int64 // the instant that the records count from, in Unix ns; the length in ns
	Level      uint32
	Cut        bool // the recorders knew, or had forgotten, traffic before it
	Attrs      bool // the recorders knew of attributes; one of an earlier version does not
	Dropped    Dropped
	Nodes      []string
	Users      []user // the first stands for all who are not sampled
	Kinds      []kind
}

func (t *traits) end() int64 { return t.Base + t.Span }

// Between returns the traffic in [from, to), as far as it is known; an instant before the Recorder's beginning is taken
// for that. Both are rounded down to a step, but for a to that is still to come.
func (r *Recorder) Between(from, to time.Time) *Recording {
	now := r.clock()
	level := r.snapshotLevel(now)
	begin, end := max(r.instant(from), now.Add(-r.window), r.start), r.instant(to)
	if end > now {
		end = now.Add(1)
	} else {
		end = floor(end, level)
	}
	cut := begin > r.start
	var all []*Recording
	for i := range r.shards {
		part, whole := r.shards[i].recording(floor(begin, maxLevel), end)
		if whole > begin {
			begin, cut = whole.Add(stepOf(level)-1), true
		}
		level = max(level, part.Level)
		all = append(all, part)
	}
	begin = floor(begin, level)
	out := join(all, traits{Base: int64(begin), Span: max(int64(end.Sub(begin)), 0), Level: level, Cut: cut, Attrs: true, Nodes: []string{r.node}})
	out.Base = r.wall + int64(begin.Sub(r.start))
	return out
}

// BetweenAt is what another recorder is asked for by one whose [Recorder.Now] is now: the spans are told by the asker's clock,
// and so is the answer. Two clocks may differ by any time.
func (r *Recorder) BetweenAt(from, to, now time.Time) *Recording {
	ahead := r.Now().Sub(now)
	rec := r.Between(from.Add(ahead), to.Add(ahead))
	rec.Base -= int64(ahead)
	return rec
}

// Now is the clock by which traffic is told: that of the wall at the start, moved on by elapsed time alone.
func (r *Recorder) Now() time.Time { return r.at(r.clock()) }

// at is the wall clock at an instant, by the one reading that was taken at the start.
func (r *Recorder) at(i limit.Instant) time.Time { return time.Unix(0, r.wall+int64(i.Sub(r.start))) }

func (r *Recorder) instant(t time.Time) limit.Instant {
	return r.start.Add(t.Sub(time.Unix(0, r.wall))) // saturates
}

// recording copies a shard's traffic under its lock; whole is since when nothing is missing in it.
func (s *shard) recording(from, to limit.Instant) (_ *Recording, whole limit.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &Recording{traits: traits{Level: s.level, Dropped: s.dropped, Users: make([]user, len(s.users.items)), Kinds: make([]kind, len(s.kinds.items))}}
	for i := range s.users.items {
		out.Users[i] = s.users.items[i].user
	}
	for k, i := range s.kinds.index {
		out.Kinds[i] = k
	}
	for _, e := range s.records {
		if e.at >= from && e.at < to {
			out.records = append(out.records, e)
		}
	}
	return out, s.from
}

// join puts recordings together, of each what lies within the traits' span. Who is not in their sample becomes unsampled load,
// of which there is one record for each kind and step, so that all of it is spread evenly.
func join(all []*Recording, into traits) *Recording {
	out := &Recording{traits: into}
	out.Users = []user{{}}
	users, kinds := map[string]uint32{}, map[kind]uint32{}
	type place struct {
		at   limit.Instant
		kind uint32
	}
	loads := map[place]int{}
	for _, r := range all {
		out.Dropped.add(r.Dropped)
		for _, name := range r.Nodes {
			if !slices.Contains(out.Nodes, name) {
				out.Nodes = append(out.Nodes, name)
			}
		}
		userOf, kindOf := make([]uint32, len(r.Users)), make([]uint32, len(r.Kinds))
		in := make([]bool, len(r.Users))
		for i := range r.Users {
			in[i] = i > 0 && inSample(xxhash.Sum64String(r.Users[i].Name), into.Level)
		}
		for _, e := range r.records {
			k := &r.Kinds[e.kind]
			e.at += limit.Instant(r.Base - into.Base)
			if e.at < 0 || int64(e.at) >= into.Span || !in[e.user] && k.Action == limit.Frame {
				continue
			}
			e.kind = number(kinds, kindOf, e.kind, *k, *k, &out.Kinds)
			if u := r.Users[e.user]; in[e.user] {
				e.user = number(users, userOf, e.user, u.Name, u, &out.Users)
				out.records = append(out.records, e)
				continue
			}
			e.at, e.user, e.conn = floor(e.at, into.Level), 0, 0
			i, known := loads[place{e.at, e.kind}]
			if known && out.records[i].add(&e) {
				continue
			}
			loads[place{e.at, e.kind}] = len(out.records)
			out.records = append(out.records, e)
		}
	}
	slices.SortStableFunc(out.records, func(a, b record) int { return cmp.Compare(a.at, b.at) })
	return out
}

// number returns the place in items of what stood at old before; known has the places by key, and cached those by old, plus 1.
func number[K comparable, V any](known map[K]uint32, cached []uint32, old uint32, key K, v V, items *[]V) uint32 {
	if cached[old] == 0 {
		i, ok := known[key]
		if !ok {
			i = uint32(len(*items))
			known[key] = i
			*items = append(*items, v)
		}
		cached[old] = i + 1
	}
	return cached[old] - 1
}

// Merge puts recordings of different nodes together, all told by one clock, see [Recorder.BetweenAt]. It begins where all nodes that were up
// know their traffic and ends where the first one ends; the sampled share is the smallest, the others' further users
// count as unsampled load. There is one at least.
func Merge(all ...*Recording) *Recording {
	from, to := all[0].Base, all[0].end()
	into := traits{Attrs: true}
	for _, r := range all {
		from, to = min(from, r.Base), min(to, r.end())
		into.Level, into.Cut, into.Attrs = max(into.Level, r.Level), into.Cut || r.Cut, into.Attrs && r.Attrs
	}
	for _, r := range all {
		if r.Cut {
			from = max(from, r.Base)
		}
	}
	into.Base = min(from, to)
	into.Span = to - into.Base
	return join(all, into)
}

// thinned returns the recording at a smaller share.
func (r *Recording) thinned(level uint32) *Recording {
	if level <= r.Level {
		return r
	}
	return join([]*Recording{r}, traits{Base: r.Base, Span: r.Span, Level: level, Cut: r.Cut, Attrs: r.Attrs})
}
