package room

import (
	"maps"
	"slices"

	"liveroom/protocol"
)

// change is what one policy means to those who were in the room under another.
type change struct {
	events  [][]byte // for everybody
	deleted []string // messages
	told    []told   // users to whom something happened
}

// told is what one user's sessions are told or closed with.
type told struct {
	user  string
	below rank // it does not concern this rank and those above
	event []byte
	close *protocol.Refusal
}

// adopt puts stored settings into force, unless newer ones are, and tells the members what changes for them.
func (r *Room) adopt(value []byte, revision uint64) {
	next, err := parsePolicy(value, revision)
	if err != nil {
		r.hub.troubled("settings can't be read, the last good ones stay", r.id, err)
		return
	}
	for {
		old := r.policy.Load()
		if next.revision <= old.revision {
			return
		}
		c := difference(r.id, old, next, r.hub.cfg.Now().UnixMilli())
		if r.replace(old, next, c) {
			return
		}
	}
}

// replace swaps the policy if it is still the old one, and makes the change known.
func (r *Room) replace(old, next *policy, c change) bool {
	type hit struct {
		members []*Member
		told
	}
	hits := make([]hit, 0, len(c.told))
	r.mu.Lock()
	if !r.policy.CompareAndSwap(old, next) {
		r.mu.Unlock()
		return false
	}
	for _, mid := range c.deleted {
		r.history.remove(mid)
	}
	if r.audience.size > 0 {
		for _, e := range c.events {
			r.addLocked(protocol.ClassControl, e, 0)
		}
		for _, t := range c.told {
			hits = append(hits, hit{r.audience.of(t.user, nil), t})
		}
	}
	r.mu.Unlock()
	for _, h := range hits {
		for _, m := range h.members {
			if rankOf(m.who.Load().Role) < h.below {
				m.tell(h.told)
			}
		}
	}
	return true
}

func (m *Member) tell(t told) {
	if t.close != nil {
		m.session.Close(*t.close)
		return
	}
	m.session.Control(t.event)
}

// difference works out what a new policy changes. now is Unix ms.
func difference(id string, old, next *policy, now int64) change {
	var c change
	for _, mid := range slices.Sorted(maps.Keys(next.deleted)) {
		if _, before := old.deleted[mid]; !before {
			c.deleted = append(c.deleted, mid)
			c.events = append(c.events, protocol.AppendDeleted(nil, mid))
		}
	}
	if !next.shows(old) {
		c.events = append(c.events, protocol.AppendRoom(nil, next.state(id)))
	}
	for user, s := range next.muted {
		if left, yes := s.left(now); yes && old.muted[user] != s {
			c.told = append(c.told, told{user: user, below: s.by, event: protocol.AppendMuted(nil, int((left+999)/1000))})
		}
	}
	for user, s := range old.muted {
		if _, yes := s.left(now); !yes {
			continue
		}
		if _, still := next.muted[user]; !still {
			c.told = append(c.told, told{user: user, below: s.by, event: protocol.AppendMuted(nil, 0)})
		}
	}
	for user, s := range next.banned {
		was, known := old.banned[user]
		_, before := was.left(now)
		if _, yes := s.left(now); yes && !(known && before && was.by >= s.by) {
			c.told = append(c.told, told{user: user, below: s.by, close: &protocol.Refusal{Code: protocol.CloseForbidden, Detail: "banned"}})
		}
	}
	return c
}
