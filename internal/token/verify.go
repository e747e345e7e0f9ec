package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// Errors of [Authority.Verify]. Their texts are safe to show and fit a close reason.
var (
	ErrExpired   = errors.New("expired")
	ErrSignature = errors.New("bad signature or unknown key")
	ErrMalformed = errors.New("not a signed token")
	ErrClaims    = errors.New("bad claims")
	ErrRevoked   = errors.New("revoked")
)

// maxRooms bounds a token's list of rooms.
const maxRooms = 256

// claims is a token's content. sub, exp, nbf and jti come with jwt.RegisteredClaims.
type claims struct {
	jwt.RegisteredClaims
	Name  string        `json:"name,omitempty"`
	Role  protocol.Role `json:"role,omitempty"`
	Rooms rooms         `json:"rooms,omitempty"`
}

// rooms reads a list, or one room as a plain text.
type rooms []string

// UnmarshalJSON implements json.Unmarshaler.
func (r *rooms) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*r = rooms{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(r))
}

// Verify returns who signed. Its error wraps one of this package's errors, followed by which claim is bad.
func (a *Authority) Verify(signed string) (Identity, error) {
	if len(signed) > maxTokenBytes {
		return Identity{}, ErrMalformed
	}
	var c claims
	t, err := a.parser.ParseWithClaims(signed, &c, a.key)
	if err != nil {
		return Identity{}, reason(err)
	}
	if _, critical := t.Header["crit"]; critical { // an extension that must be understood (RFC 7515, section 4.1.11); none is
		return Identity{}, ErrSignature
	}
	who, err := c.identity(isGuest(t))
	if err != nil {
		return who, err
	}
	if who.ID == "" {
		who.ID = digest(signed)
	}
	if a.Revoked(who) {
		return Identity{}, ErrRevoked
	}
	return who, nil
}

// Revoked tells whether an identity that was verified before would not be any more, because it was revoked meanwhile.
func (a *Authority) Revoked(i Identity) bool { return a.revoked != nil && a.revoked.Revoked(i) }

func reason(err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return ErrExpired
	case errors.Is(err, jwt.ErrTokenMalformed):
		return ErrMalformed
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("%w: nbf", ErrClaims)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return fmt.Errorf("%w: exp", ErrClaims)
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return ErrClaims
	}
	return ErrSignature
}

func (c *claims) identity(guest bool) (Identity, error) {
	if c.Role == "" {
		c.Role = protocol.RoleViewer
	}
	switch {
	case !protocol.ValidUser(c.Subject):
		return Identity{}, fmt.Errorf("%w: sub", ErrClaims)
	case guest != strings.HasPrefix(c.Subject, protocol.GuestPrefix):
		return Identity{}, fmt.Errorf("%w: sub", ErrClaims)
	case !protocol.ValidRole(c.Role), guest && c.Role != protocol.RoleViewer:
		return Identity{}, fmt.Errorf("%w: role", ErrClaims)
	case !c.roomsValid():
		return Identity{}, fmt.Errorf("%w: rooms", ErrClaims)
	}
	var issued time.Time
	if c.IssuedAt != nil {
		issued = c.IssuedAt.Time
	}
	return Identity{
		Issued: issued,
		User:   c.Subject, Name: protocol.CleanName(c.Name, c.Subject), Role: c.Role, Rooms: c.Rooms,
		Guest: guest, Expires: c.ExpiresAt.Time, ID: c.ID,
	}, nil
}

// roomsValid requires rooms for the roles whose power they bound.
func (c *claims) roomsValid() bool {
	if len(c.Rooms) == 0 {
		return c.Role != protocol.RoleHost && c.Role != protocol.RoleModerator
	}
	for _, r := range c.Rooms {
		if r != AllRooms && !protocol.ValidRoom(r) {
			return false
		}
	}
	return len(c.Rooms) <= maxRooms
}
