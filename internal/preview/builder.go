package preview

import (
	"cmp"
	"slices"

	"liveroom/limit"
)

// builder fills a Recording: it keeps tables without doubles and holds to "events and rest together are everybody".
type builder struct {
	rec   *Recording
	nodes map[string]uint32
	users map[string]uint32
	kinds map[kind]uint32
	rest  map[restKey]*load
}

type restKey struct {
	at   int64
	kind uint32
}

func newBuilder(rec *Recording) *builder {
	b := &builder{
		rec: rec, nodes: map[string]uint32{}, users: map[string]uint32{}, kinds: map[kind]uint32{}, rest: map[restKey]*load{},
	}
	for i, name := range rec.nodes {
		b.nodes[name] = uint32(i)
	}
	return b
}

func intern[K comparable, V any](known map[K]uint32, items *[]V, key K, v V) uint32 {
	i, ok := known[key]
	if !ok {
		i = uint32(len(*items))
		known[key] = i
		*items = append(*items, v)
	}
	return i
}

func (b *builder) kind(k kind) uint32 { return intern(b.kinds, &b.rec.kinds, k, k) }

func (b *builder) user(u user) uint32 { return intern(b.users, &b.rec.users, u.Name, u) }

// load adds n requests, which may be below zero, to what is not sampled.
func (b *builder) load(at int64, kind uint32, n, cost int64, audience uint32) {
	key := restKey{at, kind}
	l := b.rest[key]
	if l == nil {
		l = &load{at: at, kind: kind}
		b.rest[key] = l
	}
	l.n += uint32(n) // modulo 2^32: finish drops what stays below zero
	l.cost += uint64(cost)
	l.audience = max(l.audience, audience)
}

// addPart adds a shard's traffic in [from, to). What is sampled is taken out of everybody's counts.
func (b *builder) addPart(r *Recorder, p *part, from, to limit.Instant) {
	b.rec.dropped.add(p.dropped)
	kinds := make([]uint32, len(p.kinds))
	known := make([]bool, len(p.kinds))
	kindOf := func(i uint32) uint32 {
		if !known[i] {
			kinds[i], known[i] = b.kind(p.kinds[i].kind), true
		}
		return kinds[i]
	}
	at := func(n int64) int64 { return int64(r.stepStart(n).Sub(from)) }
	for i := range p.counts {
		c := &p.counts[i]
		for _, v := range c.items[:c.n] {
			n := c.base + int64(v.step)
			if begin := r.stepStart(n); begin >= from && begin < to && p.kinds[v.kind].live {
				b.load(at(n), kindOf(v.kind), int64(v.n), int64(v.cost), fine(v.audience))
			}
		}
	}
	for i := range p.kinds {
		k := &p.kinds[i]
		if begin := r.stepStart(k.step); k.n > 0 && begin >= from && begin < to {
			b.load(at(k.step), kindOf(uint32(i)), int64(k.n), int64(k.cost), k.audience)
		}
	}
	for _, e := range p.events {
		if e.at < from || e.at >= to || !inSample(p.people[e.user].hash, b.rec.level) || p.people[e.user].Name == "" {
			continue
		}
		k := kindOf(e.kind)
		b.load(at(r.stepOf(e.at)), k, -1, -int64(e.cost), 0)
		e.at, e.user, e.kind = limit.Instant(e.at.Sub(from)), b.user(p.people[e.user].user), k
		b.rec.events = append(b.rec.events, e)
	}
}

// addRecording adds what of r lies within the span.
func (b *builder) addRecording(r *Recording) {
	b.rec.dropped.add(r.dropped)
	shift := r.base - b.rec.base
	kinds := make([]uint32, len(r.kinds))
	for i, k := range r.kinds {
		name := r.nodes[k.Node]
		k.Node = intern(b.nodes, &b.rec.nodes, name, name)
		kinds[i] = b.kind(k)
	}
	in := make([]bool, len(r.users))
	for i := range r.users {
		in[i] = inSample(r.users[i].hash(), b.rec.level)
	}
	for i := range r.rest {
		l := &r.rest[i]
		if at := l.at + shift; at >= 0 && at < b.rec.span {
			b.load(at, kinds[l.kind], int64(l.n), int64(l.cost), l.audience)
		}
	}
	for _, e := range r.events {
		at := int64(e.at) + shift
		switch k := kinds[e.kind]; {
		case at < 0 || at >= b.rec.span:
		case in[e.user]:
			e.at, e.user, e.kind = limit.Instant(at), b.user(r.users[e.user]), k
			b.rec.events = append(b.rec.events, e)
		default:
			b.load(at-at%int64(step), k, 1, int64(e.cost), e.audience)
		}
	}
}

func (b *builder) finish() {
	rec := b.rec
	slices.SortStableFunc(rec.events, byTime)
	for _, l := range b.rest {
		if n := int32(l.n); n > 0 && l.at >= 0 {
			l.cost = uint64(max(int64(l.cost), 0))
			rec.rest = append(rec.rest, *l)
		}
	}
	slices.SortFunc(rec.rest, func(a, b load) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind)) })
}
