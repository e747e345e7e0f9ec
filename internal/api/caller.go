package api

import (
	"net/http"
	"strings"

	"liveroom/internal/token"
	"liveroom/limit"
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
		if retry, later := token.RetryAfter(err); later {
			return caller{}, &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(retry), Detail: err.Error()}
		}
		return caller{}, &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: err.Error()}
	}
	return caller{Identity: who, known: true}, nil
}

// ForAdmins lets through whom next, which is none of the API's calls, is for: admins of the whole cluster.
func (a *API) ForAdmins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := a.authenticate(r)
		switch {
		case err != nil:
		case !c.known:
			err = &protocol.Error{Reason: protocol.ReasonUnauthenticated}
		case !c.Administers():
			err = &protocol.Error{Reason: protocol.ReasonForbidden}
		}
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// permission is who may make a call; room is "" for a call about no room in particular.
type permission func(c caller, room string) bool

func speaks(c caller, room string) bool    { return c.known && c.Speaks() && c.Allows(room) }
func moderates(c caller, room string) bool { return c.known && c.Moderates(room) }

// administers is for what changes the whole cluster.
func administers(c caller, _ string) bool { return c.known && c.Administers() }

// reads is for what no viewer sees: services, and whoever moderates the room.
func reads(c caller, room string) bool { return speaks(c, room) || moderates(c, room) }

// enters is for what every viewer may see.
func (a *API) enters(c caller, room string) bool {
	return (c.known || a.guests) && (room == "" || c.Allows(room))
}
