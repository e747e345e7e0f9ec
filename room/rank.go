package room

import (
	"context"
	"slices"

	"liveroom/protocol"
)

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
	p, now := r.policy.Load(), r.hub.cfg.Now().UnixMilli()
	if left, yes := p.banned.in(who, now); yes {
		return sanctionedFor(protocol.ReasonBanned, left)
	}
	if left, yes := p.muted.in(who, now); yes {
		return sanctionedFor(protocol.ReasonMuted, left)
	}
	return nil
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
		if target, role, known = r.author(req.MID); !known || target == by.User {
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
	r.mu.Lock()
	here := r.audience.of(user, nil)
	r.mu.Unlock()
	for _, m := range here {
		if role := m.who.Load().Role; rankOf(role) > rankOf(highest) {
			highest = role
		}
	}
	return highest
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
