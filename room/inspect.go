package room

import (
	"context"

	"liveroom/limit"
	"liveroom/protocol"
)

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
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.places {
		if p.room == room {
			inRoom = &p.subject
		}
	}
	return &u.subject, inRoom
}

// Hold calls f with the subjects of a user in a room, as [Hub.Subjects] has them, but makes and keeps what is not here
// yet, so that what f spends stays spent. An empty room or user leaves theirs out.
func (h *Hub) Hold(ctx context.Context, room, user string, create func() *protocol.Error, f func([]*limit.Subject)) *protocol.Error {
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
		u, p, err := h.seat(r, user)
		if err != nil {
			return err
		}
		defer h.unseat(u, p)
		f([]*limit.Subject{&u.subject, &p.subject, &r.subject, &h.global})
		return nil
	})
}
