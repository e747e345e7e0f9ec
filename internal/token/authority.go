package token

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Config says which keys an Authority trusts.
type Config struct {
	Secret  string           // key of HS256; must not be empty
	JWKSURL string           // key set of RS256 and ES256; "": neither is accepted
	Now     func() time.Time // nil: time.Now
	Revoked *Revocations     // nil: nothing is
	// Issuer and Audience are what a token must say in iss and aud, a guest's excepted; "": nothing is asked.
	Issuer, Audience string
	Attributes       []string      // the names of attributes that are read
	Leeway           time.Duration // how far the clock of who signs may be off; 0: [DefaultLeeway]
}

// DefaultLeeway is how far the clock of the platform that signs may be off, unless something else is configured.
const DefaultLeeway = 2 * time.Second

// Authority verifies and signs tokens.
type Authority struct {
	// Fixed after construction.
	secret   []byte
	guest    []byte  // signs guests, derived from secret
	keys     *keySet // nil without a key set
	parser   *jwt.Parser
	issuer   string
	audience string
	require  []jwt.ParserOption // what iss and aud must be
	leeway   time.Duration
	// attributes are the names of those that are read.
	attributes []string
	now        func() time.Time

	revoked *Revocations // safe for concurrent use by itself
}

const (
	// maxTokenBytes is far above any sensible token and far below what a frame may hold.
	maxTokenBytes = 8 << 10
)

// kidGuest is the key id of guest tokens. A key set is never asked for HS256, so it can't collide.
const kidGuest = "guest"

// NewAuthority returns an Authority. With a key set it fetches the keys and goes on refreshing them until ctx
// ends; a key set that can't be fetched yet is no error, but its tokens can't be judged until it can.
func NewAuthority(ctx context.Context, c Config, log *slog.Logger) (*Authority, error) {
	if c.Secret == "" {
		return nil, errors.New("token: a secret is needed")
	}
	a := &Authority{secret: []byte(c.Secret), issuer: c.Issuer, audience: c.Audience, attributes: c.Attributes, leeway: cmp.Or(c.Leeway, DefaultLeeway), now: c.Now, revoked: c.Revoked}
	if a.now == nil {
		a.now = time.Now
	}
	mac := hmac.New(sha256.New, a.secret)
	mac.Write([]byte("liveroom guest 1"))
	a.guest = mac.Sum(nil)
	methods := []string{jwt.SigningMethodHS256.Alg()}
	if c.JWKSURL != "" {
		keys, err := fetchKeys(ctx, c.JWKSURL, log)
		if err != nil {
			return nil, err
		}
		a.keys = keys
		methods = append(methods, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg())
	}
	if c.Issuer != "" {
		a.require = append(a.require, jwt.WithIssuer(c.Issuer))
	}
	if c.Audience != "" {
		a.require = append(a.require, jwt.WithAudience(c.Audience))
	}
	a.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithLeeway(a.leeway), jwt.WithTimeFunc(a.now))
	return a, nil
}

// Leeway is how far the clock of who signs may be off: a token is good for so long after it has expired.
func (a *Authority) Leeway() time.Duration { return a.leeway }

// key picks the key for a token by its algorithm and nothing else that the token says of itself, except for which of
// the two HS256 keys it is.
func (a *Authority) key(t *jwt.Token) (any, error) {
	if t.Method.Alg() != jwt.SigningMethodHS256.Alg() {
		return a.keys.key(t)
	}
	if isGuest(t) {
		return a.guest, nil
	}
	return a.secret, nil
}

func isGuest(t *jwt.Token) bool {
	return t.Method.Alg() == jwt.SigningMethodHS256.Alg() && t.Header["kid"] == kidGuest
}
