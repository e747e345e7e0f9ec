package token

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// provider is an identity provider on the other side of a slow line. Safe for concurrent use.
type provider struct {
	delay   time.Duration
	fetches atomic.Int64
	set     atomic.Pointer[[]byte] // nil: it is away
}

func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	p.fetches.Add(1)
	set := p.set.Load()
	select {
	case <-time.After(p.delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if set == nil {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(*set)), Request: r}, nil
}

func (p *provider) serve(t *testing.T, keys map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	servedSet(t, keys).ServeHTTP(w, nil)
	set := w.Body.Bytes()
	p.set.Store(&set)
}

// trusting is an authority over the provider's keys, until the bubble's end.
func trusting(t *testing.T, p *provider) *Authority {
	t.Helper()
	a := authority(t, Config{})
	ctx, stop := context.WithCancel(context.Background())
	a.keys = newKeySet("http://idp.test/", &http.Client{Transport: p, Timeout: keysTimeout}, quiet)
	a.parser = jwt.NewParser(jwt.WithExpirationRequired(), jwt.WithTimeFunc(time.Now))
	var wg sync.WaitGroup
	wg.Go(func() { a.keys.run(ctx, make(chan struct{})) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return a
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signedBy(t *testing.T, key *rsa.PrivateKey, kid string) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()})
	if kid != "" {
		tok.Header["kid"] = kid
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// unsigned is a token by a key that nobody has, so that no signature of it is ever looked at.
func unsigned(t *testing.T, kid string) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()})
	tok.Header["kid"] = kid
	s, err := tok.SigningString()
	if err != nil {
		t.Fatal(err)
	}
	return s + ".c2lnbmF0dXJl"
}

// acceptedAfter asks every second, as pages do that are told to come back, until the token is taken.
func acceptedAfter(t *testing.T, a *Authority, signed string, most time.Duration) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		_, err := a.Verify(signed)
		took := time.Since(start)
		if err == nil {
			return took
		}
		if _, later := retryAfter(err); !later {
			t.Fatalf("after %v: a verdict, %v", took, err)
		}
		if took > most {
			t.Fatalf("not taken within %v", most)
		}
		time.Sleep(time.Second)
	}
}

func TestARotatedKeyIsTakenUpThoughTheSetIsSlow(t *testing.T) {
	first, second := newKey(t), newKey(t)
	for _, kids := range [][2]string{{"a", "b"}, {"", ""}} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{delay: time.Second}
			p.serve(t, map[string]any{kids[0]: first})
			a := trusting(t, p)
			acceptedAfter(t, a, signedBy(t, first, kids[0]), 5*time.Second)
			time.Sleep(3 * time.Minute)
			p.serve(t, map[string]any{kids[1]: second})
			if took := acceptedAfter(t, a, signedBy(t, second, kids[1]), 31*time.Second); took > 31*time.Second {
				t.Errorf("taken after %v", took)
			}
		})
	}
}

func TestStrangersNeitherStarveTheRefreshNorFloodTheProvider(t *testing.T) {
	first, second := newKey(t), newKey(t)
	synctest.Test(t, func(t *testing.T) {
		p := &provider{delay: time.Second}
		p.serve(t, map[string]any{"a": first})
		a := trusting(t, p)
		time.Sleep(time.Minute)
		began := p.fetches.Load()
		for i := range 5 * maxDoubts {
			_, _ = a.Verify(unsigned(t, fmt.Sprint("bogus", i)))
			if i%50 == 0 {
				time.Sleep(time.Second)
			}
		}
		if n := p.fetches.Load() - began; n > 5*maxDoubts/50/5+2 {
			t.Errorf("%d fetches", n)
		}
		p.serve(t, map[string]any{"b": second})
		acceptedAfter(t, a, signedBy(t, second, "b"), 31*time.Second)
	})
}

func TestAKeyThatIsNowhereIsAVerdictOnceTheSetWasAsked(t *testing.T) {
	key := newKey(t)
	synctest.Test(t, func(t *testing.T) {
		p := &provider{delay: 100 * time.Millisecond}
		p.serve(t, map[string]any{"a": key})
		a := trusting(t, p)
		time.Sleep(time.Minute)
		bogus := signedBy(t, key, "bogus")
		_, err := a.Verify(bogus)
		retry, later := retryAfter(err)
		if !later || retry <= 0 {
			t.Fatalf("at first: %v", err)
		}
		time.Sleep(retry)
		if _, err := a.Verify(bogus); !errors.Is(err, ErrSignature) {
			t.Errorf("after %v: %v", retry, err)
		}
	})
}

