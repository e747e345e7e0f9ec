package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"liveroom/protocol"
)

// askTimeout bounds what is asked of the provider, once for each sign-in and once for what it says of itself.
const askTimeout = 10 * time.Second

// provider is what the identity provider has said of itself, see [oidc.NewProvider].
type provider struct {
	oauth    oauth2.Config // without the address to come back to
	verifier *oidc.IDTokenVerifier
}

var (
	errAway   = errors.New("the provider does not answer")
	errNoRole = errors.New("no value of the claim stands for a role")
)

// discover returns the provider; it is asked until it has answered once.
func (e *Entrance) discover(ctx context.Context) (*provider, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errAway, ctx.Err())
	}
	if e.known != nil {
		return e.known, nil
	}
	said, err := oidc.NewProvider(ctx, e.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	var metadata struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := said.Claims(&metadata); err != nil {
		return nil, err
	}
	at := said.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInHeader // unless said otherwise (OpenID Connect Discovery 1.0, section 3); to try both may use the code up
	if e.cfg.ClientSecret == "" || slices.Contains(metadata.Methods, "client_secret_post") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	e.known = &provider{
		oauth: oauth2.Config{ClientID: e.cfg.ClientID, ClientSecret: e.cfg.ClientSecret, Endpoint: at, Scopes: e.cfg.Scopes},
		// The library asks that exp is in the future; the provider's clock may be behind ours by the leeway.
		verifier: said.Verifier(&oidc.Config{ClientID: e.cfg.ClientID, Now: func() time.Time { return e.cfg.Now().Add(-e.cfg.Leeway) }}),
	}
	return e.known, nil
}

// judge turns the code into who has signed in. Its error wraps [errAway] or [errNoRole] where it is one.
func (e *Entrance) judge(ctx context.Context, code, back string, f flow) (session, error) {
	p, err := e.discover(ctx)
	if err != nil {
		return session{}, err
	}
	conf := p.oauth
	conf.RedirectURL = back
	got, err := conf.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if !errors.As(err, &refused) || refused.Response.StatusCode >= http.StatusInternalServerError {
			err = fmt.Errorf("%w: %w", errAway, err)
		}
		return session{}, err
	}
	raw, _ := got.Extra("id_token").(string)
	id, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return session{}, err
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(got.AccessToken); err != nil {
			return session{}, err
		}
	}
	return e.believe(id, f.Nonce)
}

// believe reads a verified ID token (OpenID Connect Core 1.0, section 3.1.3.7).
func (e *Entrance) believe(id *oidc.IDToken, nonce string) (session, error) {
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return session{}, err
	}
	party, named := claims["azp"]
	user := UserPrefix + id.Subject
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return session{}, errors.New("the nonce is another sign-in's")
	case named && party != e.cfg.ClientID:
		return session{}, errors.New("the token was given to another client (azp)")
	case id.Subject == "" || !protocol.ValidUser(user):
		return session{}, fmt.Errorf("sub: allowed is 1 to %d printable bytes; received %d", protocol.MaxUser-len(UserPrefix), len(id.Subject))
	}
	s := session{User: user}
	for _, claim := range []string{"name", "preferred_username", "email"} {
		if text, _ := claims[claim].(string); s.Name == "" {
			s.Name = protocol.CleanName(text, "")
		}
	}
	switch held := values(claims, e.cfg.Claim); {
	case meet(held, e.cfg.Admins):
		s.Role = protocol.RoleAdmin
	case meet(held, e.cfg.Moderators):
		s.Role = protocol.RoleModerator
	case meet(held, e.cfg.Readers):
		s.Role, s.Reader = protocol.RoleViewer, true
	default:
		return s, errNoRole
	}
	return s, nil
}

func meet(held, wanted []string) bool {
	return slices.ContainsFunc(held, func(v string) bool { return slices.Contains(wanted, v) })
}

// values are a claim's: a text, or a list of texts. A name with dots is also a way into objects, as realm_access.roles is.
func values(claims map[string]any, name string) []string {
	switch v := claims[name].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	outer, inner, ok := strings.Cut(name, ".")
	if within, isObject := claims[outer].(map[string]any); ok && isObject {
		return values(within, inner)
	}
	return nil
}
