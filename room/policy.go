package room

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"liveroom/protocol"
)

// Bounds of what moderators can leave behind in a room.
const (
	maxSettings  = 512 << 10 // bytes of all of it, half of what a NATS message holds
	maxSanctions = 1000      // mutes and bans, each
	maxDeleted   = 300       // deletions remembered, the newest
)

// stored is a room's settings as the bus keeps them, in JSON.
type stored struct {
	Title    string          `json:"title,omitempty"`
	SlowMode int64           `json:"slow_mode_ms,omitempty"`
	Closed   bool            `json:"closed,omitempty"`
	Pinned   json.RawMessage `json:"pinned,omitempty"` // a danmaku event
	Mutes    []Sanction      `json:"mutes,omitempty"`
	Bans     []Sanction      `json:"bans,omitempty"`
	Deleted  []deletion      `json:"deleted,omitempty"`
	Staff    []standing      `json:"staff,omitempty"` // who has been here as more than a viewer
}

// Sanction is a mute or a ban of a room.
type Sanction struct {
	User   string `json:"user"`
	Until  int64  `json:"until,omitempty"` // Unix ms; 0: for ever
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Role is that of who made it, above which it has no effect; "" of one that was made before roles were kept: host.
	Role protocol.Role `json:"role,omitempty"`
}

// deletion keeps a message from coming back out of the recent ones.
type deletion struct {
	MID string `json:"mid"`
	At  int64  `json:"at"` // Unix ms, for people
}

func (s Sanction) over(now int64) bool { return s.Until != 0 && s.Until <= now }

// clone returns a copy whose lists can be changed.
func (s stored) clone() stored {
	s.Mutes, s.Bans, s.Deleted, s.Staff = slices.Clone(s.Mutes), slices.Clone(s.Bans), slices.Clone(s.Deleted), slices.Clone(s.Staff)
	return s
}

// prune drops what is over, and of deletions all but the newest: these may be of a node whose clock is another one.
func (s *stored) prune(now int64) {
	over := func(x Sanction) bool { return x.over(now) }
	s.Mutes = slices.DeleteFunc(s.Mutes, over)
	s.Bans = slices.DeleteFunc(s.Bans, over)
	if extra := len(s.Deleted) - maxDeleted; extra > 0 {
		s.Deleted = slices.Delete(s.Deleted, 0, extra)
	}
}

// policy is a room's settings as its messages are held to. Immutable.
type policy struct {
	stored
	revision uint64
	muted    sanctions
	banned   sanctions
	deleted  map[string]struct{}
}

// parsePolicy reads what the bus keeps.
func parsePolicy(value []byte, revision uint64) (*policy, error) {
	p := &policy{revision: revision}
	if len(value) > 0 {
		if err := json.Unmarshal(value, &p.stored); err != nil {
			return nil, fmt.Errorf("settings of revision %d: %w", revision, err)
		}
	}
	if len(p.Pinned) == 0 || string(p.Pinned) == "null" {
		p.Pinned = nil
	}
	p.muted, p.banned = byUser(p.Mutes), byUser(p.Bans)
	p.deleted = make(map[string]struct{}, len(p.Deleted))
	for _, d := range p.Deleted {
		p.deleted[d.MID] = struct{}{}
	}
	return p, nil
}

// sanctions are mutes or bans by their user.
type sanctions map[string]sanction

// sanction is what a [Sanction] means to its user.
type sanction struct {
	until int64 // Unix ms, 0 for ever
	by    rank  // it has no effect on this rank and those above
}

func byUser(list []Sanction) sanctions {
	m := make(sanctions, len(list))
	for _, s := range list {
		m[s.User] = sanction{s.Until, rankOf(cmp.Or(s.Role, protocol.RoleHost))}
	}
	return m
}

// in reports whether somebody is sanctioned at an instant, and for how many ms yet; 0: for ever.
func (l sanctions) in(who *Identity, now int64) (left int64, yes bool) {
	if s, ok := l[who.User]; ok && rankOf(who.Role) < s.by {
		return s.left(now)
	}
	return 0, false
}

// left is how many ms the sanction lasts yet, 0 for ever, and whether it does.
func (s sanction) left(now int64) (left int64, lasts bool) {
	switch {
	case s.until == 0:
		return 0, true
	case s.until <= now:
		return 0, false
	}
	return s.until - now, true
}

// state is what viewers know of the room, without the counts.
func (p *policy) state(id string) protocol.RoomState {
	return protocol.RoomState{ID: id, Title: p.Title, SlowModeMS: p.SlowMode, Closed: p.Closed, Pinned: p.Pinned}
}

// shows reports whether viewers see the same of both.
func (p *policy) shows(q *policy) bool {
	return p.Title == q.Title && p.SlowMode == q.SlowMode && p.Closed == q.Closed && string(p.Pinned) == string(q.Pinned)
}
