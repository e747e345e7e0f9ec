package room

import (
	"context"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// enter returns the room of that id, opened, and counts the caller in until exit. create, when not nil, is asked before
// a room comes to be that nobody has seen before.
func (h *Hub) enter(ctx context.Context, id string, create func() *protocol.Error) (*Room, *protocol.Error) {
	for {
		r, got, err := h.claim(id)
		switch {
		case err != nil:
			return nil, err
		case got == claimedNew:
			return h.unlock(ctx, r, create)
		case got == claimedGoing:
			if err := await(ctx, r.gone); err != nil {
				return nil, err
			}
			continue
		}
		if err := await(ctx, r.ready); err != nil {
			h.exit(r)
			return nil, err
		}
		if r.openErr == nil {
			return r, nil
		}
		// Whoever opened it was refused; the caller may have better luck, unless nobody can.
		if r.openErr.Reason == protocol.ReasonTryLater {
			return nil, r.openErr
		}
	}
}

// claimed tells in what state claim found a room.
type claimed uint8

const (
	claimedOpen  claimed = iota // open or opening; the caller is counted in
	claimedNew                  // the caller is counted in and opens it
	claimedGoing                // about to be gone; the caller is not counted in
)

// claim finds a room or puts a new one in the map, which then is the caller's to open.
func (h *Hub) claim(id string) (*Room, claimed, *protocol.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, 0, &protocol.Error{Reason: protocol.ReasonUnavailable}
	}
	if r := h.rooms[id]; r != nil {
		if r.retiring {
			return r, claimedGoing, nil
		}
		r.refs++
		return r, claimedOpen, nil
	}
	if len(h.rooms) >= h.cfg.MaxRooms {
		return nil, 0, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this node has no place for another room"}
	}
	r := newRoom(h, id)
	r.refs = 1
	h.rooms[id] = r
	h.cfg.Metrics.rooms.Set(float64(len(h.rooms)))
	return r, claimedNew, nil
}

// openRetry is the wait told when a room does not open.
const openRetry = time.Second

// unlock opens a room that the caller has claimed.
func (h *Hub) unlock(ctx context.Context, r *Room, create func() *protocol.Error) (*Room, *protocol.Error) {
	err := r.open(ctx, create)
	if err != nil {
		h.mu.Lock()
		r.retiring = true // nobody closes what did not open
		delete(h.rooms, r.id)
		delete(h.idleRooms, r)
		h.cfg.Metrics.rooms.Set(float64(len(h.rooms)))
		h.mu.Unlock()
		r.openErr = err
	}
	close(r.ready)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func await(ctx context.Context, done <-chan struct{}) *protocol.Error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
}

// exit undoes one enter.
func (h *Hub) exit(r *Room) {
	now := h.gate.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.refs--; r.refs == 0 && !r.retiring {
		r.idle = now
		h.idleRooms[r] = struct{}{}
	}
}

// user returns the user of that id and counts the caller in until forgo; nil when the node is full.
func (h *Hub) user(id string) *User {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.users[id]
	if u == nil {
		if len(h.users) >= h.cfg.MaxUsers {
			return nil
		}
		u = newUser(id, &h.cfg)
		h.users[id] = u
		h.cfg.Metrics.users.Set(float64(len(h.users)))
	}
	u.refs++
	return u
}

// forgo undoes one user.
func (h *Hub) forgo(u *User) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u.refs--; u.refs == 0 {
		h.idleUsers[u] = awake
	}
}
