package node

import (
	"context"
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
	if retry, later := token.RetryAfter(err); later {
		return who, "", &protocol.Refusal{Code: protocol.CloseOverloaded, Reconnect: limit.Jitter(retry), Detail: err.Error()}
	}
	if err == nil && who.Guest && !l.guests {
		return who, "", &protocol.Refusal{Code: protocol.CloseToken, Detail: "guests are not admitted"}
	}
	if err != nil {
		return who, "", &protocol.Refusal{Code: protocol.CloseToken, Detail: err.Error()}
	}
	if who.Guest {
		who, guestToken = l.tokens.RenewGuest(who)
	}
	return who, guestToken, nil
}

// verify reads a token that a member offers in place of its own.
func (n *Node) verify(roomID, signed string) (room.Identity, *protocol.Error) {
	who, err := n.tokens.Verify(signed)
	if err != nil {
		return room.Identity{}, unverified(err)
	}
	if !who.Allows(roomID) {
		return room.Identity{}, &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "token: for other rooms"}
	}
	return identityOf(who, n.tokens.Leeway()), nil
}

// identityOf is who a token names, as a room knows somebody. The socket outlives the token by the leeway that the clocks of
// platform and server are given when a token is verified; meanwhile a client can still refresh it.
func identityOf(i token.Identity, leeway time.Duration) room.Identity {
	return room.Identity{User: i.User, Name: i.Name, Role: i.Role, Expires: i.Expires.Add(leeway), Proof: proofOf(i.ID)}
}

// unverified is why a token that was offered is not taken: what can't be judged now is no verdict.
func unverified(err error) *protocol.Error {
	if retry, later := token.RetryAfter(err); later {
		return &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(retry), Detail: err.Error()}
	}
	return &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: "token: " + err.Error()}
}
