package room

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"liveroom/limit"
	"liveroom/protocol"
)

// moderate does what a host or moderator asks. It returns once the change is stored, and so holds on every node and
// over restarts, or, for kick and announce, once it is on its way to every node.
func (r *Room) moderate(ctx context.Context, by *Speaker, req *protocol.Request) protocol.Ack {
	err := r.barsModerator(by.who)
	if err == nil {
		err = r.outranked(by.who, req)
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	switch req.Action {
	case protocol.ActionKick:
		err = r.command(command{Kick: req.User, Role: by.who.Role})
	case protocol.ActionAnnounce:
		var text string
		if text, err = protocol.CleanText(req.Text, r.hub.cfg.MaxText); err == nil {
			err = r.command(command{Announce: text})
		}
	default:
		err = r.change(ctx, func(s *stored, now int64) *protocol.Error { return r.amend(s, now, by, req) })
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	r.hub.cfg.Metrics.messages[protocol.ClassControl].Inc()
	r.Audit(ctx, AuditEntry{
		By: by.who.User, Role: by.who.Role, Action: string(req.Action),
		User: req.User, Seconds: req.Seconds, Reason: clipReason(req.Reason), MID: req.MID, Text: req.Text,
	})
	r.hub.cfg.Log.Info("moderated", "room", r.id, "action", string(req.Action), "by", by.who.User, "user", req.User)
	return protocol.Ack{ID: req.ID, Code: protocol.OK, TS: r.hub.cfg.Now().UnixMilli()}
}

// amend writes one action into the settings. now is Unix ms.
func (r *Room) amend(s *stored, now int64, by *Speaker, req *protocol.Request) *protocol.Error {
	mine := Sanction{User: req.User, By: by.who.User, Role: by.who.Role, Reason: clipReason(req.Reason)}
	if req.Seconds > 0 {
		mine.Until = now + int64(req.Seconds)*1000
	}
	var err *protocol.Error
	switch req.Action {
	case protocol.ActionMute:
		s.Mutes, err = sanctioned(s.Mutes, mine)
	case protocol.ActionUnmute:
		s.Mutes = without(s.Mutes, req.User)
	case protocol.ActionBan:
		s.Bans, err = sanctioned(s.Bans, mine)
	case protocol.ActionUnban:
		s.Bans = without(s.Bans, req.User)
	case protocol.ActionSlowMode:
		s.SlowMode = int64(req.Seconds) * 1000
	case protocol.ActionClose, protocol.ActionOpen:
		s.Closed = req.Action == protocol.ActionClose
	case protocol.ActionDelete:
		s.Deleted = append(s.Deleted, deletion{req.MID, now})
		if protocol.EventMID(s.Pinned) == req.MID {
			s.Pinned = nil
		}
	case protocol.ActionUnpin:
		s.Pinned = nil
	case protocol.ActionPin:
		if s.Pinned = r.audience.Find(req.MID); s.Pinned == nil {
			err = &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "mid: only a message of the last minutes can be pinned"}
		}
	default:
		err = protocol.BadField("action", "an action of the protocol", string(req.Action))
	}
	return err
}

// clipReason keeps what a moderator gives as a reason short; a text that can't be shown is left out.
func clipReason(reason string) string {
	text, err := protocol.CleanText(reason, protocol.MaxTextGraphemes)
	if err != nil {
		return ""
	}
	return text
}

func without(list []Sanction, user string) []Sanction {
	return slices.DeleteFunc(list, func(s Sanction) bool { return s.User == user })
}

func sanctioned(list []Sanction, s Sanction) ([]Sanction, *protocol.Error) {
	list = without(list, s.User)
	if len(list) >= maxSanctions {
		return list, &protocol.Error{Reason: protocol.ReasonUnavailable, Detail: "the room's list is full"}
	}
	return append(list, s), nil
}

// rank is how much somebody may decide in a room. Nobody acts on an equal or higher one.
type rank int

const (
	rankViewer rank = iota
	rankModerator
	rankHost
	rankAdmin
)

// rankOf is a role's rank. A service moderates nothing, and nobody in a room moderates a platform's service.
func rankOf(role protocol.Role) rank {
	switch role {
	case protocol.RoleModerator:
		return rankModerator
	case protocol.RoleHost:
		return rankHost
	case protocol.RoleAdmin, protocol.RoleService:
		return rankAdmin
	}
	return rankViewer
}

// mayModerate reports whether a role decides over a room. The token's list of rooms is the wiring's to check.
func mayModerate(role protocol.Role) bool {
	return role != protocol.RoleService && rankOf(role) > rankViewer
}

// maxStaff bounds the hosts and moderators that a room remembers.
const maxStaff = 200

// standing is somebody who has been in the room as more than a viewer.
type standing struct {
	User string        `json:"user"`
	Role protocol.Role `json:"role"`
}

// barsModerator is why somebody with a role moderates nothing in the room: the role itself, or a sanction there.
func (r *Room) barsModerator(who *Identity) *protocol.Error {
	if !mayModerate(who.Role) {
		return &protocol.Error{Reason: protocol.ReasonForbidden}
	}
	if left, yes := r.bannedNow(who); yes {
		return sanctionedFor(protocol.ReasonBanned, left)
	}
	if left, yes := r.policy.Load().muted.in(who, r.hub.cfg.Now().UnixMilli()); yes {
		return sanctionedFor(protocol.ReasonMuted, left)
	}
	return nil
}

// bannedNow reports whether somebody is banned from the room, and for how many ms yet; 0: for ever.
func (r *Room) bannedNow(who *Identity) (left int64, yes bool) {
	return r.policy.Load().banned.in(who, r.hub.cfg.Now().UnixMilli())
}

// MayModerate tells why an identity may not decide over the room, by whatever road it comes; nil: it may.
func (r *Room) MayModerate(who Identity) *protocol.Error { return r.barsModerator(&who) }

// outranked is why an action's target is not the actor's to act on; nil: it is. The whole table is in docs/protocol.md.
func (r *Room) outranked(by *Identity, req *protocol.Request) *protocol.Error {
	target, role := req.User, protocol.RoleViewer
	switch req.Action {
	case protocol.ActionMute, protocol.ActionUnmute, protocol.ActionBan, protocol.ActionUnban, protocol.ActionKick:
		role = r.roleOf(target)
		if target == by.User {
			return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: this is yourself"}
		}
	case protocol.ActionDelete:
		var known bool
		if target, role, known = r.audience.Author(req.MID); !known || target == by.User {
			return nil
		}
	default:
		return nil
	}
	if rankOf(role) >= rankOf(by.Role) {
		return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: a " + string(role) + " of this room; a " + string(by.Role) + " decides only on those below"}
	}
	return nil
}

// roleOf is the highest role in which the room knows a user: of its sessions here, or as it was seen on any node.
func (r *Room) roleOf(user string) protocol.Role {
	highest := protocol.RoleViewer
	for _, s := range r.policy.Load().Staff {
		if s.User == user {
			highest = s.Role
		}
	}
	for _, m := range r.here(user) {
		if role := m.who.Load().Role; rankOf(role) > rankOf(highest) {
			highest = role
		}
	}
	return highest
}

// here returns a user's members on this node.
func (r *Room) here(user string) []*Member {
	return r.audience.Where(func(m *Member) bool { return m.user.id == user })
}

// remember stores who has come in as more than a viewer, or as one no more, so that moderators on every node know whom they
// can't act on. Without the store a sanction still has no effect on a higher rank: it carries that of who made it.
func (r *Room) remember(ctx context.Context, who *Identity) {
	now := standing{who.User, who.Role}
	at := slices.IndexFunc(r.policy.Load().Staff, func(s standing) bool { return s.User == who.User })
	if at < 0 && !mayModerate(who.Role) || at >= 0 && r.policy.Load().Staff[at] == now {
		return
	}
	_ = r.change(ctx, func(s *stored, _ int64) *protocol.Error { // told to the log; the join stands without it
		s.Staff = slices.DeleteFunc(s.Staff, func(x standing) bool { return x.User == who.User })
		if mayModerate(who.Role) {
			s.Staff = append(s.Staff[max(len(s.Staff)-maxStaff+1, 0):], now)
		}
		return nil
	})
}

// command is what passes between nodes and leaves no state. On the bus it is JSON.
type command struct {
	Kick     string        `json:"kick,omitempty"`     // a user
	Role     protocol.Role `json:"role,omitempty"`     // of who kicks: nobody of that rank or above is
	Announce string        `json:"announce,omitempty"` // a clean text
}

// command sends c to the room on every node.
func (r *Room) command(c command) *protocol.Error {
	message, err := json.Marshal(c)
	if err == nil {
		err = r.hub.bus.Publish(protocol.ClassControl, r.id, message)
	}
	if errors.Is(err, ErrForbidden) {
		return r.hub.unheard(r.id, err)
	}
	if err != nil {
		r.hub.troubled("command is not sent", r.id, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	return nil
}

// unheard is the answer to what nobody would get.
func (h *Hub) unheard(room string, err error) *protocol.Error {
	h.troubled("bus forbids it, nobody would get it", room, err)
	return &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(openRetry)}
}

// obey does what a command says.
func (r *Room) obey(message []byte) {
	var c command
	if err := json.Unmarshal(message, &c); err != nil {
		r.hub.troubled("command can't be read", r.id, err)
		return
	}
	if c.Announce != "" {
		r.audience.Control(protocol.AppendAnnounce(nil, c.Announce))
	}
	if c.Kick == "" {
		return
	}
	below := rankOf(cmp.Or(c.Role, protocol.RoleHost))
	for _, m := range r.here(c.Kick) {
		if rankOf(m.who.Load().Role) >= below {
			continue
		}
		m.session.Close(protocol.Refusal{Code: protocol.CloseKicked})
	}
}

// AuditEntry is one decision of somebody about a room, as the bus keeps it.
type AuditEntry struct {
	Time    int64         `json:"time"` // Unix ms
	By      string        `json:"by"`   // a user
	Role    protocol.Role `json:"role"`
	Action  string        `json:"action"` // of op moderate, or "settings"
	User    string        `json:"user,omitempty"`
	Seconds int           `json:"seconds,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	MID     string        `json:"mid,omitempty"`
	Text    string        `json:"text,omitempty"`
}

// Audit remembers what somebody has decided about the room. The decision holds already, so a failure is the operator's to
// hear of and not the moderator's.
func (r *Room) Audit(ctx context.Context, e AuditEntry) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	e.Time = r.hub.cfg.Now().UnixMilli()
	raw, err := json.Marshal(e)
	if err == nil {
		err = r.hub.bus.Audit(ctx, r.id, raw)
	}
	if err != nil {
		r.hub.troubled("decision is not in the audit", r.id, err)
	}
}

// Disconnect closes the sessions on this node whose identity matches, with the reason given, and returns how many there were.
// match must not block and must not call the hub.
func (h *Hub) Disconnect(match func(*Identity) bool, why protocol.Refusal) int {
	n := 0
	for _, r := range h.opened() {
		found := r.audience.Where(func(m *Member) bool { return match(m.who.Load()) })
		for _, m := range found {
			m.session.Close(why)
		}
		n += len(found)
	}
	return n
}
