package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"liveroom/internal/token"
	"liveroom/protocol"
	"liveroom/room"
)

// caller is who a request comes from: the zero value is a passer-by without a token.
type caller struct {
	token.Identity
	known    bool
	signedIn bool            // on the admin page, without a token
	bad      *protocol.Error // why its token is not taken, or can't be judged
}

// callerKey is where [As] puts a caller.
type callerKey struct{}

// As lets the API know who sends a request without a token: an operator who has signed in on the admin page. Who only reads sees
// what an admin sees, and changes nothing.
func As(r *http.Request, who token.Identity, reads bool) *http.Request {
	if reads && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		who.Role = protocol.RoleAdmin
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{Identity: who, known: true, signedIn: true}))
}

// identity is who calls, as rooms know one.
func (c caller) identity() room.Identity {
	return room.Identity{User: c.User, Name: c.Name, Role: c.Role}
}

// authenticate reads the bearer token (RFC 6750, section 2.1), the only place where a token is looked for; without one who calls is
// who has signed in.
func (a *API) authenticate(r *http.Request) caller {
	header := r.Header.Get("Authorization")
	if header == "" {
		c, _ := r.Context().Value(callerKey{}).(caller)
		return c
	}
	scheme, signed, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || signed == "" {
		return caller{bad: &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: "Authorization: allowed is Bearer and a token"}}
	}
	who, err := a.cfg.Tokens.Verify(strings.TrimSpace(signed))
	if err != nil {
		return caller{bad: token.Refusal(err)}
	}
	return caller{Identity: who, known: true}
}

// ForAdmins lets through whom next, which is none of the API's calls, is for: admins of the whole cluster.
func (a *API) ForAdmins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := a.authenticate(r)
		err := c.bad
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
		a.cfg.Log.Info("an operator's call", "route", r.Pattern, "by", c.User)
		next.ServeHTTP(w, r)
	})
}

// permission is who may make a call; room is "" for a call about no room in particular.
type permission func(c caller, room string) bool

func speaks(c caller, room string) bool { return c.known && c.Speaks() && c.Allows(room) }

// knows is for what the room itself lets its staff do and see: whom it has appointed no token tells.
func knows(c caller, room string) bool { return c.known && c.Allows(room) }

// hears is for what services hear of the rooms that their token is for; the call looks at these.
func hears(c caller, _ string) bool { return c.known && c.Speaks() }

// administers is for what changes the whole cluster.
func administers(c caller, _ string) bool { return c.known && c.Administers() }

// enters is for what every viewer may see.
func (a *API) enters(c caller, room string) bool {
	return (c.known || a.cfg.Guests) && (room == "" || c.Allows(room))
}

// decode reads one strict JSON object into v: a field that v does not have is named in the refusal, and nothing may
// follow the object.
func decode(w http.ResponseWriter, r *http.Request, v any) *protocol.Error {
	return decodeUpTo(w, r, v, protocol.MaxRequestBytes)
}

// decodeUpTo is decode of at most so many bytes.
func decodeUpTo(w http.ResponseWriter, r *http.Request, v any, most int64) *protocol.Error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bodyError(err)
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "body: allowed is one JSON object; received more behind it"}
	}
	return nil
}

func bodyError(err error) *protocol.Error {
	var tooBig *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	detail := "body: allowed is one JSON object"
	switch {
	case errors.As(err, &tooBig):
		return &protocol.Error{Reason: protocol.ReasonTooLong, Detail: fmt.Sprintf("body: allowed is at most %d bytes", tooBig.Limit)}
	case errors.As(err, &kind) && kind.Field != "":
		detail = fmt.Sprintf("%s: allowed is %s; received %s", kind.Field, typeWord(kind.Type.Kind().String()), kind.Value)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		detail = strings.TrimPrefix(err.Error(), "json: unknown field ") + ": allowed is a known field; received an unknown one"
	}
	return &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: detail}
}

// typeWord turns Go's word for a type into JSON's.
func typeWord(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case kind == "bool":
		return "true or false"
	case kind == "struct", kind == "map", kind == "ptr":
		return "an object"
	case kind == "slice":
		return "a list"
	}
	return "a " + kind
}

// number reads a query parameter as a whole number from least to most.
func number(r *http.Request, name string, least, most, otherwise uint64) (uint64, *protocol.Error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, protocol.BadField(name, strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(most, 10), text)
	}
	return n, nil
}

// page reads where a page of a list begins and how long it is.
func page(r *http.Request, cursor string, most, usual uint64) (from uint64, limit int, err *protocol.Error) {
	if from, err = number(r, cursor, 0, math.MaxInt64, 0); err != nil {
		return 0, 0, err
	}
	n, err := number(r, "limit", 1, most, usual)
	return from, int(n), err
}

// truth reads a query parameter as true or false.
func truth(r *http.Request, name string) (bool, *protocol.Error) {
	switch text := r.URL.Query().Get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, protocol.BadField(name, "true or false", text)
	}
}
