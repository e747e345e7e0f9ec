package room

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liveroom/limit"
	"liveroom/protocol"
)

// moderate does what a host or moderator asks. It returns once the change is stored, and so holds on every node and
// over restarts, or, for kick and announce, once it is on its way to every node.
func (r *Room) moderate(ctx context.Context, by *Speaker, req *protocol.Request) protocol.Ack {
	err := r.barsModerator(by.who)
	if err == nil {
		err = r.outranked(by.who, req.Action, req.User, req.MID)
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	e := AuditEntry{
		By: by.who.User, Role: by.who.Role, Action: req.Action,
		User: req.User, Seconds: req.Seconds, Reason: clipReason(req.Reason), MID: req.MID, Text: req.Text,
	}
	switch req.Action {
	case protocol.ActionKick:
		err = r.command(command{Kick: req.User, Role: by.who.Role})
	case protocol.ActionAnnounce:
		var text string
		if text, err = protocol.CleanText(req.Text, r.hub.cfg.MaxText); err == nil {
			err = r.command(command{Announce: text})
		}
	case protocol.ActionCleanup:
		err = r.cleanup(ctx, req.User)
	case protocol.ActionRelease, protocol.ActionDrop:
		err = r.judge(ctx, by.who, req, &e)
	case protocol.ActionUndo:
		err = r.undo(ctx, by, req, &e)
	default:
		if err = r.amendAll(ctx, by, req, &e); err != nil {
			if err = r.postpone(by, req, &e, err); err == nil {
				return protocol.Ack{ID: req.ID, Code: protocol.Degraded, Err: &protocol.Error{Reason: protocol.ReasonHereOnly}, TS: r.hub.cfg.Now().UnixMilli()}
			}
		}
	}
	if err != nil {
		r.hub.cfg.Metrics.refuseAct(err)
		return protocol.Refuse(req.ID, err)
	}
	if is := e.Is; is != nil && (req.Action == protocol.ActionDelete || e.Undid == protocol.ActionDelete) {
		r.eraseDeleted(ctx, e.MID, is.Deleted)
	}
	if set := req.Settings; req.Action == protocol.ActionSettings && set != nil {
		r.shieldEnds(by.who, &e, set.Shield)
	} else if req.Action == protocol.ActionUndo {
		r.shieldEnds(by.who, &e, nil)
	}
	r.hub.cfg.Metrics.messages[protocol.ClassControl].Inc()
	r.hub.cfg.Log.Info("moderated", "room", r.id, "action", string(req.Action), "by", by.who.User, "user", req.User)
	return protocol.Ack{ID: req.ID, Code: protocol.OK, Seq: r.audit(ctx, e), TS: r.hub.cfg.Now().UnixMilli()}
}

// amendAll stores what one action changes, and tells the audit what that was.
func (r *Room) amendAll(ctx context.Context, by *Speaker, req *protocol.Request, e *AuditEntry) *protocol.Error {
	var set *protocol.Settings
	if given, ok := req.Setting(); ok {
		set = &given
		if req.Action == protocol.ActionSettings {
			e.Text = given.String()
		}
		if err := r.takes(given); err != nil {
			return err
		}
	}
	if keepsAway(req.Action) && r.owing() { // what was decided first is stored first
		return &protocol.Error{Reason: protocol.ReasonTryLater}
	}
	about := (*deed)(nil)
	if keepsAway(req.Action) {
		about = &deed{Of: req.Action, User: req.User, MID: req.MID}
	}
	return r.changeOf(ctx, about, func(s *stored, now int64) *protocol.Error {
		e.Was = s.touches(req.Action, req.User, req.MID, set)
		if set != nil {
			s.set(*set)
		} else if err := r.amend(s, now, by, req); err != nil {
			return err
		}
		e.Is = s.touches(req.Action, req.User, req.MID, set)
		return nil
	})
}

// amend writes one action into the settings. now is Unix ms.
func (r *Room) amend(s *stored, now int64, by *Speaker, req *protocol.Request) (err *protocol.Error) {
	mine := Sanction{User: req.User, At: now, By: by.who.User, Role: by.who.Role, Reason: clipReason(req.Reason)}
	if req.Seconds > 0 {
		mine.Until = now + int64(req.Seconds)*1000
	}
	if req.Action == protocol.ActionBan {
		r.widen(&mine, req)
	}
	switch req.Action {
	case protocol.ActionMute, protocol.ActionUnmute:
		s.Mutes, err = sanction(s.Mutes, mine, req.Action == protocol.ActionMute)
	case protocol.ActionBan, protocol.ActionUnban:
		s.Bans, err = sanction(s.Bans, mine, req.Action == protocol.ActionBan)
	case protocol.ActionAppoint:
		err = s.appoint(req.User, protocol.RoleModerator, r.tokenRole(req.User))
	case protocol.ActionAllow, protocol.ActionDisallow:
		err = s.allow(req.User, req.Action == protocol.ActionAllow)
	case protocol.ActionDismiss:
		err = s.appoint(req.User, protocol.RoleViewer, r.tokenRole(req.User))
	case protocol.ActionDelete:
		s.remove(req.MID, now)
	case protocol.ActionUnpin:
		s.Pinned = nil
	case protocol.ActionPin:
		err = r.pin(s, req.MID)
	default:
		err = protocol.BadField("action", "an action of the protocol", string(req.Action))
	}
	return err
}

// remove deletes a message.
func (s *stored) remove(mid string, now int64) {
	s.Deleted = append(slices.DeleteFunc(s.Deleted, func(d deletion) bool { return d.MID == mid }), deletion{mid, now, false})
	if protocol.EventMID(s.Pinned) == mid {
		s.Pinned = nil
	}
}

// widen has a ban bar guests by marks: of a guest unless the request says no, of others if it says yes.
func (r *Room) widen(ban *Sanction, req *protocol.Request) {
	guest := strings.HasPrefix(req.User, protocol.GuestPrefix)
	ban.Network, ban.Device = guest, guest
	replace(&ban.Network, req.Network)
	replace(&ban.Device, req.Device)
	ban.Wide = req.Network != nil && *req.Network || req.Device != nil && *req.Device
	r.markedBy(ban)
}

// maxAllowed bounds the guests whom a room lets in by name.
const maxAllowed = 200

// allow lets a guest in whatever marks say, or no more.
func (s *stored) allow(user string, in bool) *protocol.Error {
	s.Allowed = slices.DeleteFunc(s.Allowed, func(u string) bool { return u == user })
	if !in {
		return nil
	}
	if len(s.Allowed) >= maxAllowed {
		return &protocol.Error{Reason: protocol.ReasonListFull, Detail: fmt.Sprintf("a room lets %d guests in by name; disallow some", maxAllowed)}
	}
	s.Allowed = append(s.Allowed, user)
	return nil
}

func (r *Room) pin(s *stored, mid string) *protocol.Error {
	if s.Pinned = r.audience.Find(mid); s.Pinned == nil {
		return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "mid: only a message of the last minutes can be pinned"}
	}
	return nil
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

// sanction puts one into force in place of the one before, or lifts that. What a higher rank has decided stays.
func sanction(list []Sanction, mine Sanction, on bool) ([]Sanction, *protocol.Error) {
	if old := sanctionOf(list, mine.User); old != nil && old.rank() > rankOf(mine.Role) {
		return list, &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: decided by somebody of a higher rank"}
	}
	if !on {
		return without(list, mine.User), nil
	}
	return sanctioned(list, mine)
}

func sanctioned(list []Sanction, s Sanction) ([]Sanction, *protocol.Error) {
	list = without(list, s.User)
	if len(list) >= maxSanctions {
		return list, &protocol.Error{Reason: protocol.ReasonListFull, Detail: fmt.Sprintf("a room holds %d mutes and %d bans; lift some, or give them an end", maxSanctions, maxSanctions)}
	}
	return append(list, s), nil
}

// command is what passes between nodes and leaves no state. On the bus it is JSON.
type command struct {
	Kick     string        `json:"kick,omitempty"`     // a user
	Role     protocol.Role `json:"role,omitempty"`     // of who kicks: nobody of that rank or above is
	Announce string        `json:"announce,omitempty"` // a clean text
	Owed     *owedAct      `json:"owed,omitempty"`     // an act that Node stores once it can
	Node     string        `json:"node,omitempty"`
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
	if c.Owed != nil && c.Node != r.hub.cfg.Node {
		r.owe(*c.Owed)
	}
	if c.Kick == "" {
		return
	}
	below := rankOf(cmp.Or(c.Role, protocol.RoleHost))
	for _, m := range r.here(c.Kick) {
		if rankOf(m.acting().Role) >= below {
			continue
		}
		m.session.Close(protocol.Refusal{Code: protocol.CloseKicked})
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
