package token

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// GuestTTL is how long a guest who stays away keeps its identity; every hello starts it again.
const GuestTTL = 30 * 24 * time.Hour

// Issue signs a token for i with the secret, good for ttl. It refuses what [Authority.Verify] would refuse.
func (a *Authority) Issue(i Identity, ttl time.Duration) (string, error) {
	if ttl <= 0 {
		return "", fmt.Errorf("%w: exp", ErrClaims)
	}
	c := a.claims(i, ttl)
	if _, err := c.identity(false); err != nil {
		return "", err
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(a.secret)
}

// NewGuest names a new guest and signs its token.
func (a *Authority) NewGuest() (Identity, string) {
	user := protocol.GuestPrefix + strings.ToLower(rand.Text()[:12]) // 60 random bits
	return a.RenewGuest(Identity{User: user, Name: guestName(user), Role: protocol.RoleViewer, Guest: true})
}

// guestName is short enough for a chat line and tells guests apart.
func guestName(user string) string {
	return "Guest " + strings.ToUpper(user[len(user)-4:])
}

// RenewGuest signs a known guest's token again, so that it never runs out while the guest keeps coming. Issued stays when the guest was
// named.
func (a *Authority) RenewGuest(i Identity) (Identity, string) {
	i.ID = ""
	c := a.claims(i, GuestTTL)
	if !i.Issued.IsZero() {
		c.IssuedAt = jwt.NewNumericDate(i.Issued)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	t.Header["kid"] = kidGuest
	signed, err := t.SignedString(a.guest)
	if err != nil {
		panic("token: HS256 refused its key: " + err.Error()) // it accepts any bytes
	}
	i.Issued, i.Expires, i.ID = c.IssuedAt.Time, c.ExpiresAt.Time, digest(signed)
	return i, signed
}

func (a *Authority) claims(i Identity, ttl time.Duration) *claims {
	now := a.now()
	c := &claims{
		RegisteredClaims: jwt.RegisteredClaims{ID: i.ID, Issuer: a.issuer, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl))},
		User:             subject(i.User), Name: i.Name, Role: i.Role, Rooms: i.Rooms, Attrs: json.RawMessage(i.Attrs),
	}
	if a.audience != "" {
		c.Audience = jwt.ClaimStrings{a.audience}
	}
	return c
}
