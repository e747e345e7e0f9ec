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
	ranks
)

// reach is what a rank may do to another.
type reach uint8

const (
	acts     reach = 1 << iota // mutes, bans, kicks, deletes what they said, and takes it back
	appoints                   // and makes moderators, and viewers of them
)

// decides is the table of docs/protocol.md: by whom, on whom. A test holds the page to it.
var decides = [ranks][ranks]reach{
	rankModerator: {rankViewer: acts},
	rankHost:      {rankViewer: acts | appoints, rankModerator: acts | appoints},
	rankAdmin:     {rankViewer: acts | appoints, rankModerator: acts | appoints, rankHost: acts},
}

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

// Bounds of whom a room remembers.
const (
	maxStaff     = 200 // hosts and moderators who have been there; the oldest goes
	maxAppointed = 200 // who was appointed, and who was dismissed in spite of a token
)

// standing is somebody's role: as a token said when they came, or as the room says.
type standing struct {
	User string        `json:"user"`
	Role protocol.Role `json:"role"`
}

// roleIn is what somebody is in the room: what the token says, unless the room has appointed or dismissed them. Hosts,
// admins and services are the platform's to choose.
func (p *policy) roleIn(user string, role protocol.Role) protocol.Role {
	if rankOf(role) < rankHost {
		if as, ok := p.appointed[user]; ok {
			return as
		}
	}
	return role
}

// acting is who somebody is in the room at this moment. It is asked at each act, so that who was dismissed decides nothing more.
func (r *Room) acting(who *Identity) *Identity {
	role := r.policy.Load().roleIn(who.User, who.Role)
	if role == who.Role {
		return who
	}
	as := *who
	as.Role = role
	return &as
}

// appoint makes somebody a moderator of the room, or a viewer whatever the token says. asToken is the role that the room knows
// from tokens.
func (s *stored) appoint(user string, to, asToken protocol.Role) *protocol.Error {
	at := slices.IndexFunc(s.Appointed, func(a standing) bool { return a.User == user })
	known := at >= 0
	if known {
		s.Appointed = slices.Delete(s.Appointed, at, at+1)
	}
	if to == protocol.RoleViewer && known && !mayModerate(asToken) {
		return nil // nothing but the appointment made a moderator of them
	}
	if len(s.Appointed) >= maxAppointed {
		return &protocol.Error{Reason: protocol.ReasonListFull, Detail: "this room has appointed or dismissed as many people as it can remember"}
	}
	s.Appointed = append(s.Appointed, standing{user, to})
	return nil
}

// barsModerator is why somebody moderates nothing in the room: the role there, or a sanction.
func (r *Room) barsModerator(who *Identity) *protocol.Error {
	if !mayModerate(who.Role) {
		return &protocol.Error{Reason: protocol.ReasonForbidden}
	}
	if left, yes := r.bannedNow(who); yes {
		return sanctionedFor(protocol.ReasonBanned, left)
	}
	if left, yes := who.muted(r.hub.cfg.Now().UnixMilli()); yes {
		return sanctionedFor(protocol.ReasonMuted, left)
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
func (r *Room) MayModerate(who Identity) *protocol.Error { return r.barsModerator(r.acting(&who)) }

// outranked is why an act's target is not the actor's to act on; nil: it is.
func (r *Room) outranked(by *Identity, action protocol.Action, target, mid string) *protocol.Error {
	role, needs := protocol.RoleViewer, acts
	switch {
	case action.OnUser():
		role = r.roleOf(target)
		if target == by.User {
			return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: this is yourself"}
		}
		if action == protocol.ActionAppoint || action == protocol.ActionDismiss {
			needs = appoints
		}
	case action == protocol.ActionDelete:
		var known bool
		if target, role, known = r.audience.Author(mid); !known || target == by.User {
			return nil
		}
	default:
		return nil
	}
	switch may := decides[rankOf(by.Role)][rankOf(role)]; {
	case may&needs != 0:
		return nil
	case may&acts != 0:
		return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: moderators are appointed and dismissed by hosts and admins, and hosts by the platform"}
	}
	return higher(role, by.Role)
}

// higher says that somebody's rank is not below one's own.
func higher(role, own protocol.Role) *protocol.Error {
	return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "user: a " + string(role) + " of this room; a " + string(own) + " decides only on those below"}
}

// roleOf is the highest role in which the room knows a user: of its sessions here, or as it was seen on any node.
func (r *Room) roleOf(user string) protocol.Role {
	return r.policy.Load().roleIn(user, r.tokenRole(user))
}

// tokenRole is roleOf without what the room itself has decided.
func (r *Room) tokenRole(user string) protocol.Role {
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
