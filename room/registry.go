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
		r, got, err := h.lookUp(id)
		switch {
		case err != nil:
			return nil, err
		case got == foundAbsent:
			return h.openRoom(ctx, r, create)
		case got == foundGoing:
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

// lookedUp is in what state lookUp found a room.
type lookedUp uint8

const (
	foundOpen   lookedUp = iota // open or opening; the caller is counted in
	foundAbsent                 // the caller is counted in and opens it
	foundGoing                  // about to be gone; the caller is not counted in
)

// lookUp finds a room or puts a new one in the map, which then is the caller's to open.
func (h *Hub) lookUp(id string) (*Room, lookedUp, *protocol.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, 0, &protocol.Error{Reason: protocol.ReasonUnavailable}
	}
	if r := h.rooms[id]; r != nil {
		if r.retiring {
			return r, foundGoing, nil
		}
		r.refs++
		return r, foundOpen, nil
	}
	if len(h.rooms) >= h.cfg.MaxRooms {
		return nil, 0, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this node has no place for another room"}
	}
	r := newRoom(h, id)
	r.refs = 1
	h.rooms[id] = r
	h.cfg.Metrics.rooms.Set(float64(len(h.rooms)))
	return r, foundAbsent, nil
}

// openRetry is the wait told when a room does not open.
const openRetry = time.Second

// openRoom opens a room that lookUp has made.
func (h *Hub) openRoom(ctx context.Context, r *Room, create func() *protocol.Error) (*Room, *protocol.Error) {
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

// With calls f with the room, opened when it is not open on this node, and keeps it open meanwhile.
func (h *Hub) With(ctx context.Context, room string, create func() *protocol.Error, f func(*Room) *protocol.Error) *protocol.Error {
	r, err := h.enter(ctx, room, create)
	if err != nil {
		return err
	}
	defer h.exit(r)
	return f(r)
}

// sweep forgets idle rooms and users until the hub ends.
func (h *Hub) sweep() {
	ticker := time.NewTicker(h.cfg.SweepEvery)
	defer ticker.Stop()
	ahead := h.wallAhead()
	for {
		select {
		case <-ticker.C:
			if a := h.wallAhead(); (a - ahead).Abs() >= steppedBy {
				ahead = a
				h.followStep()
			}
			now := h.gate.Now()
			h.forgetRooms(now)
			h.forgetUsers(now)
			h.countPeople()
		case <-h.done:
			return
		}
	}
}

// forgetRooms closes the rooms that have been idle for long enough and have nothing left to remember.
func (h *Hub) forgetRooms(now limit.Instant) {
	var retired []*Room
	h.mu.Lock()
	for r := range h.idleRooms {
		switch {
		case r.refs > 0:
			delete(h.idleRooms, r)
		case now.Sub(r.idle) >= h.cfg.RoomIdle && r.quiet(now):
			delete(h.idleRooms, r)
			r.retiring = true
			retired = append(retired, r)
		}
	}
	h.mu.Unlock()
	for _, r := range retired {
		if _, due := r.people.Due(h.cfg.Now().UnixMilli(), r.doors()); due {
			r.storeShow(context.Background())
		}
		if err := r.close(); err != nil {
			h.troubled("room does not close", r.id, err)
		}
		h.mu.Lock()
		delete(h.rooms, r.id)
		h.cfg.Metrics.rooms.Set(float64(len(h.rooms)))
		h.mu.Unlock()
		close(r.gone)
	}
}

// sweepSlice bounds how many idle users are looked at while the hub's lock is held.
const sweepSlice = 512

// forgetUsers drops the users who have no session and nothing left to remember.
func (h *Hub) forgetUsers(now limit.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	looked := 0
	for u, again := range h.idleUsers {
		if u.refs > 0 {
			delete(h.idleUsers, u)
		} else if now >= again {
			quiet, again := u.quiet(now)
			if quiet {
				delete(h.idleUsers, u)
				delete(h.users, u.id)
			} else {
				h.idleUsers[u] = again
			}
		}
		if looked++; looked%sweepSlice == 0 {
			h.mu.Unlock()
			h.mu.Lock()
		}
	}
	h.cfg.Metrics.users.Set(float64(len(h.users)))
}
