package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// maxRooms bounds a token's list of rooms.
const maxRooms = 256

// claims is a token's content. exp, nbf, iat, iss, aud and jti come with jwt.RegisteredClaims.
type claims struct {
	jwt.RegisteredClaims
	User  subject       `json:"sub"`
	Name  string        `json:"name,omitempty"`
	Role  protocol.Role `json:"role,omitempty"`
	Rooms rooms         `json:"rooms,omitempty"`
	// Attrs is read where attributes are configured; else it may be anything.
	Attrs json.RawMessage `json:"attrs,omitempty"`
}

// GetSubject implements jwt.Claims.
func (c *claims) GetSubject() (string, error) { return string(c.User), nil }

// subject reads a text, or a whole number, which stands for its digits.
type subject string

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

// UnmarshalJSON implements json.Unmarshaler.
func (s *subject) UnmarshalJSON(b []byte) error {
	if wholeNumber.Match(b) {
		*s = subject(b)
		return nil
	}
	if err := json.Unmarshal(b, (*string)(s)); err != nil {
		return errSubject
	}
	return nil
}

// errSubject is why a token's sub can't be read.
var errSubject = errors.New("sub is neither a text nor a whole number")

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

// known are the claims that are read.
var known = []string{"sub", "name", "role", "rooms", "attrs", "exp", "nbf", "iat", "iss", "aud", "jti"}

// plainClaims refuses a token whose content says something twice, or a known claim in another letter case: two programs
// would read two things in it.
func plainClaims(signed string) error {
	_, rest, _ := strings.Cut(signed, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ErrMalformed
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ErrMalformed
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return ErrMalformed
		}
		if seen[name] {
			return fmt.Errorf("%w: %.20s twice", ErrClaims, name)
		}
		seen[name] = true
		for _, k := range known {
			if name != k && strings.EqualFold(name, k) {
				return fmt.Errorf("%w: %s written otherwise", ErrClaims, k)
			}
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return ErrMalformed
		}
	}
	if _, err := d.Token(); err != nil {
		return ErrMalformed
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return ErrMalformed
	}
	return nil
}

// attrs reads the attributes that have one of the names; others are another product's.
func (c *claims) attrs(names []string) (protocol.Attrs, error) {
	if len(c.Attrs) == 0 || len(names) == 0 {
		return "", nil
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(c.Attrs, &given) != nil {
		return "", fmt.Errorf("%w: attrs", ErrClaims)
	}
	maps.DeleteFunc(given, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
	attrs, bad := protocol.ParseAttrs(given, names)
	if bad != nil {
		return "", fmt.Errorf("%w: attrs", ErrClaims)
	}
	return attrs, nil
}

func (c *claims) identity(guest bool) (Identity, error) {
	if c.Role == "" {
		c.Role = protocol.RoleViewer
	}
	user := string(c.User)
	switch {
	case !protocol.ValidUser(user):
		return Identity{}, fmt.Errorf("%w: sub", ErrClaims)
	case guest != strings.HasPrefix(user, protocol.GuestPrefix):
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
		User:   user, Name: protocol.CleanName(c.Name, user), Role: c.Role, Rooms: c.Rooms,
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
