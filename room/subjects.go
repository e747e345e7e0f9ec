package room

import (
	"context"
	"net/netip"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// ask puts a message to the gate: connection, user, user in the room, address, network, room and everything, all or
// nothing. What it does not reject is to be released when it is over.
func (r *Room) ask(now limit.Instant, by *Speaker, a limit.Action, cost int64) limit.Decision {
	q := r.request(by, a, cost)
	var all [mostSubjects]*limit.Subject
	asked, share := r.subjects(all[:0], now, by, a)
	d := r.hub.gate.Decide(now, &q, asked...)
	r.shares.leave(share)
	return d
}

// giveBack returns the slots that rules of concurrency gave at the instant asked.
func (r *Room) giveBack(asked limit.Instant, by *Speaker, a limit.Action, cost int64) {
	q := r.request(by, a, cost)
	var all [mostSubjects]*limit.Subject
	paid, share := r.subjects(all[:0], asked, by, a)
	r.hub.gate.Release(asked, &q, paid...)
	r.shares.leave(share)
}

// mostSubjects is one of each scope that a room asks.
const mostSubjects = 8

// subjects appends who and what pays for a message, in the order of scopes. Those that many share are left out while no
// rule asks them, since each is a lock for all; but for a join, whose members are counted whatever the rules.
// The network's share of the room, if any is asked, is to be released.
func (r *Room) subjects(all []*limit.Subject, now limit.Instant, by *Speaker, a limit.Action) ([]*limit.Subject, *limit.Entry) {
	if by.conn != nil {
		all = append(all, by.conn)
	}
	all = append(all, &by.user.subject, &by.place.subject)
	rules := r.hub.gate.Rules()
	for _, s := range by.networks {
		if rules.Asks(a, s.Scope) {
			all = append(all, s)
		}
	}
	all = append(all, &r.subject)
	if a.Lasts() || rules.Asks(a, limit.ScopeGlobal) {
		all = append(all, &r.hub.global)
	}
	if len(by.networks) == 0 || !rules.Asks(a, limit.ScopeNetRoom) {
		return all, nil
	}
	s, share := r.shares.of(now, by.addr)
	return append(all, s), share
}

func (r *Room) request(by *Speaker, a limit.Action, cost int64) limit.Request {
	return limit.Request{
		Action: a, Cost: cost, Role: string(by.who.Role), User: by.who.User, Room: r.id, Addr: by.addr, Traits: by.who.Traits,
		Audience: r.Online(), Crowd: r.crowds.of(by),
	}
}

// crowds count the sessions that each network has in a room on this node. mu is a leaf.
type crowds struct {
	mu lock.Mutex[lock.Leaf]
	by map[netip.Prefix]int
}

// of is how many the speaker's network has; 0 for whom a back end speaks.
func (c *crowds) of(by *Speaker) int {
	if len(by.networks) == 0 {
		return 0
	}
	network := limit.NetPrefix(by.addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[network]
}

// count counts a session in or out.
func (c *crowds) count(addr netip.Addr, step int) {
	network := limit.NetPrefix(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[netip.Prefix]int{}
	}
	if c.by[network] += step; c.by[network] == 0 {
		delete(c.by, network)
	}
}

// mostShares bounds the networks that a room remembers at a time. Each is forgotten once its buckets are full again, seconds after its
// last message by the rules that ship.
const mostShares = 4096

// shares keeps what each network has used of its share of one room, and goes with the room.
type shares struct {
	table *limit.Table[netip.Prefix]
	rest  limit.Subject // what networks beyond mostShares use together
}

func newShares() *shares {
	return &shares{limit.NewTable[netip.Prefix](limit.ScopeNetRoom, mostShares), limit.Subject{Scope: limit.ScopeNetRoom}}
}

// of returns the buckets of the network around an address, and what is to be released.
func (s *shares) of(now limit.Instant, addr netip.Addr) (*limit.Subject, *limit.Entry) {
	if e, ok := s.table.Acquire(now, limit.NetPrefix(addr)); ok {
		return &e.Subject, e
	}
	return &s.rest, nil
}

func (s *shares) leave(e *limit.Entry) {
	if e != nil {
		s.table.Release(e)
	}
}

// Share calls f with what the network around an address has of a room on this node, or with what a new one would have.
func (h *Hub) Share(room string, addr netip.Addr, f func(*limit.Subject)) {
	r, ok := h.Room(room)
	if !ok {
		f(&limit.Subject{Scope: limit.ScopeNetRoom})
		return
	}
	s, held := r.shares.of(h.gate.Now(), addr)
	defer r.shares.leave(held)
	f(s)
}

// Subjects returns what a request of user in room would be asked of on this node, connections aside, in the order of
// scopes; the last is that of everything. An empty room or user leaves theirs out. Who or what is not here has buckets like a new one.
func (h *Hub) Subjects(room, user string) []*limit.Subject {
	var out []*limit.Subject
	if user != "" {
		u, p := h.find(room, user)
		out = append(out, u)
		if room != "" {
			out = append(out, p)
		}
	}
	if room != "" {
		s := &limit.Subject{Scope: limit.ScopeRoom}
		if r, ok := h.Room(room); ok {
			s = &r.subject
		}
		out = append(out, s)
	}
	return append(out, &h.global)
}

// find returns the buckets of a user and of its place in a room, new ones where there are none.
func (h *Hub) find(room, user string) (inAll, inRoom *limit.Subject) {
	inAll, inRoom = &limit.Subject{Scope: limit.ScopeUser}, &limit.Subject{Scope: limit.ScopeUserRoom}
	h.mu.Lock()
	u := h.users[user]
	h.mu.Unlock()
	if u == nil {
		return inAll, inRoom
	}
	if p := u.placeIn(room); p != nil {
		inRoom = &p.subject
	}
	return &u.subject, inRoom
}

// WithSubjects calls f with the subjects of a user in a room, as [Hub.Subjects] has them, but makes and keeps what is not here
// yet, so that what f spends stays spent. An empty room or user leaves theirs out.
func (h *Hub) WithSubjects(ctx context.Context, room, user string, create func() *protocol.Error, f func([]*limit.Subject)) *protocol.Error {
	switch {
	case room == "" && user == "":
		f([]*limit.Subject{&h.global})
		return nil
	case room == "":
		u := h.user(user)
		if u == nil {
			return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this node has no place for another user"}
		}
		defer h.forgo(u)
		f([]*limit.Subject{&u.subject, &h.global})
		return nil
	}
	return h.With(ctx, room, create, func(r *Room) *protocol.Error {
		if user == "" {
			f([]*limit.Subject{&r.subject, &h.global})
			return nil
		}
		u, p, err := h.attach(r, user)
		if err != nil {
			return err
		}
		defer h.detach(u, p)
		f([]*limit.Subject{&u.subject, &p.subject, &r.subject, &h.global})
		return nil
	})
}
