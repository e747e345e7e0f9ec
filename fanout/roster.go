package fanout

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// roster knows the other nodes by what they announced. Its clock is this node's own, so clocks may differ. Nothing is
// kept beyond a node's silence, so nothing can be left behind.
type roster struct {
	self    string
	timeout time.Duration

	count atomic.Int64 // of the nodes alive, this one included; written under mu

	mu     sync.Mutex
	peers  map[string]*peer
	totals map[string]int // members per room, over the peers
}

type peer struct {
	incarnation, snapshot uint64
	heard                 time.Time
	rooms                 map[string]int // the last whole snapshot
	next                  map[string]int // of the snapshot whose parts are arriving
	nextParts             int
}

func newRoster(self string, timeout time.Duration) *roster {
	r := &roster{self: self, timeout: timeout, peers: map[string]*peer{}, totals: map[string]int{}}
	r.count.Store(1)
	return r
}

// hear takes one announcement. What an earlier incarnation says after a later one was heard is ignored.
func (r *roster) hear(a announcement, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	p := r.peers[a.Node]
	if a.Node == r.self || p != nil && a.Incarnation < p.incarnation {
		return
	}
	if a.Goodbye {
		if p != nil {
			r.dropLocked(a.Node)
			r.count.Add(-1)
		}
		return
	}
	if p != nil && a.Incarnation > p.incarnation {
		r.dropLocked(a.Node)
		p = nil
	}
	if p == nil {
		p = &peer{incarnation: a.Incarnation}
		r.peers[a.Node] = p
	}
	p.heard = now
	r.count.Store(max(r.count.Load(), int64(1+len(r.peers))))
	r.takePartLocked(p, a)
}

// settle lets the count of nodes fall to those that are heard of. Only for a node that hears well: a silence of all
// others is more likely its own.
func (r *roster) settle(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	r.count.Store(int64(1 + len(r.peers)))
}

// takePartLocked gathers the parts of a snapshot, which arrive in order, and replaces the last one when it is whole.
func (r *roster) takePartLocked(p *peer, a announcement) {
	if a.Snapshot < p.snapshot || a.Parts < 1 {
		return
	}
	if a.Snapshot > p.snapshot {
		p.snapshot, p.next, p.nextParts = a.Snapshot, map[string]int{}, 0
	}
	if p.next == nil || a.Part != p.nextParts {
		return // a part was lost: the last whole snapshot stays
	}
	p.nextParts++
	for room, v := range a.Rooms {
		p.next[room] = v.online()
	}
	if p.nextParts < a.Parts {
		return
	}
	r.addLocked(p.rooms, -1)
	p.rooms, p.next = p.next, nil
	r.addLocked(p.rooms, 1)
}

func (r *roster) online(room string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	return r.totals[room]
}

func (r *roster) rooms(now time.Time) map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expireLocked(now)
	rooms := make(map[string]int, len(r.totals))
	for room, n := range r.totals {
		rooms[room] = n
	}
	return rooms
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

func (r *roster) addLocked(rooms map[string]int, sign int) {
	for room, n := range rooms {
		if r.totals[room] += sign * n; r.totals[room] == 0 {
			delete(r.totals, room)
		}
	}
}

// check returns what is wrong with the roster, for tests.
func (r *roster) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	sums := map[string]int{}
	for _, p := range r.peers {
		for room, n := range p.rooms {
			sums[room] += n
		}
	}
	for room, n := range sums {
		if r.totals[room] != n {
			return fmt.Errorf("room %s: total %d, sum over nodes %d", room, r.totals[room], n)
		}
	}
	for room, n := range r.totals {
		if n <= 0 || sums[room] != n {
			return fmt.Errorf("room %s: total %d, sum over nodes %d", room, n, sums[room])
		}
	}
	return nil
}
