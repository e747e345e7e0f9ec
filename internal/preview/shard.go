package preview

import (
	"strings"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

const (
	// step is the length of the intervals in which everybody's requests are counted.
	step = 10 * time.Millisecond
	// mostPerSecond is how many requests of one user are kept in a second; the rest counts as unsampled load. It keeps
	// one flooding connection from costing everybody's share.
	mostPerSecond = 100
	// mostConns is how many live connections of one user are told apart.
	mostConns = 16
	// maxName bounds user, room, role and route names that are kept.
	maxName = 256

	noIndex = ^uint32(0)
)

// Dropped counts what a Recorder could not keep.
type Dropped struct {
	// Flood is requests of sampled users beyond what is kept of one user in a second; they count as unsampled load.
	Flood int64 `json:"flood"`
	// Thinned is requests that were given up because the sampled share was halved.
	Thinned int64 `json:"thinned"`
	// Oldest is requests and steps that were given up before their time, because halving did not help.
	Oldest int64 `json:"oldest"`
	// Names is requests of new users or rooms for whose names there was no room.
	Names int64 `json:"names"`
}

func (d *Dropped) add(o Dropped) {
	d.Flood += o.Flood
	d.Thinned += o.Thinned
	d.Oldest += o.Oldest
	d.Names += o.Names
}

// shard holds the users of a sixteenth of the hashes, and what they did.
type shard struct {
	// mostName bounds the bytes of names; fixed after construction.
	mostName int64

	// full is how much of the room for events or names, whichever has less, was used at the last sweep, in thousandths.
	// Recorder.relax reads it.
	full atomic.Int64

	mu      lock.Mutex[lock.Shard]
	newest  limit.Instant
	from    limit.Instant // since when nothing is missing
	swept   limit.Instant
	level   uint32 // of the events held
	users   map[uint64]uint32
	people  []person
	noUser  []uint32 // free places in people
	rooms   map[string]*place
	kinds   []counted
	noKind  []uint32 // free places in kinds
	events  log[event]
	counts  log[count]
	named   int64
	dropped Dropped

	_ [64]byte // the next shard's mutex is on another cache line
}

// person is a sampled user.
type person struct {
	user
	hash   uint64
	seen   limit.Instant
	conns  []connID
	conn   uint16 // ordinal of the newest connection
	second int64
	n      int // requests in that second
}

type connID struct {
	addr    uintptr
	ordinal uint16
}

// place is a room with its kinds of requests.
type place struct {
	name  string
	kinds []uint32
}

// counted is a kind of request with the count of the step under way.
type counted struct {
	kind
	live     bool
	seen     limit.Instant
	step     int64
	n        uint16
	audience uint32
	cost     uint32
}

// event is one request of a sampled user.
type event struct {
	at       limit.Instant
	user     uint32
	kind     uint32
	cost     uint32
	audience uint32
	conn     uint16 // ordinal among the user's connections on the node, 0 for none
	verdict  uint8
}

// count is the requests of one kind in one step.
type count struct {
	step     int32 // from the chunk's base
	kind     uint32
	cost     uint32
	n        uint16
	audience uint16 // see coarse
}

// The accounted bytes of a person, a connection, a room and a kind without their names, with their share of maps, growing
// slices and free lists.
const (
	personBytes = 208
	connBytes   = 16
	placeBytes  = 96
	kindBytes   = 136
)

func (k *kind) bytes() int64 { return kindBytes + int64(len(k.Role)+len(k.Route)) }

func (p *place) bytes() int64 { return placeBytes + int64(len(p.name)) }

func (s *shard) init(r *Recorder, bytes int64) {
	s.mostName = bytes * 3 / 8
	s.events.init(int(bytes * 3 / 8 / eventChunkBytes))
	s.counts.init(int(bytes / 4 / countChunkBytes))
	s.users, s.rooms = map[uint64]uint32{}, map[string]*place{}
	s.newest, s.from, s.swept = r.start, r.start, r.start
	s.level = r.level.Load()
}

func (s *shard) bytesLocked() int64 {
	return s.events.len64()*eventChunkBytes + s.counts.len64()*countChunkBytes + s.named
}

func (s *shard) observeLocked(r *Recorder, o *limit.Observed, name string, hash uint64) {
	s.newest = max(s.newest, o.Now)
	if s.newest.Sub(s.swept) > r.cfg.Window/8 {
		s.sweepLocked(r)
	}
	k := s.kindLocked(o)
	if k == noIndex {
		s.dropped.Names++
		return
	}
	cost := uint32(min(o.Request.Cost, 1<<32-1))
	audience := uint32(min(max(o.Request.Audience, 0), 1<<32-1))
	s.countLocked(r, k, o.Now, cost, audience)
	if name == "" || !inSample(hash, max(r.level.Load(), s.level)) {
		return
	}
	u := s.personLocked(r, o, name, hash)
	if u == noIndex {
		s.dropped.Names++
		return
	}
	p := &s.people[u]
	if !p.may(o.Now) {
		s.dropped.Flood++
		return
	}
	e := event{
		at: o.Now, user: u, kind: k, cost: cost, audience: audience, verdict: uint8(o.Decision.Verdict),
		conn: s.connLocked(p, o),
	}
	s.keepLocked(r, e)
}

// may counts a request of the user in its second, and tells whether it is one of those that are kept.
func (p *person) may(now limit.Instant) bool {
	if second := int64(now) / int64(time.Second); second != p.second {
		p.second, p.n = second, 0
	}
	p.n++
	return p.n <= mostPerSecond
}

func (s *shard) kindLocked(o *limit.Observed) uint32 {
	q := &o.Request
	at := s.rooms[q.Room]
	if at != nil {
		for _, i := range at.kinds {
			if k := &s.kinds[i]; k.is(o) {
				k.seen = max(k.seen, o.Now)
				return i
			}
		}
	}
	fresh := counted{live: true, seen: o.Now, kind: kind{
		Role: q.Role, Route: q.Route, Action: q.Action, Scopes: uint8(o.Scopes), Unnamed: q.User == "",
	}}
	cost := fresh.bytes()
	if at == nil {
		cost += placeBytes + int64(len(q.Room))
	}
	if s.named+cost > s.mostName || max(len(q.Room), len(q.Role), len(q.Route)) > maxName {
		return noIndex
	}
	s.named += cost
	if at == nil {
		at = &place{name: strings.Clone(q.Room)}
		s.rooms[at.name] = at
	}
	fresh.Room, fresh.Role, fresh.Route = at.name, strings.Clone(q.Role), strings.Clone(q.Route)
	i := take(&s.kinds, &s.noKind, fresh)
	at.kinds = append(at.kinds, i)
	return i
}

func (k *counted) is(o *limit.Observed) bool {
	q := &o.Request
	return k.Action == q.Action && k.Scopes == uint8(o.Scopes) && k.Unnamed == (q.User == "") && k.Role == q.Role && k.Route == q.Route
}

// take puts v in a free place of items, or at their end.
func take[T any](items *[]T, free *[]uint32, v T) uint32 {
	if n := len(*free); n > 0 {
		i := (*free)[n-1]
		*free = (*free)[:n-1]
		(*items)[i] = v
		return i
	}
	*items = append(*items, v)
	return uint32(len(*items) - 1)
}

func (s *shard) personLocked(r *Recorder, o *limit.Observed, name string, hash uint64) uint32 {
	if i, ok := s.users[hash]; ok {
		s.people[i].seen = max(s.people[i].seen, o.Now)
		return i
	}
	cost := personBytes + int64(len(name))
	if len(name) > maxName {
		return noIndex
	}
	if s.named+cost > s.mostName {
		s.thinLocked(r)
		if s.named+cost > s.mostName || !inSample(hash, s.level) {
			return noIndex
		}
	}
	s.named += cost
	i := take(&s.people, &s.noUser, person{
		user: user{Name: strings.Clone(name), Addr: o.Request.Addr}, hash: hash, seen: o.Now,
	})
	s.users[hash] = i
	return i
}

// connLocked returns the ordinal of the connection that asked. A join begins a new one, since an address comes back.
func (s *shard) connLocked(p *person, o *limit.Observed) uint16 {
	if o.Conn == 0 {
		return 0
	}
	at := -1
	for i := range p.conns {
		if p.conns[i].addr == o.Conn {
			at = i
		}
	}
	if at >= 0 && o.Request.Action != limit.Join {
		return p.conns[at].ordinal
	}
	p.conn = max(p.conn+1, 1)
	fresh := connID{addr: o.Conn, ordinal: p.conn}
	switch {
	case at >= 0:
		p.conns[at] = fresh
	case len(p.conns) < mostConns && s.named+connBytes <= s.mostName:
		s.named += connBytes
		p.conns = append(p.conns, fresh)
	case len(p.conns) > 0:
		copy(p.conns, p.conns[1:])
		p.conns[len(p.conns)-1] = fresh
	}
	return p.conn
}
