package api

import (
	"net/http"
	"strings"

	"liveroom/internal/token"
	"liveroom/protocol"
)

// caller is who a request comes from: the zero value is a passer-by without a token.
type caller struct {
	token.Identity
	known bool
}

// authenticate reads the bearer token (RFC 6750, section 2.1), the only place where a token is looked for.
func (a *API) authenticate(r *http.Request) (caller, *protocol.Error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return caller{}, nil
	}
	scheme, signed, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || signed == "" {
		return caller{}, &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: "Authorization: allowed is Bearer and a token"}
	}
	who, err := a.tokens.Verify(strings.TrimSpace(signed))
	if err != nil {
		return caller{}, &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: err.Error()}
	}
	return caller{Identity: who, known: true}, nil
}

// permission is who may make a call; room is "" for a call about no room in particular.
type permission func(c caller, room string) bool

func speaks(c caller, room string) bool    { return c.known && c.Speaks() && c.Allows(room) }
func moderates(c caller, room string) bool { return c.known && c.Moderates(room) }

// administers is for what changes the whole cluster.
func administers(c caller, _ string) bool { return c.known && c.Role == protocol.RoleAdmin }

// reads is for what no viewer sees: services, and whoever moderates the room.
func reads(c caller, room string) bool { return speaks(c, room) || moderates(c, room) }

// enters is for what every viewer may see.
func (a *API) enters(c caller, room string) bool {
	return (c.known || a.guests) && (room == "" || c.Allows(room))
}
