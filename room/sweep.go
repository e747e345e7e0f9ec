package room

import (
	"fmt"
	"time"

	"liveroom/limit"
)

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
			h.countElsewhere()
		case <-h.done:
			return
		}
	}
}

// steppedBy is how far the wall clock may have been set before what waits for a time of day is told.
const steppedBy = time.Second

// wallAhead is how far the wall clock is ahead of the gate's; only its changes mean anything.
func (h *Hub) wallAhead() time.Duration {
	return time.Duration(h.cfg.Now().UnixNano() - int64(h.gate.Now()))
}

// followStep arms the ends of all tokens anew, since timers do not follow the wall clock.
func (h *Hub) followStep() {
	for _, r := range h.opened() {
		r.mu.Lock()
		all := make([]*Member, 0, r.audience.size)
		for _, s := range r.audience.shards {
			all = append(all, s.members...)
		}
		r.mu.Unlock()
		for _, m := range all {
			m.expireWithToken()
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

// close ends the subscription and hands over what likes are left. Nobody is in the room and no runner exists.
func (r *Room) close() error {
	r.stop()
	r.mu.Lock()
	n := r.likes.pending
	r.likes.pending = 0
	r.mu.Unlock()
	if n == 0 {
		return nil
	}
	if err := r.hub.bus.AddLikes(r.id, n); err != nil {
		return fmt.Errorf("room %s: %d likes are lost: %w", r.id, n, err)
	}
	return nil
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

// countElsewhere asks for the rooms' sessions on other nodes.
func (h *Hub) countElsewhere() {
	if h.cfg.Elsewhere == nil {
		return
	}
	for _, r := range h.opened() {
		n := h.elsewhere(r.id)
		r.mu.Lock()
		r.crowd.elsewhere = n
		r.countLocked()
		r.mu.Unlock()
	}
}

// elsewhere asks for one room's sessions on other nodes.
func (h *Hub) elsewhere(room string) int {
	if h.cfg.Elsewhere == nil {
		return 0
	}
	return max(0, h.cfg.Elsewhere(room))
}
