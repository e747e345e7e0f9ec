package node

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"liveroom/conn"
	"liveroom/internal/admit"
	"liveroom/internal/token"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// lobby seats sockets: it finds out who somebody is and lets the hub decide about the room.
type lobby struct {
	tokens  *token.Authority
	hub     *room.Hub
	guests  bool
	created *admit.NewRooms
}

var _ conn.Lobby = (*lobby)(nil)

// Hello implements [conn.Lobby].
func (l *lobby) Hello(ctx context.Context, s *conn.Session, r *protocol.Request) (conn.Seat, *protocol.Refusal) {
	who, guestToken, refusal := l.identify(r.Token)
	in, counted := s.Arrival().(*admit.Arrival)
	if refusal != nil {
		if counted && refusal.Code == protocol.CloseToken {
			in.Charge()
		}
		return nil, refusal
	}
	if !who.Allows(r.Room) {
		return nil, &protocol.Refusal{Code: protocol.CloseForbidden, Detail: "token is for other rooms"}
	}
	var networks []*limit.Subject
	if counted {
		networks = in.Networks()
	}
	m, refusal := l.hub.Join(ctx, room.JoinRequest{
		Session: s, SessionID: s.ID(), Order: s.Order(), Deflates: s.Deflates(), Conn: s.Subject(), Addr: s.Addr(), Networks: networks, Lang: s.Lang(),
		Hello: r, Who: identityOf(who, l.tokens.Leeway()), GuestToken: guestToken,
		Create: func() *protocol.Error { return l.created.Admit(s.Addr()) },
	})
	if refusal != nil {
		return nil, refusal
	}
	if l.tokens.Revoked(who) { // since it was verified, and before there was a member to cut
		m.Leave()
		return nil, &protocol.Refusal{Code: protocol.CloseToken, Detail: token.ErrRevoked.Error()}
	}
	return m, nil
}

// identify reads the hello's token. Without one a guest is made where guests are allowed; a guest's token is renewed.
func (l *lobby) identify(signed string) (who token.Identity, guestToken string, refusal *protocol.Refusal) {
	if signed == "" {
		if !l.guests {
			return who, "", &protocol.Refusal{Code: protocol.CloseToken, Detail: "a token is needed"}
		}
		who, guestToken = l.tokens.NewGuest()
		return who, guestToken, nil
	}
	who, err := l.tokens.Verify(signed)
	if err != nil {
		bad := token.Refusal(err)
		refusal = &protocol.Refusal{Code: protocol.CloseToken, Detail: bad.Detail}
		if bad.Reason == protocol.ReasonUnavailable {
			refusal.Code, refusal.Reconnect = protocol.CloseOverloaded, bad.RetryAfter
		}
		return who, "", refusal
	}
	if who.Guest && !l.guests {
		return who, "", &protocol.Refusal{Code: protocol.CloseToken, Detail: "guests are not admitted"}
	}
	if who.Guest {
		who, guestToken = l.tokens.RenewGuest(who)
	}
	return who, guestToken, nil
}

// allowances tells what a welcome says about limits: for each action the rule that a user meets first. Rules for single
// rooms are left out, since a page explains the usual case. The answer is worked out once per rule set.
type allowances struct {
	gate   *limit.Gate
	cached atomic.Pointer[allowed]
}

// allowed is the answer for one rule set.
type allowed struct {
	rules  *limit.Rules
	byRole map[protocol.Role]map[string]protocol.Allowance
}

// of implements room.Config.Allowances.
func (a *allowances) of(_ string, role protocol.Role) map[string]protocol.Allowance {
	rules := a.gate.Rules()
	c := a.cached.Load()
	if c == nil || c.rules != rules {
		c = allowedBy(rules)
		a.cached.Store(c)
	}
	return c.byRole[role]
}

func allowedBy(rules *limit.Rules) *allowed {
	c := &allowed{rules: rules, byRole: map[protocol.Role]map[string]protocol.Allowance{}}
	all := rules.All()
	for _, role := range []protocol.Role{protocol.RoleViewer, protocol.RoleHost, protocol.RoleModerator, protocol.RoleService, protocol.RoleAdmin} {
		c.byRole[role] = map[string]protocol.Allowance{}
		for _, action := range limit.Messages() {
			for _, scope := range []limit.Scope{limit.ScopeUserRoom, limit.ScopeUser, limit.ScopeConn} { // closest first
				if r, ok := first(all, scope, action, role); ok {
					c.byRole[role][action.String()] = allowance(r, role)
					break
				}
			}
		}
	}
	return c
}

// first returns the rule that is asked first of those that hold in any room.
func first(all []limit.Rule, scope limit.Scope, action limit.Action, role protocol.Role) (limit.Rule, bool) {
	i := slices.IndexFunc(all, func(r limit.Rule) bool {
		return r.Scope == scope.String() && r.Room == "" && len(r.Where) == 0 && !r.Shadow && slices.Contains(r.Action, action.String()) &&
			(len(r.Role) == 0 || slices.Contains(r.Role, string(role))) && !slices.Contains(r.Exempt.Roles, string(role))
	})
	if i < 0 {
		return limit.Rule{}, false
	}
	return all[i], true
}

func allowance(r limit.Rule, role protocol.Role) protocol.Allowance {
	times := max(1, r.Multiply[string(role)])
	per := time.Duration(r.Per)
	if per == 0 {
		per = time.Second
	}
	return protocol.Allowance{PerSecond: float64(r.Rate*times) / per.Seconds(), Burst: r.Burst * times}
}
