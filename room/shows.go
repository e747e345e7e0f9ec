package room

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/people"
)

const (
	// showRest is how much longer than storing a record took none is stored: syncs one after the other would hold up all that waits for a
	// node's one processor, or for its disk.
	showRest = 9
	// showAttempts is how often one is tried against other nodes.
	showAttempts = 4
	// showTimeout bounds one, and all of them at the end of a hub.
	showTimeout = 3 * time.Second
)

// Others are who is in a room on other nodes.
type Others struct {
	Sessions int
	People   func() []people.Crowd // of each node; nil: there are none
	Version  uint64                // another one when People returns something else
	Guess    bool                  // some node has not told whom it has
}

// Census is who is in the room, and has been in the show.
func (r *Room) Census() *people.Census { return r.people }

// seat counts a member of a user in, and returns how many persons are in the room.
func (r *Room) seat(u *User, p *place) int {
	now := r.hub.cfg.Now().UnixMilli()
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.seats++; p.seats == 1 {
		r.people.Enter(u.hash, now)
	}
	return r.people.Now()
}

// unseat undoes one seat.
func (r *Room) unseat(u *User, p *place) int {
	now := r.hub.cfg.Now().UnixMilli()
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.seats--; p.seats == 0 {
		r.people.Leave(u.hash, now)
	}
	return r.people.Now()
}

// there are the persons whom the room has here.
func (r *Room) there() []people.Hash {
	members := r.audience.Where(func(*Member) bool { return true })
	out := make([]people.Hash, len(members))
	for i, m := range members {
		out[i] = m.user.hash
	}
	return out
}

// doors is what the settings say of shows.
func (r *Room) doors() people.Doors {
	p := r.policy.Load()
	return people.Doors{Opened: p.Opened, Closed: p.Shut, Shut: p.Closed}
}

// openShow reads who has been in the room before. Without the store that is told later.
func (r *Room) openShow(ctx context.Context) {
	record, _, err := r.hub.bus.Show(ctx, r.id)
	if err == nil {
		err = r.people.Stored(record, r.hub.cfg.Now().UnixMilli())
	}
	if err != nil {
		r.hub.troubled("room opens without knowing who was there", r.id, err)
	}
}

// countElsewhere takes who is in the room on other nodes.
func (r *Room) countElsewhere(o Others) {
	if seen := (tallied{o.Version, r.people.Version(), o.People != nil}); seen != r.tallied {
		r.tallied = seen
		var others []people.Crowd
		if o.People != nil {
			others = o.People()
		}
		r.people.Elsewhere(others, o.Guess, r.hub.cfg.Now().UnixMilli())
	}
	r.audience.Elsewhere(max(0, o.Sessions), r.people.Now())
}

// tallied is what the persons on other nodes were tallied from.
type tallied struct {
	others, here uint64
	any          bool
}

// elsewhere asks for who is in one room on other nodes.
func (h *Hub) elsewhere(room string) Others {
	if h.cfg.Elsewhere == nil {
		return Others{}
	}
	return h.cfg.Elsewhere(room)
}

// countPeople brings the rooms' counts up to date.
func (h *Hub) countPeople() {
	now := h.cfg.Now().UnixMilli()
	for _, r := range h.opened() {
		r.countElsewhere(h.elsewhere(r.id))
		r.people.Tick(now, r.there)
	}
}

// keepShows stores who has been in the rooms until the hub ends.
func (h *Hub) keepShows() {
	ticker := time.NewTicker(h.cfg.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			h.storeShows(context.Background(), false)
		case <-h.done:
			return
		}
	}
}

// storeShows stores the records of rooms for which it is time, those that were not stored for longest first; all of them at the end of the
// hub, which is in a hurry.
func (h *Hub) storeShows(ctx context.Context, all bool) {
	var due []*Room
	began := h.gate.Now()
	for _, r := range h.opened() {
		after, yes := r.people.Due(h.cfg.Now().UnixMilli(), r.doors())
		if yes && (all || began.Sub(limit.Instant(r.showStored.Load())) >= after) {
			due = append(due, r)
		}
	}
	slices.SortFunc(due, func(a, b *Room) int { return cmp.Compare(a.showStored.Load(), b.showStored.Load()) })
	rest := time.NewTimer(0)
	defer rest.Stop()
	for _, r := range due {
		now := h.gate.Now()
		if ctx.Err() != nil || all && now.Sub(began) >= showTimeout {
			return
		}
		r.showStored.Store(int64(now))
		r.storeShow(ctx)
		if all {
			continue
		}
		rest.Reset(showRest * h.gate.Now().Sub(now))
		select {
		case <-rest.C:
		case <-h.done:
			return
		}
	}
}

// storeShow merges what this node knows of the show and what is stored, whoever is faster.
func (r *Room) storeShow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	for range showAttempts {
		record, revision, err := r.hub.bus.Show(ctx, r.id)
		if err != nil {
			r.hub.troubled("who has been in a room can't be read", r.id, err)
			return
		}
		now := r.hub.cfg.Now().UnixMilli()
		next := r.people.Meet(record, now, r.doors(), r.there)
		if next == nil {
			_ = r.people.Stored(record, now) // was read just now
			return
		}
		switch _, err = r.hub.bus.PutShow(ctx, r.id, next, revision); {
		case err == nil:
			_ = r.people.Stored(next, now) // was written just now
			return
		case !errors.Is(err, ErrConflict):
			r.hub.troubled("who has been in a room is not stored", r.id, err)
			return
		}
	}
}

// Shows are a room's shows as they are stored, the newest first, whether the room is open on this node or not.
func (h *Hub) Shows(ctx context.Context, room string) ([]people.Told, error) {
	record, _, err := h.bus.Show(ctx, room)
	if err != nil {
		return nil, err
	}
	shows, err := people.Shows(record, h.cfg.Now().UnixMilli())
	return h.leftOf(shows), err
}

// stampDoors notes when the room was opened or closed.
func (s *stored) stampDoors(was bool, now int64) {
	switch {
	case s.Closed == was:
	case s.Closed:
		s.Shut = now
	default:
		s.Opened = now
	}
}

// refusedLine is a refusal as a show keeps it.
func refusedLine(by *Speaker, op protocol.Op, err *protocol.Error) people.Refused {
	return people.Refused{User: by.who.User, Name: by.who.Name, Action: string(op), Reason: string(err.Reason), Rule: err.Rule, Count: 1}
}