func TestAProviderThatIsAwayIsNoVerdict(t *testing.T) {
	key := newKey(t)
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		a := trusting(t, p)
		signed := signedBy(t, key, "a")
		for range 20 {
			if _, err := a.Verify(signed); err == nil {
				t.Fatal("taken without a key")
			} else if _, later := retryAfter(err); !later {
				t.Fatalf("a verdict: %v", err)
			}
			time.Sleep(time.Second)
		}
		p.serve(t, map[string]any{"a": key})
		acceptedAfter(t, a, signed, 10*time.Second)
		p.set.Store(nil)
		time.Sleep(time.Hour)
		if _, err := a.Verify(signedBy(t, key, "a")); err != nil {
			t.Errorf("what is known is judged while the provider is away: %v", err)
		}
	})
}

func TestSubjectsAsProvidersWriteThem(t *testing.T) {
	a := authority(t, Config{})
	for want, sub := range map[string]any{
		"auth0|5f7c8ec7": "auth0|5f7c8ec7", "google-oauth2|1065": "google-oauth2|1065", "https://id.test/u/7?x=y": "https://id.test/u/7?x=y",
		strings.Repeat("a", 255): strings.Repeat("a", 255), "12345": 12345, "李雷 =\"x\"": "李雷 =\"x\"", "18446744073709551616": written("18446744073709551616"),
	} {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": sub, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if who, err := a.Verify(signed); err != nil || who.User != want {
			t.Errorf("%v: %q, %v", sub, who.User, err)
		}
	}
}

func TestAClaimOfAnotherKindIsNamed(t *testing.T) {
	a := authority(t, Config{})
	for claim, value := range map[string]any{"sub": []string{"u"}, "name": 7, "role": []string{"admin"}, "jti": 1} {
		claims := jwt.MapClaims{"sub": "u", "exp": time.Now().Add(time.Hour).Unix()}
		claims[claim] = value
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Verify(signed); !errors.Is(err, ErrClaims) || !strings.HasSuffix(err.Error(), ": "+claim) {
			t.Errorf("%s %v: %v", claim, value, err)
		}
	}
}

// written is a number as it is written.
type written string

func (j written) MarshalJSON() ([]byte, error) { return []byte(j), nil }

func TestIssuerAndAudience(t *testing.T) {
	a := authority(t, Config{Issuer: "https://id.test", Audience: "liveroom"})
	sign := func(claims jwt.MapClaims) string {
		claims["sub"], claims["exp"] = "u1", time.Now().Add(time.Hour).Unix()
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	for name, tc := range map[string]struct {
		claims jwt.MapClaims
		bad    string
	}{
		"both":                {jwt.MapClaims{"iss": "https://id.test", "aud": []string{"other", "liveroom"}}, ""},
		"another application": {jwt.MapClaims{"iss": "https://id.test", "aud": "other-app"}, "bad claims: aud"},
		"no audience":         {jwt.MapClaims{"iss": "https://id.test"}, "bad claims"},
		"a foreign issuer":    {jwt.MapClaims{"iss": "https://evil.test", "aud": "liveroom"}, "bad claims: iss"},
	} {
		_, err := a.Verify(sign(tc.claims))
		if (err == nil) != (tc.bad == "") || err != nil && !strings.HasPrefix(err.Error(), tc.bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	own, err := a.Issue(Identity{User: "u1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, guest := a.NewGuest()
	for _, signed := range []string{own, guest} {
		if _, err := a.Verify(signed); err != nil {
			t.Errorf("this server's own: %v", err)
		}
	}
}

func TestAClaimGivenTwiceIsRefused(t *testing.T) {
	a := authority(t, Config{})
	for payload, bad := range map[string]bool{
		`{"sub":"u","exp":9999999999}`:                                false,
		`{"sub":"u","exp":9999999999,"role":"viewer","role":"admin"}`: true,
		`{"sub":"u","exp":9999999999,"Role":"admin"}`:                 true,
		`{"sub":"u","exp":9999999999,"x":{"role":1,"role":2}}`:        false,
		`{"sub":"u","sub":"v","exp":9999999999}`:                      true,
	} {
		head := "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(payload))
		sig, err := jwt.SigningMethodHS256.Sign(head, []byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Verify(head + "." + base64.RawURLEncoding.EncodeToString(sig)); (err != nil) != bad || bad && !errors.Is(err, ErrClaims) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestAnAdminOfRoomsAdministersThoseAlone(t *testing.T) {
	all, some := Identity{Role: "admin"}, Identity{Role: "admin", Rooms: []string{"a"}}
	if !all.Administers() || !all.Moderates("b") || some.Administers() || some.Moderates("b") || !some.Moderates("a") {
		t.Error("rooms bound an admin like everybody else")
	}
}

// retryAfter tells when to try again, and whether err is no verdict.
func retryAfter(err error) (time.Duration, bool) {
	var unjudged *UnjudgedError
	if !errors.As(err, &unjudged) {
		return 0, Refusal(err).Reason == protocol.ReasonUnavailable
	}
	return unjudged.RetryAfter, Refusal(err).Reason == protocol.ReasonUnavailable
}
