package token

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// Config says which keys an Authority trusts.
type Config struct {
	Secret  string           // key of HS256; must not be empty
	JWKSURL string           // key set of RS256 and ES256; "": neither is accepted
	Now     func() time.Time // nil: time.Now
	Revoked *Revocations     // nil: nothing is
}

// Authority verifies and signs tokens.
type Authority struct {
	// Fixed after construction.
	secret []byte
	guest  []byte // signs guests, derived from secret
	jwks   jwt.Keyfunc
	parser *jwt.Parser
	now    func() time.Time

	revoked *Revocations // safe for concurrent use by itself
}

const (
	// maxTokenBytes is far above any sensible token and far below what a frame may hold.
	maxTokenBytes = 8 << 10
	// leeway is how far the clock of the platform that signs may be off.
	leeway = 2 * time.Second
	// A key set is fetched again after jwksRefresh, and for a key id it does not hold at most once per jwksUnknown.
	jwksRefresh = 10 * time.Minute
	jwksUnknown = 30 * time.Second
	jwksTimeout = 5 * time.Second
)

// kidGuest is the key id of guest tokens. A key set is never asked for HS256, so it can't collide.
const kidGuest = "guest"

// NewAuthority returns an Authority. With a key set it fetches the keys once and goes on refreshing them until ctx
// ends; a key set that can't be fetched yet is no error, but its tokens are refused until it can.
func NewAuthority(ctx context.Context, c Config, log *slog.Logger) (*Authority, error) {
	if c.Secret == "" {
		return nil, errors.New("token: a secret is needed")
	}
	a := &Authority{secret: []byte(c.Secret), now: c.Now, revoked: c.Revoked}
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
		a.jwks = keys.Keyfunc
		methods = append(methods, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg())
	}
	a.parser = jwt.NewParser(jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(a.now))
	return a, nil
}

func fetchKeys(ctx context.Context, url string, log *slog.Logger) (keyfunc.Keyfunc, error) {
	keys, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		Client:           &http.Client{Timeout: jwksTimeout},
		HTTPTimeout:      jwksTimeout,
		RateLimitWaitMax: time.Millisecond,
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(_ context.Context, err error) { log.Warn("key set not fetched", "url", u, "err", err) }
		},
		RefreshInterval:   jwksRefresh,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(jwksUnknown), 1),
	})
	if err != nil {
		return nil, fmt.Errorf("key set %s: %w", url, err)
	}
	return keys, nil
}

// key picks the key for a token by its algorithm and nothing else that the token says of itself, except for which of
// the two HS256 keys it is.
func (a *Authority) key(t *jwt.Token) (any, error) {
	if t.Method.Alg() != jwt.SigningMethodHS256.Alg() {
		return a.jwks(t)
	}
	if isGuest(t) {
		return a.guest, nil
	}
	return a.secret, nil
}

func isGuest(t *jwt.Token) bool {
	return t.Method.Alg() == jwt.SigningMethodHS256.Alg() && t.Header["kid"] == kidGuest
}
