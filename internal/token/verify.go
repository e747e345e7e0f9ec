package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/limit"
	"liveroom/protocol"
)

// Errors of [Authority.Verify], beside [UnjudgedError]. Their texts are safe to show and fit a close reason.
var (
	ErrExpired   = errors.New("expired")
	ErrSignature = errors.New("bad signature or unknown key")
	ErrMalformed = errors.New("not a signed token")
	ErrClaims    = errors.New("bad claims")
	ErrRevoked   = errors.New("revoked")
)

// Verify returns who signed. Its error is an [UnjudgedError], or wraps one of this package's errors, followed by which
// claim is bad.
func (a *Authority) Verify(signed string) (Identity, error) {
	if len(signed) > maxTokenBytes {
		return Identity{}, ErrMalformed
	}
	var c claims
	judgedBy := a.keys.newest()
	t, err := a.parser.ParseWithClaims(signed, &c, a.key)
	if err != nil {
		return Identity{}, a.reason(t, err, judgedBy)
	}
	if _, critical := t.Header["crit"]; critical { // an extension that must be understood (RFC 7515, section 4.1.11); none is
		return Identity{}, ErrSignature
	}
	if err := plainClaims(signed); err != nil {
		return Identity{}, err
	}
	guest := isGuest(t)
	if err := a.meant(&c, guest); err != nil {
		return Identity{}, err
	}
	who, err := c.identity(guest)
	if err != nil {
		return who, err
	}
	if !guest {
		if who.Attrs, err = c.attrs(a.attributes); err != nil {
			return Identity{}, err
		}
	}
	if who.ID == "" {
		who.ID = digest(signed)
	}
	if a.Revoked(who) {
		return Identity{}, ErrRevoked
	}
	return who, nil
}

// meant refuses a token of another issuer, or for another audience, where the operator has named his. A guest's is this
// server's own.
func (a *Authority) meant(c *claims, guest bool) error {
	if guest {
		return nil
	}
	v := jwt.NewValidator(append(a.require, jwt.WithLeeway(a.leeway), jwt.WithTimeFunc(a.now))...)
	if err := v.Validate(c); err != nil {
		return a.reason(nil, err, time.Time{})
	}
	return nil
}

// Revoked tells whether an identity that was verified before would not be any more, because it was revoked meanwhile.
func (a *Authority) Revoked(i Identity) bool { return a.revoked != nil && a.revoked.Revoked(i) }

// Refusal is what the bearer is told of an error of [Authority.Verify]: what can't be judged now is no verdict.
func Refusal(err error) *protocol.Error {
	var unjudged *UnjudgedError
	if errors.As(err, &unjudged) {
		return &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(unjudged.RetryAfter), Detail: err.Error()}
	}
	return &protocol.Error{Reason: protocol.ReasonUnauthenticated, Detail: err.Error()}
}

// reason turns the parser's error into one of ours. t is nil where it could not be read; judgedBy is the key set that it was held to.
func (a *Authority) reason(t *jwt.Token, err error, judgedBy time.Time) error {
	var unjudged *UnjudgedError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &unjudged):
		return unjudged
	case t != nil && errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%w: %s", ErrClaims, kind.Field[strings.LastIndexByte(kind.Field, '.')+1:])
	case errors.Is(err, errSubject):
		return fmt.Errorf("%w: sub", ErrClaims)
	case errors.Is(err, jwt.ErrTokenExpired):
		return ErrExpired
	case errors.Is(err, jwt.ErrTokenMalformed):
		return ErrMalformed
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("%w: nbf", ErrClaims)
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return fmt.Errorf("%w: iss", ErrClaims)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return fmt.Errorf("%w: aud", ErrClaims)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return fmt.Errorf("%w: exp", ErrClaims)
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return ErrClaims
	}
	if t != nil && a.keys != nil && t.Method.Alg() != jwt.SigningMethodHS256.Alg() && errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		if _, named := t.Header["kid"]; !named { // no key of the set fits: perhaps a newer one does
			if err := a.keys.doubt("", judgedBy); err != nil {
				return err
			}
		}
	}
	return ErrSignature
}
