package signin

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"liveroom/internal/token"
)

// CallbackPath is where the provider sends operators back to.
const CallbackPath = "/signin/callback"

// Config is what an entrance is made of.
type Config struct {
	Issuer                 string // "": there is no provider, and all other settings count nothing
	ClientID, ClientSecret string
	URL                    string // how browsers reach the admin page; "": by the Host of each request
	Scopes                 []string
	Claim                  string        // whose values are compared with:
	Admins                 []string      // who may everything
	Moderators             []string      // who moderates in all rooms
	Readers                []string      // who sees what admins see and changes nothing
	Secret                 string        // of all nodes; must not be empty
	Leeway                 time.Duration // of the provider's clock

	Revoked func(token.Identity) bool
	Revoke  func(ctx context.Context, name string, at time.Time) error
	As      func(r *http.Request, who token.Identity, reads bool) *http.Request // lets the API know who calls
	Now     func() time.Time                                                    // nil: time.Now
	Log     *slog.Logger
}

// Entrance is where operators sign in and out.
type Entrance struct {
	// fixed after construction
	cfg    Config
	url    *url.URL    // nil: by the Host of each request
	sealer cipher.AEAD // nil: there is no provider
	client *http.Client
	turn   chan struct{} // has one place, for who asks the provider

	known *provider // owned by who has the turn; nil: it has not answered yet
}

// New returns the entrance that c describes.
func New(c Config) (*Entrance, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	e := &Entrance{cfg: c, client: &http.Client{Timeout: askTimeout}, turn: make(chan struct{}, 1)}
	if c.Issuer == "" {
		return e, nil
	}
	var err error
	if c.URL != "" {
		if e.url, err = url.Parse(c.URL); err != nil {
			return nil, fmt.Errorf("sign-in: %w", err)
		}
	}
	if e.sealer, err = newSealer(c.Secret); err != nil {
		return nil, fmt.Errorf("sign-in: %w", err)
	}
	return e, nil
}

// Register adds the calls to the operators' mux.
func (e *Entrance) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /signin", e.tell)
	if e.sealer == nil {
		return
	}
	mux.HandleFunc("GET /signin/oidc", e.begin)
	mux.HandleFunc("GET "+CallbackPath, e.callback)
	mux.HandleFunc("POST /signout", e.signOut)
}

// Signed lets the API know who has signed in. A token beside the cookie counts alone.
func (e *Entrance) Signed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := e.signedIn(r); ok {
			w.Header().Set("Cache-Control", "no-store")
			r = e.cfg.As(r, s.identity(), s.Reader)
		}
		next.ServeHTTP(w, r)
	})
}

// tell answers which ways to sign in there are besides a token, and who has.
func (e *Entrance) tell(w http.ResponseWriter, r *http.Request) {
	s, _ := e.signedIn(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(struct { // fails only when nobody listens any more
		OIDC   bool   `json:"oidc"`
		User   string `json:"user,omitempty"`
		Name   string `json:"name,omitempty"`
		Role   string `json:"role,omitempty"`
		Reader bool   `json:"reader,omitempty"`
		Until  int64  `json:"until,omitempty"`
	}{e.sealer != nil, s.User, s.Name, string(s.Role), s.Reader, s.Until})
}

// begin sends the operator to the provider.
func (e *Entrance) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := e.asking(r)
	defer cancel()
	p, err := e.discover(ctx)
	if err != nil {
		e.back(w, r, "away", err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Until: e.cfg.Now().Add(flowTime).UnixMilli()}
	if err := e.put(w, r, flowCookie, f, flowTime, http.SameSiteLaxMode); err != nil { // the way back begins at another site
		e.back(w, r, "refused", err)
		return
	}
	conf := p.oauth
	conf.RedirectURL = e.callbackURL(r)
	http.Redirect(w, r, conf.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
}

// callback is where the provider sends the operator back to.
func (e *Entrance) callback(w http.ResponseWriter, r *http.Request) {
	var f flow
	known := e.open(r, flowCookie, &f)
	_ = e.put(w, r, flowCookie, nil, 0, http.SameSiteLaxMode) // nothing is sealed
	q := r.URL.Query()
	switch {
	case !known || e.cfg.Now().UnixMilli() >= f.Until || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.State)) != 1:
		e.back(w, r, "stale", errors.New("this browser has not begun it, or more than ten minutes ago"))
		return
	case q.Get("error") != "": // RFC 6749, section 4.1.2.1
		e.back(w, r, "refused", fmt.Errorf("the provider says %.60q", q.Get("error")))
		return
	case q.Get("iss") != "" && q.Get("iss") != e.cfg.Issuer: // RFC 9207
		e.back(w, r, "refused", errors.New("the answer is another provider's"))
		return
	}
	ctx, cancel := e.asking(r)
	defer cancel()
	s, err := e.judge(ctx, q.Get("code"), e.callbackURL(r), f)
	switch {
	case errors.Is(err, errAway):
		e.back(w, r, "away", err)
		return
	case errors.Is(err, errNoRole):
		e.back(w, r, "norole", fmt.Errorf("%w: %s of %s", err, e.cfg.Claim, s.User))
		return
	case err != nil:
		e.back(w, r, "refused", err)
		return
	}
	now := e.cfg.Now()
	s.From, s.Until, s.ID = now.UnixMilli(), now.Add(SessionTime).UnixMilli(), "signin:"+rand.Text()
	if err := e.put(w, r, sessionCookie, s, SessionTime, http.SameSiteStrictMode); err != nil {
		e.back(w, r, "refused", err)
		return
	}
	e.cfg.Log.Info("an operator has signed in", "user", s.User, "role", s.Role, "reader", s.Reader)
	e.back(w, r, "", nil)
}

// signOut takes the cookie away, and what it says on all nodes.
func (e *Entrance) signOut(w http.ResponseWriter, r *http.Request) {
	if !e.own(r) {
		http.Error(w, "Only the admin page itself may sign out.", http.StatusForbidden)
		return
	}
	if s, ok := e.signedIn(r); ok {
		if err := e.cfg.Revoke(r.Context(), token.TokenName(s.ID), e.cfg.Now()); err != nil {
			e.cfg.Log.Warn("who signed out could not be revoked on all nodes, a copy of the cookie is good until it ends", "user", s.User, "until", time.UnixMilli(s.Until), "err", err)
		}
		e.cfg.Log.Info("an operator has signed out", "user", s.User)
	}
	_ = e.put(w, r, sessionCookie, nil, 0, http.SameSiteStrictMode) // nothing is sealed
	w.WriteHeader(http.StatusNoContent)
}

// back sends the operator to the page, which says what has become of it. There is no other place to be sent to.
func (e *Entrance) back(w http.ResponseWriter, r *http.Request, said string, why error) {
	to := "/"
	if said != "" {
		to += "#signin=" + said
		e.cfg.Log.Warn("an operator could not sign in", "reason", said, "err", why)
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callbackURL is what the provider must know: it sends nobody elsewhere. The Host of a request is one of the operators'
// listener, see [site.Operators].
func (e *Entrance) callbackURL(r *http.Request) string {
	base := url.URL{Scheme: "http", Host: r.Host, Path: CallbackPath}
	if e.secure(r) {
		base.Scheme = "https"
	}
	if e.url != nil {
		base.Scheme, base.Host = e.url.Scheme, e.url.Host
	}
	return base.String()
}

// asking is the time that the provider has.
func (e *Entrance) asking(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(r.Context(), e.client), askTimeout)
}
