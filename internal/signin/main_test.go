package signin

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
	"go.uber.org/goleak"

	"liveroom/internal/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// person is somebody whom the provider knows, with what it says of them.
type person struct {
	sub    string
	claims func(jwt.MapClaims) // changes what an honest provider would say; nil: an admin's
}

func (p person) ID() string                        { return p.sub }
func (p person) Userinfo([]string) ([]byte, error) { return []byte("{}"), nil }
func (p person) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	c := jwt.MapClaims{
		"iss": base.Issuer, "sub": base.Subject, "aud": base.Audience, "exp": base.ExpiresAt, "iat": base.IssuedAt, "nonce": base.Nonce,
		"name": "Ada", "roles": []string{"staff", "lr-admin"},
	}
	if p.claims != nil {
		p.claims(c)
	}
	return c, nil
}

// world is a provider, a listener of operators, and a browser.
type world struct {
	*testing.T
	provider *mockoidc.MockOIDC
	clock    atomic.Int64 // ns that the listener's clock is ahead
	revoked  token.Revocations
	logs     strings.Builder
	url      string
	browser  *http.Client // follows nobody
}

// startProvider starts one on ln; change may change it before.
func startProvider(t *testing.T, ln net.Listener, change func(*mockoidc.MockOIDC)) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(m)
	}
	if err := m.Start(ln, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func newWorld(t *testing.T, change func(*mockoidc.MockOIDC)) *world {
	t.Helper()
	w := &world{T: t, provider: startProvider(t, listen(t), change)}
	w.url = w.node(func(*Config) {})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	road := &http.Transport{}
	t.Cleanup(road.CloseIdleConnections)
	w.browser = &http.Client{Transport: road, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return w
}

// node starts a listener of operators, which says at /who who calls.
func (w *world) node(change func(*Config)) (address string) {
	w.Helper()
	p := w.provider.Config()
	c := Config{
		Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Scopes: []string{"openid", "profile"}, Claim: "roles",
		Admins: []string{"lr-admin"}, Moderators: []string{"lr-mod"}, Readers: []string{"lr-look"}, Secret: "a secret of all nodes", Leeway: 2 * time.Second,
		Revoked: w.revoked.Revoked,
		Revoke: func(_ context.Context, name string, at time.Time) error {
			w.revoked.Add(name, at)
			return nil
		},
		As: func(r *http.Request, who token.Identity, reads bool) *http.Request {
			r.Header.Set("X-Who", fmt.Sprintf("%s %s %s %v", who.User, who.Name, who.Role, reads))
			return r
		},
		Now: func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) },
		Log: slog.New(slog.NewTextHandler(&w.logs, nil)),
	}
	change(&c)
	e, err := New(c)
	if err != nil {
		w.Fatal(err)
	}
	mux := http.NewServeMux()
	e.Register(mux)
	mux.HandleFunc("/who", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Header.Get("X-Who")) })
	srv := httptest.NewServer(e.Signed(mux))
	w.Cleanup(srv.Close)
	return srv.URL
}

// do sends a request with the browser's cookies.
func (w *world) do(method, address string, header ...string) (status int, location, body string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, address, nil)
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := w.browser.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(b)
}

// toProvider begins to sign in as p and returns where the provider sends the browser back to.
func (w *world) toProvider(p person) (back string) {
	w.Helper()
	w.provider.QueueUser(p)
	status, to, _ := w.do(http.MethodGet, w.url+"/signin/oidc")
	if status != http.StatusSeeOther || !strings.HasPrefix(to, w.provider.AuthorizationEndpoint()) {
		w.Fatalf("sent with %d to %s", status, to)
	}
	_, back, _ = w.do(http.MethodGet, to)
	return back
}

// signIn signs in as p and returns where the browser ends.
func (w *world) signIn(p person) (at string) {
	w.Helper()
	_, at, _ = w.do(http.MethodGet, w.toProvider(p))
	return at
}

func (w *world) who(node string, header ...string) string {
	w.Helper()
	_, _, body := w.do(http.MethodGet, node+"/who", header...)
	return body
}

// cookies are those that the browser has for the listener.
func (w *world) cookies() []*http.Cookie {
	u, err := url.Parse(w.url)
	if err != nil {
		w.Fatal(err)
	}
	return w.browser.Jar.Cookies(u)
}
