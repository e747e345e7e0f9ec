package presence

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
)

// roster knows the other nodes by what they announced. Its clock is this node's own, so clocks may differ. Nothing is
// kept beyond a node's silence, so nothing can be left behind.
type roster struct {
	self    string
	timeout time.Duration

	count atomic.Int64 // of the nodes alive, this one included; written under mu

	mu     lock.Mutex[lock.Leaf]
	peers  map[string]*peer
	totals map[string]Crowd // per room, over the peers
}

type peer struct {
	incarnation, beat uint64
	heard             time.Time
	rooms             map[string]Crowd // the last that is known for sure, with the changes since
	whole             bool             // rooms are those of the beat, as far as its parts have arrived
	next              map[string]Crowd // of the whole announcement whose parts are arriving, nil between them
	nextPart, parts   int              // of this beat
	asked             time.Time        // when a whole announcement was asked for
}

func newRoster(self string, timeout time.Duration) *roster {
	r := &roster{self: self, timeout: timeout, peers: map[string]*peer{}, totals: map[string]Crowd{}}
	r.count.Store(1)
	return r
}

// hear takes one announcement, and reports whether the node should be asked for all of its rooms, because something
// was missed. What an earlier incarnation says after a later one was heard is ignored.
func (r *roster) hear(a announcement, now time.Time) (ask bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	p := r.peers[a.Node]
	if a.Node == r.self || p != nil && a.Incarnation < p.incarnation {
		return false
	}
	if a.Goodbye {
		if p != nil && a.Incarnation == p.incarnation { // else of one that had no right to the id
			r.dropLocked(a.Node)
			r.count.Add(-1)
		}
		return false
	}
	if p != nil && a.Incarnation > p.incarnation {
		r.dropLocked(a.Node)
		p = nil
	}
	if p == nil {
		p = &peer{incarnation: a.Incarnation, rooms: map[string]Crowd{}}
		r.peers[a.Node] = p
	}
	p.heard = now
	r.count.Store(max(r.count.Load(), int64(1+len(r.peers))))
	r.takePartLocked(p, a)
	if p.whole || p.next != nil || now.Sub(p.asked) < r.timeout/3 {
		return false
	}
	p.asked = now
	return true
}

// settle lets the count of nodes fall to those that are heard of. Only for a node that hears well: a silence of all
// others is more likely its own.
func (r *roster) settle(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	r.count.Store(int64(1 + len(r.peers)))
}

// takePartLocked takes changes at once and the parts of a whole announcement together, when the last one is there.
func (r *roster) takePartLocked(p *peer, a announcement) {
	if a.Beat < p.beat || a.Parts < 1 {
		return
	}
	if a.Beat > p.beat {
		r.beginBeatLocked(p, a)
	}
	if a.Part != p.nextPart || a.Parts != p.parts {
		p.whole, p.next = false, nil // a part was lost, or came again
		return
	}
	p.nextPart++
	switch {
	case a.Whole && p.next != nil:
		for room, v := range a.Rooms {
			p.next[room] = v.crowd()
		}
		if p.nextPart == p.parts {
			r.addLocked(p.rooms, -1)
			p.rooms, p.next, p.whole = p.next, nil, true
			r.addLocked(p.rooms, 1)
		}
	case !a.Whole && p.whole:
		r.changeLocked(p, a.Rooms)
	}
}

func (r *roster) beginBeatLocked(p *peer, a announcement) {
	missed := p.nextPart < p.parts || a.Beat != p.beat+1
	p.beat, p.nextPart, p.parts, p.next = a.Beat, 0, a.Parts, nil
	switch {
	case a.Whole:
		p.next = map[string]Crowd{}
	case missed:
		p.whole = false
	}
}

func (r *roster) changeLocked(p *peer, rooms map[string]announced) {
	for room, v := range rooms {
		now := v.crowd()
		r.addRoomLocked(room, now, 1)
		r.addRoomLocked(room, p.rooms[room], -1)
		if p.rooms[room] = now; now.Sessions == 0 {
			delete(p.rooms, room)
		}
	}
}

func (r *roster) online(room string, now time.Time) Crowd {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	return r.totals[room]
}

func (r *roster) rooms(now time.Time) map[string]Crowd {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	rooms := make(map[string]Crowd, len(r.totals))
	for room, n := range r.totals {
		rooms[room] = n
	}
	return rooms
}

// of returns who a room has on each node.
func (r *roster) of(room string, now time.Time) map[string]Crowd {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	if r.totals[room] == (Crowd{}) {
		return nil
	}
	all := map[string]Crowd{}
	for name, p := range r.peers {
		if c, ok := p.rooms[room]; ok {
			all[name] = c
		}
	}
	return all
}

// has reports whether a node is there that has the room.
func (r *roster) has(node, room string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[node]
	if p == nil {
		return false
	}
	_, yes := p.rooms[room]
	return yes
}

// knows reports whether a node is there, in that start of it.
func (r *roster) knows(node string, incarnation uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[node]
	return p != nil && p.incarnation == incarnation
}

func (r *roster) names(now time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	names := make([]string, 0, len(r.peers))
	for name := range r.peers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *roster) expireLocked(now time.Time) {
	for name, p := range r.peers {
		if now.Sub(p.heard) >= r.timeout {
			r.dropLocked(name)
		}
	}
}

func (r *roster) dropLocked(name string) {
	if p := r.peers[name]; p != nil {
		r.addLocked(p.rooms, -1)
		delete(r.peers, name)
	}
}

func (r *roster) addLocked(rooms map[string]Crowd, sign int) {
	for room, n := range rooms {
		r.addRoomLocked(room, n, sign)
	}
}

func (r *roster) addRoomLocked(room string, n Crowd, sign int) {
	t := r.totals[room]
	t.Sessions += sign * n.Sessions
	t.People += sign * n.People
	if r.totals[room] = t; t == (Crowd{}) {
		delete(r.totals, room)
	}
}

// check returns what is wrong with the roster, for tests.
func (r *roster) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := map[string]Crowd{}
	for _, p := range r.peers {
		for room, n := range p.rooms {
			sums[room] = Crowd{sums[room].Sessions + n.Sessions, sums[room].People + n.People}
		}
	}
	for room, n := range sums {
		if r.totals[room] != n {
			return fmt.Errorf("room %s: total %v, sum over nodes %v", room, r.totals[room], n)
		}
	}
	for room, n := range r.totals {
		if n.Sessions <= 0 || n.People < 0 || sums[room] != n {
			return fmt.Errorf("room %s: total %v, sum over nodes %v", room, n, sums[room])
		}
	}
	return nil
}
