package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"liveroom/internal/token"
	"liveroom/protocol"
)

// Revoker tells all nodes that a name of package token is not good any more, and returns once that is stored.
type Revoker interface {
	Revoke(ctx context.Context, name string, at time.Time) error
}

// maxTokenID bounds a jti.
const maxTokenID = 256

type revokeBody struct {
	User    string `json:"user"`
	TokenID string `json:"token_id"`
	Token   string `json:"token"`
}

// name checks that one thing is to be revoked, and names it.
func (b *revokeBody) name(tokens Tokens) (name, kind string, err *protocol.Error) {
	given := 0
	for _, s := range []string{b.User, b.TokenID, b.Token} {
		if s != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return "", "", &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "body: allowed is one of user, token_id and token"}
	case b.User != "":
		return token.UserName(b.User), "user", protocol.CheckUser("user", b.User)
	case len(b.TokenID) > maxTokenID:
		return "", "", &protocol.Error{Reason: protocol.ReasonTooLong, Detail: "token_id: allowed are at most 256 bytes"}
	case b.TokenID != "":
		return token.TokenName(b.TokenID), "token", nil
	}
	who, bad := tokens.Verify(b.Token)
	if bad != nil {
		return "", "", &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "token: " + bad.Error()}
	}
	return token.TokenName(who.ID), "token", nil
}

func (a *API) revokeCalls() []route {
	return []route{
		{http.MethodPost, "/sessions/revoke", administers, a.revoke},
		{http.MethodDelete, "/users/{user}", administers, a.eraseUser},
	}
}

func (a *API) revoke(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	var b revokeBody
	if err := decode(w, r, &b); err != nil {
		return nil, err
	}
	name, kind, err := b.name(a.cfg.Tokens)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if fault := a.cfg.Revoker.Revoke(r.Context(), name, now); fault != nil {
		return nil, storeError{fmt.Errorf("revoke: %w", fault)}
	}
	a.cfg.Log.Info("revoked", "kind", kind, "user", b.User, "by", c.User)
	return struct {
		Revoked string `json:"revoked"`
		Time    int64  `json:"time"`
	}{kind, now.UnixMilli()}, nil
}

// eraseUser has all nodes and logs forget what a user has said.
func (a *API) eraseUser(_ http.ResponseWriter, r *http.Request, c call) (any, error) {
	user := r.PathValue("user")
	if err := protocol.CheckUser("user", user); err != nil {
		return nil, err
	}
	until, err := a.cfg.Hub.EraseUser(r.Context(), c.identity(), user)
	if err != nil {
		return nil, err
	}
	return struct {
		User  string `json:"user"`
		Until int64  `json:"until"`
	}{user, until}, nil
}
