package room

import (
	"net/netip"

	"liveroom/limit"
)

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

func (s *shares) release(e *limit.Entry) {
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
	defer r.shares.release(held)
	f(s)
}
