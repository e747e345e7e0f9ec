package room

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"liveroom/limit"
	"liveroom/protocol"
)

// AuditEntry is one decision of somebody about a room, as the bus keeps it.
type AuditEntry struct {
	Time    int64           `json:"time"`           // Unix ms
	By      string          `json:"by"`             // a user; "" where time decided
	Role    protocol.Role   `json:"role,omitempty"` // in the room
	Action  protocol.Action `json:"action"`
	User    string          `json:"user,omitempty"`
	Seconds int             `json:"seconds,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	MID     string          `json:"mid,omitempty"`
	Text    string          `json:"text,omitempty"` // announced, settings in words, or a held message's; [protocol.Forgotten] takes it out
	// Was and Is are what the act has changed, before and after it; nil of what can't be undone.
	Was *touched `json:"was,omitempty"`
	Is  *touched `json:"is,omitempty"`
	// Undoes is the number of the entry that ActionUndo took back, and Undid that one's action.
	Undoes uint64          `json:"undoes,omitempty"`
	Undid  protocol.Action `json:"undid,omitempty"`
}

// touched is what an act changes, and no more. It quotes no message: what is deleted is gone from the audit as well.
type touched struct {
	Mute     *Sanction          `json:"mute,omitempty"`
	Ban      *Sanction          `json:"ban,omitempty"`
	Role     protocol.Role      `json:"role,omitempty"` // that the room gives
	Settings *protocol.Settings `json:"settings,omitempty"`
	Pinned   string             `json:"pinned,omitempty"` // a mid
	Deleted  bool               `json:"deleted,omitempty"`
	Allowed  bool               `json:"allowed,omitempty"`
}

// touches reads what an act on a user, a message or settings changes; nil: nothing that is kept.
func (s *stored) touches(action protocol.Action, user, mid string, set *protocol.Settings) *touched {
	switch action {
	case protocol.ActionMute, protocol.ActionUnmute:
		return &touched{Mute: sanctionOf(s.Mutes, user)}
	case protocol.ActionBan, protocol.ActionUnban:
		ban := sanctionOf(s.Bans, user)
		if ban != nil {
			ban.Marks = nil // other nodes add theirs, and the audit keeps none
		}
		return &touched{Ban: ban}
	case protocol.ActionAllow, protocol.ActionDisallow:
		return &touched{Allowed: slices.Contains(s.Allowed, user)}
	case protocol.ActionAppoint, protocol.ActionDismiss:
		t := &touched{}
		for _, a := range s.Appointed {
			if a.User == user {
				t.Role = a.Role
			}
		}
		return t
	case protocol.ActionPin, protocol.ActionUnpin:
		return &touched{Pinned: protocol.EventMID(s.Pinned)}
	case protocol.ActionDelete:
		return &touched{Deleted: slices.ContainsFunc(s.Deleted, func(d deletion) bool { return d.MID == mid && !d.Back })}
	}
	if set == nil {
		return nil
	}
	now := s.settings(*set)
	return &touched{Settings: &now}
}

// audit remembers what somebody has decided about the room and returns the entry's number; 0: it is not kept. The decision holds already, so
// a failure is the operator's to hear of and not the moderator's.
func (r *Room) audit(ctx context.Context, e AuditEntry) uint64 { return r.hub.audit(ctx, r.id, e) }

func (h *Hub) audit(ctx context.Context, room string, e AuditEntry) uint64 {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	e.Time = h.cfg.Now().UnixMilli()
	raw, err := json.Marshal(e)
	var seq uint64
	if err == nil {
		seq, err = h.bus.Audit(ctx, room, raw)
	}
	if err != nil {
		h.troubled("decision is not in the audit", room, err)
	}
	return seq
}

// undo takes back the act with a number in the audit, if what it changed is still as it left it, and if the actor could have made it.
func (r *Room) undo(ctx context.Context, by *Speaker, req *protocol.Request, e *AuditEntry) *protocol.Error {
	old, err := r.audited(ctx, req.Seq)
	if err != nil {
		return err
	}
	what := cmp.Or(old.Undid, old.Action)
	e.User, e.MID, e.Undoes, e.Undid, e.Was, e.Is = old.User, old.MID, req.Seq, what, old.Is, old.Was
	switch {
	case old.Is == nil || old.Was == nil:
		return &protocol.Error{Reason: protocol.ReasonConflict, Detail: fmt.Sprintf("seq: a %s can't be taken back", what)}
	case rankOf(old.Role) > rankOf(by.who.Role):
		return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "seq: decided by a " + string(old.Role)}
	}
	if err := r.outranked(by.who, what, old.User, old.MID); err != nil {
		return err
	}
	return r.change(ctx, func(s *stored, now int64) *protocol.Error {
		if !alike(s.touches(what, old.User, old.MID, old.Is.Settings), old.Is) {
			return &protocol.Error{Reason: protocol.ReasonConflict, Detail: "seq: it is over, or was changed since"}
		}
		return r.restore(s, what, old, now)
	})
}

// audited reads an entry of the audit.
func (r *Room) audited(ctx context.Context, seq uint64) (*AuditEntry, *protocol.Error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	raw, err := r.hub.bus.Audited(ctx, r.id, seq)
	if err != nil {
		r.hub.troubled("audit can't be read", r.id, err)
		return nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	e := &AuditEntry{}
	if raw == nil || json.Unmarshal(raw, e) != nil {
		return nil, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "seq: this room's audit has no such entry"}
	}
	return e, nil
}

func alike(a, b *touched) bool {
	one, _ := json.Marshal(a) // neither has anything that does not encode
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// restore brings back what an act had found.
func (r *Room) restore(s *stored, what protocol.Action, old *AuditEntry, now int64) (err *protocol.Error) {
	was := old.Was
	switch what {
	case protocol.ActionMute, protocol.ActionUnmute:
		s.Mutes, err = put(s.Mutes, old.User, was.Mute)
	case protocol.ActionBan, protocol.ActionUnban:
		if was.Ban != nil {
			r.markedBy(was.Ban)
		}
		s.Bans, err = put(s.Bans, old.User, was.Ban)
	case protocol.ActionAllow, protocol.ActionDisallow:
		err = s.allow(old.User, was.Allowed)
	case protocol.ActionAppoint, protocol.ActionDismiss:
		s.Appointed = slices.DeleteFunc(s.Appointed, func(a standing) bool { return a.User == old.User })
		if was.Role != "" {
			err = s.appoint(old.User, was.Role, was.Role)
		}
	case protocol.ActionPin, protocol.ActionUnpin:
		s.Pinned = nil
		if was.Pinned != "" {
			err = r.pin(s, was.Pinned)
		}
	case protocol.ActionDelete:
		err = r.bringBack(s, old.MID, was.Deleted, now)
	default:
		s.set(*was.Settings)
	}
	return err
}

// bringBack shows a deleted message again, or takes it away once more. Only what a room's history still has can come back.
func (r *Room) bringBack(s *stored, mid string, away bool, now int64) *protocol.Error {
	if !away && !r.audience.Kept(mid) {
		return &protocol.Error{Reason: protocol.ReasonConflict, Detail: "mid: the message is gone; one of the last minutes comes back"}
	}
	s.Deleted = append(slices.DeleteFunc(s.Deleted, func(d deletion) bool { return d.MID == mid }), deletion{mid, now, !away})
	return nil
}

func put(list []Sanction, user string, s *Sanction) ([]Sanction, *protocol.Error) {
	if s == nil {
		return without(list, user), nil
	}
	return sanctioned(list, *s)
}

func sanctionOf(list []Sanction, user string) *Sanction {
	if i := slices.IndexFunc(list, func(s Sanction) bool { return s.User == user }); i >= 0 {
		s := list[i]
		return &s
	}
	return nil
}
