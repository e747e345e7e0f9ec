package preview

import (
	"math"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Dropped counts what a Recorder could not keep.
type Dropped struct {
	// Flood is requests of sampled users beyond what is kept of one user in a second; they count as unsampled load.
	Flood int64 `json:"flood"`
	// Thinned is requests that were given up because the sampled share was halved.
	Thinned int64 `json:"thinned"`
	// Oldest is requests that were given up before their time, because halving did not help.
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

// record is one request of a sampled user, or all of one kind that others made within a step.
type record struct {
	at       limit.Instant // of a step: its beginning
	user     uint32        // 0: not sampled
	kind     uint32
	n        uint32 // requests; 1 of a sampled user
	cost     uint32 // of all n
	audience uint32
	conn     uint32 // tells a user's connections apart; 0 for none
}

// add takes in another load of the same step, unless the sum would be too large.
func (e *record) add(o *record) bool {
	if e.cost+o.cost < e.cost || e.n+o.n > maxInStep {
		return false
	}
	e.n, e.cost, e.audience = e.n+o.n, e.cost+o.cost, max(e.audience, o.audience)
	return true
}

// kind is what many requests have in common.
type kind struct {
	Room, Role, Route string
	Action            limit.Action
	Scopes            uint16 // bit 1<<limit.Scope
	Refused           bool   // a frame that was refused: what was in it is not known
}

func (k *kind) asked(s limit.Scope) bool { return k.Scopes>>s&1 == 1 }

// user is a sampled one.
type user struct {
	Name  string
	Addr  netip.Addr
	Attrs string `json:",omitempty"` // the last that were seen
}

// shard holds the users of a sixteenth of the hashes, and what they did.
type shard struct {
	// Fixed after construction.
	most      int   // records
	mostNamed int64 // bytes of names

	// full is how much of the room for records or names, whichever has less, was used at the last sweep, in thousandths.
	// Recorder.relax reads it.
	full atomic.Int64

	mu      lock.Mutex[lock.Shard]
	newest  limit.Instant
	from    limit.Instant // since when nothing is missing
	swept   limit.Instant
	level   uint32 // of the records held
	users   table[uint64, person]
	kinds   table[kind, counted]
	named   int64    // bytes of users and kinds
	records []record // nearly in order of time
	gone    uint64   // how many were taken from the front, so that each keeps its number
	dropped Dropped

	_ [64]byte // the next shard's mutex is on another cache line
}

// person is a sampled user.
type person struct {
	user
	seen   limit.Instant
	second int64
	n      int // messages in that second
}

// counted is a kind with the step under way.
type counted struct {
	seen limit.Instant
	open uint64 // the number, from 1, of the record that counts it
}

// table numbers what it holds, from 1, and gives numbers out again.
type table[K comparable, V any] struct {
	index map[K]uint32
	items []V
	free  []uint32
}

func (t *table[K, V]) put(key K, v V) uint32 {
	if t.index == nil {
		t.index, t.items = map[K]uint32{}, make([]V, 1)
	}
	i := uint32(len(t.items))
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
		t.items[i] = v
	} else {
		t.items = append(t.items, v)
	}
	t.index[key] = i
	return i
}

// sift forgets what keep does not say yes to.
func (t *table[K, V]) sift(keep func(K, *V) bool) {
	for key, i := range t.index {
		if !keep(key, &t.items[i]) {
			delete(t.index, key)
			clear(t.items[i : i+1])
			t.free = append(t.free, i)
		}
	}
}

// The accounted bytes of a record, and of a user and a kind without their names, with their share of maps, growing slices and
// free lists; and of a shard itself.
const (
	recordBytes = int64(unsafe.Sizeof(record{}))
	personBytes = 192
	kindBytes   = 240
	shardBytes  = int64(unsafe.Sizeof(shard{}))
)

func (p *person) bytes() int64 { return personBytes + int64(len(p.Name)+len(p.Attrs)) }
func (k *kind) bytes() int64   { return kindBytes + int64(len(k.Room)+len(k.Role)+len(k.Route)) }

// mostPerSecond is how many messages of one user are kept in a second; the rest counts as unsampled load. It keeps
// one flooding connection from costing everybody's share.
const mostPerSecond = 100

func (s *shard) init(start limit.Instant, bytes int64) {
	bytes -= shardBytes
	s.mostNamed = bytes * 3 / 8
	s.most = int((bytes - s.mostNamed) / recordBytes)
	s.newest, s.from, s.swept = start, start, start
}

func (s *shard) observeLocked(r *Recorder, o *limit.Observed, hash uint64) {
	s.newest = max(s.newest, o.Now)
	if s.newest.Sub(s.swept) > r.window/8 {
		s.sweepLocked(r)
	}
	if len(s.records) == cap(s.records) {
		s.makeRoomLocked(r)
	}
	q := &o.Request
	e := record{
		at: o.Now, kind: s.kindLocked(o), n: 1, cost: uint32(min(q.Cost, math.MaxUint32)), audience: uint32(min(max(q.Audience, 0), math.MaxUint32)),
	}
	if e.kind == 0 {
		s.dropped.Names++
		return
	}
	if inSample(hash, max(r.level.Load(), s.level)) {
		switch i := s.personLocked(r, o, hash); {
		case i == 0:
			s.dropped.Names++
		case !s.users.items[i].may(o):
			s.dropped.Flood++
		default:
			e.user, e.conn = i, r.conn(o.Conn)
		}
	}
	s.addLocked(e, q.Action == limit.Frame)
}

// conn tells one connection of a user from another, as long as both are there.
func (r *Recorder) conn(addr uintptr) uint32 {
	if addr == 0 {
		return 0
	}
	x := (uint64(addr) ^ r.salt) * 0x9e3779b97f4a7c15
	return uint32(x>>32) | 1
}

// may counts a message of the user in its second, and tells whether it is one of those that are kept. Its frame is counted with it.
func (p *person) may(o *limit.Observed) bool {
	if second := int64(o.Now) / int64(time.Second); second != p.second {
		p.second, p.n = second, 0
	}
	if o.Request.Action != limit.Frame || o.Decision.Verdict == limit.Reject {
		p.n++
		return p.n <= mostPerSecond
	}
	return p.n < mostPerSecond
}

// addLocked appends a record, for which there is room. Those of users who are not sampled go into their step's. Their frames press on
// nothing but their own connections.
func (s *shard) addLocked(e record, frame bool) {
	if e.user == 0 {
		if frame {
			return
		}
		k := &s.kinds.items[e.kind]
		e.at = floor(e.at, s.level)
		if k.open > s.gone {
			if open := &s.records[k.open-s.gone-1]; open.at == e.at && open.add(&e) {
				return
			}
		}
		k.open = s.gone + uint64(len(s.records)) + 1
	}
	s.records = append(s.records, e)
}

// pastLocked is the instant before which traffic is past its time. Two steps more than the window are kept, since the
// window's beginning is rounded down to a step.
func (s *shard) pastLocked(r *Recorder) limit.Instant {
	return s.newest.Add(-r.window - 2*longestStep)
}

// makeRoomLocked gives up what is past its time, else takes more memory, else halves the sampled share, else gives up the
// oldest: an eighth at least, so that records are moved a few times and no more.
func (s *shard) makeRoomLocked(r *Recorder) {
	const least = 512
	s.forgetPastLocked(r)
	free := func() bool { return cap(s.records)-len(s.records) > cap(s.records)/8 }
	if free() {
		return
	}
	if cap(s.records) < s.most {
		s.resizeLocked(min(max(2*cap(s.records), least), s.most))
		return
	}
	sampled := 0
	for i := range s.records {
		if s.records[i].user != 0 {
			sampled++
		}
	}
	if sampled > len(s.records)/2 { // else it is others' steps that take the room
		s.thinLocked(r)
	}
	if !free() {
		n := len(s.records) / 8
		for _, e := range s.records[:n] {
			s.dropped.Oldest += int64(e.n)
			s.from = max(s.from, e.at.Add(stepOf(s.level)))
		}
		s.dropLocked(n)
	}
}

func (s *shard) resizeLocked(size int) {
	s.records = append(make([]record, 0, size), s.records...)
}

func (s *shard) dropLocked(n int) {
	s.records = s.records[:copy(s.records, s.records[n:])]
	s.gone += uint64(n)
}

func (s *shard) forgetPastLocked(r *Recorder) {
	n, past := 0, s.pastLocked(r)
	for n < len(s.records) && s.records[n].at < past {
		n++
	}
	s.dropLocked(n)
}

// thinLocked brings the shard to the share in force, which it halves when the shard is there already.
func (s *shard) thinLocked(r *Recorder) {
	if s.level >= r.level.Load() {
		r.raise(s.level)
	}
	level := max(r.level.Load(), s.level)
	if level == s.level {
		return
	}
	s.level = level
	out := make([]bool, len(s.users.items))
	for hash, i := range s.users.index {
		out[i] = !inSample(hash, level)
	}
	frames := make([]bool, len(s.kinds.items))
	for k, i := range s.kinds.index {
		frames[i], s.kinds.items[i].open = k.Action == limit.Frame, 0
	}
	all := s.records
	s.records, s.gone = s.records[:0], 0
	for _, e := range all { // what is written lies never ahead of what is read
		if out[e.user] {
			e.user, e.conn = 0, 0
			s.dropped.Thinned++
		}
		s.addLocked(e, frames[e.kind])
	}
	s.users.sift(func(hash uint64, p *person) bool { return s.keepLocked(p.bytes(), inSample(hash, level)) })
}

// keepLocked passes on whether something is kept, and gives its bytes back if not.
func (s *shard) keepLocked(bytes int64, keep bool) bool {
	if !keep {
		s.named -= bytes
	}
	return keep
}

// sweepLocked forgets who and what was not seen within the window, and lets more users in when there is room.
func (s *shard) sweepLocked(r *Recorder) {
	s.swept = s.newest
	past := s.pastLocked(r)
	s.level = min(s.level, r.level.Load())
	s.forgetPastLocked(r)
	if n := len(s.records); n < cap(s.records)/4 {
		s.resizeLocked(2 * n)
	}
	s.users.sift(func(_ uint64, p *person) bool { return s.keepLocked(p.bytes(), p.seen >= past) })
	s.kinds.sift(func(k kind, c *counted) bool { return s.keepLocked(k.bytes(), c.seen >= past) })
	s.full.Store(max(int64(len(s.records))*1000/int64(s.most), s.named*1000/s.mostNamed))
	r.relax(s.newest)
}

// kindLocked returns a request's kind, 0 when there is no room for it.
func (s *shard) kindLocked(o *limit.Observed) uint32 {
	q := &o.Request
	k := kind{
		Room: q.Room, Role: q.Role, Route: q.Route, Action: q.Action, Scopes: o.Scopes,
		Refused: q.Action == limit.Frame && o.Decision.Verdict == limit.Reject,
	}
	if i, ok := s.kinds.index[k]; ok {
		s.kinds.items[i].seen = max(s.kinds.items[i].seen, o.Now)
		return i
	}
	if s.named+k.bytes() > s.mostNamed || max(len(q.Room), len(q.Role), len(q.Route)) > maxName {
		return 0
	}
	k.Room, k.Role, k.Route = strings.Clone(k.Room), strings.Clone(k.Role), strings.Clone(k.Route)
	s.named += k.bytes()
	return s.kinds.put(k, counted{seen: o.Now})
}

// personLocked returns who asked, 0 when there is no room.
func (s *shard) personLocked(r *Recorder, o *limit.Observed, hash uint64) uint32 {
	if i, ok := s.users.index[hash]; ok {
		p := &s.users.items[i]
		p.seen = max(p.seen, o.Now)
		if told := o.Request.Traits.Attrs(); told != p.Attrs && has(o) && len(told) <= maxName {
			s.named += int64(len(told) - len(p.Attrs))
			p.Attrs = told
		}
		return i
	}
	p := person{user: user{Name: o.Request.User, Addr: o.Request.Addr}, seen: o.Now}
	if len(p.Name) > maxName {
		return 0
	}
	if told := o.Request.Traits.Attrs(); len(told) <= maxName {
		p.Attrs = told
	}
	if s.named+p.bytes() > s.mostNamed {
		s.thinLocked(r)
		if s.named+p.bytes() > s.mostNamed || !inSample(hash, s.level) {
			return 0
		}
	}
	p.Name = strings.Clone(p.Name)
	s.named += p.bytes()
	return s.users.put(hash, p)
}

// has reports whether rules for users with some attributes may be asked about a request: then it has all that its user has.
func has(o *limit.Observed) bool {
	a := o.Request.Action
	return a != limit.Connect && a != limit.Frame && a != limit.API
}
