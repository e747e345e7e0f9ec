package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"liveroom/internal/token"
	"liveroom/protocol"
)

// SessionTime is how long an operator is signed in.
const SessionTime = time.Hour

// flowTime is how long somebody may take at the provider.
const flowTime = 10 * time.Minute

// UserPrefix begins the user of who has signed in here; the provider's sub follows. Users of the platform's tokens are others.
const UserPrefix = "oidc:"

// session is who has signed in, as the cookie holds it.
type session struct {
	User   string        `json:"user"`
	Name   string        `json:"name,omitempty"`
	Role   protocol.Role `json:"role"`
	Reader bool          `json:"reader,omitempty"`
	From   int64         `json:"from"`  // Unix ms
	Until  int64         `json:"until"` // Unix ms
	ID     string        `json:"id"`
}

// identity is who calls, as the API knows one.
func (s *session) identity() token.Identity {
	return token.Identity{User: s.User, Name: s.Name, Role: s.Role, Issued: time.UnixMilli(s.From), Expires: time.UnixMilli(s.Until), ID: s.ID}
}

// flow is somebody on the way to the provider and back.
type flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Until    int64  `json:"until"` // Unix ms
}

// A cookie's name is also what it is sealed for, so that none passes for the other.
const (
	sessionCookie = "liveroom-operator"
	flowCookie    = "liveroom-signin"
)

// newSealer derives the key.
func newSealer(secret string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "liveroom operators' cookies 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// secure reports whether the operator's browser speaks TLS, to this listener or to a proxy before it.
func (e *Entrance) secure(r *http.Request) bool {
	return r.TLS != nil || e.url != nil && e.url.Scheme == "https"
}

// cookieName has a prefix by which browsers let no other host, and nobody in between, set it (RFC 6265bis, section 4.1.3.2).
func (e *Entrance) cookieName(r *http.Request, name string) string {
	if e.secure(r) {
		return "__Host-" + name
	}
	return name
}

// put seals v into a cookie; nil takes the cookie away.
func (e *Entrance) put(w http.ResponseWriter, r *http.Request, name string, v any, lives time.Duration, site http.SameSite) error {
	c := &http.Cookie{Name: e.cookieName(r, name), Path: "/", MaxAge: -1, Secure: e.secure(r), HttpOnly: true, SameSite: site}
	if v != nil {
		plain, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("seal a cookie: %w", err)
		}
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(e.sealer.Seal(nil, nil, plain, []byte(name))), int(lives/time.Second)
	}
	http.SetCookie(w, c)
	return nil
}

// open reads a cookie into v. False: there is none, or it is not one of ours.
func (e *Entrance) open(r *http.Request, name string, v any) bool {
	c, err := r.Cookie(e.cookieName(r, name))
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	plain, err := e.sealer.Open(nil, nil, sealed, []byte(name))
	return err == nil && json.Unmarshal(plain, v) == nil
}

// signedIn returns who sends a request of the admin page.
func (e *Entrance) signedIn(r *http.Request) (s session, ok bool) {
	if e.sealer == nil || r.Header.Get("Authorization") != "" || !e.own(r) || !e.open(r, sessionCookie, &s) {
		return session{}, false
	}
	return s, e.cfg.Now().UnixMilli() < s.Until && !e.cfg.Revoked(s.identity())
}

// own reports whether a request comes from the admin page itself: browsers send a cookie whatever page has made them (Fetch
// Metadata, W3C; Origin, RFC 6454, section 7). A browser that says neither may only read.
func (e *Entrance) own(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err == nil && (strings.EqualFold(u.Host, r.Host) || e.url != nil && strings.EqualFold(origin, e.url.Scheme+"://"+e.url.Host))
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "", "none":
		return reads
	}
	return false
}
