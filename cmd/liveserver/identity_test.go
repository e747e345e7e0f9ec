package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/internal/redistest"
)

// identityProvider signs tokens and serves its key set, each answer a second late. Safe for concurrent use.
type identityProvider struct {
	addr string

	mu  sync.Mutex
	kid string
	key *rsa.PrivateKey
}

func newIdentityProvider(t *testing.T) *identityProvider {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &identityProvider{addr: ln.Addr().String()}
	ln.Close() // it is away at first
	p.rotate(t, "a")
	return p
}

func (p *identityProvider) rotate(t *testing.T, kid string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kid, p.key = kid, key
}

func (p *identityProvider) start(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: p}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(ln)
	}()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
}

// ServeHTTP implements http.Handler.
func (p *identityProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.Context().Done():
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	encode := base64.RawURLEncoding.EncodeToString
	fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":%q,"use":"sig","n":%q,"e":%q}]}`, p.kid, encode(p.key.N.Bytes()), encode(big.NewInt(int64(p.key.E)).Bytes()))
}

func (p *identityProvider) sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = p.kid
	signed, err := token.SignedString(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// What can't be judged is told as that, on both roads, and everybody is in as soon as the keys are there.
func TestTokensOfAnIdentityProviderThatIsAwayAndRotates(t *testing.T) {
	t.Parallel()
	p := newIdentityProvider(t)
	s := startServer(t, "", "-auth-jwks-url", "http://u:hidden@"+p.addr+"/keys?key=hidden", "-auth-issuer", "https://id.test/", "-auth-audience", "live")
	claims := func() jwt.MapClaims {
		return jwt.MapClaims{"sub": "auth0|5f7c8ec7", "iss": "https://id.test/", "aud": []string{"live", "shop"}}
	}
	token := p.sign(t, claims())
	unjudged := func(token string) {
		t.Helper()
		if res := s.call(t, http.MethodGet, "/rooms", token, ""); res.status != 503 || res.body.str("reason") != "unavailable" || res.header.Get("Retry-After") == "" {
			t.Errorf("the API answers %v", res)
		}
		c := dial(t, s.url, nil)
		c.send(fmt.Sprintf(`{"op":"hello","id":"h","room":"demo","token":%q}`, token))
		if ack := c.wait("ack", func(e event) bool { return e.kind() == "ack" }); ack.num("code") != 503 || ack.str("reason") != "unavailable" || ack.num("retry_after_ms") == 0 {
			t.Errorf("the hello is answered %v", ack)
		}
		if code, reason := c.closed(); code != 4003 || reason["reconnect_in_ms"] == nil {
			t.Errorf("closed with %d %v", code, reason)
		}
	}
	unjudged(token)
	if !strings.Contains(s.logs.String(), "key set not fetched") || strings.Contains(s.logs.String(), "hidden") {
		t.Errorf("the log:\n%s", s.logs)
	}
	p.start(t)
	if who := join(t, s.url, "demo", token).welcome.in("user").str("id"); who != "auth0|5f7c8ec7" {
		t.Errorf("welcome, %s", who)
	}
	p.rotate(t, "b")
	began := time.Now()
	join(t, s.url, "demo", p.sign(t, claims()))
	t.Logf("a rotated key is taken up after %v", time.Since(began).Round(10*time.Millisecond))

	for what, claims := range map[string]jwt.MapClaims{
		"sub":               {"sub": "bell\a", "iss": "https://id.test/", "aud": "live"},
		"iss":               {"sub": "ann", "iss": "https://evil.test/", "aud": "live"},
		"aud":               {"sub": "ann", "iss": "https://id.test/", "aud": "shop"},
		"role written":      {"sub": "ann", "iss": "https://id.test/", "aud": "live", "Role": "admin"},
		"bad claims: rooms": {"sub": "ann", "iss": "https://id.test/", "aud": "live", "role": "host"},
	} {
		if res := s.call(t, http.MethodGet, "/rooms", p.sign(t, claims), ""); res.status != 401 || !strings.Contains(res.body.str("msg"), what) {
			t.Errorf("%s: %v", what, res)
		}
	}
}

// Users whom nobody here has named go every way that any user goes: room, ledger, quota over nodes, sanction, revocation.
func TestSubjectsAsProvidersWriteThem(t *testing.T) {
	t.Parallel()
	dir, nats, redis := t.TempDir(), natsServer(t), redistest.Start(t).URL()
	one := startServer(t, dir, "-nats", nats, "-redis", redis, "-node-id", "n1")
	two := startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", "n2")
	subjects := []string{
		"auth0|5f7c8ec7", "google-oauth2|1065", "https://id.test/u/7?x=y&z#1", "12345", `a "b" \c`, "user.*.>", "a/b:c=d{e}", "张三", strings.Repeat("é", 127) + "x",
	}
	for i, sub := range subjects {
		room := fmt.Sprintf("r%d", i)
		hostToken := tokenFor(t, dir, "-sub", "host", "-role", "host", "-rooms", room)
		token := tokenFor(t, dir, "-sub", sub)
		here, there := join(t, one.url, room, token), join(t, two.url, room, token)
		if id := here.welcome.in("user").str("id"); id != sub {
			t.Errorf("%q is welcomed as %q", sub, id)
		}
		for _, c := range []*client{here, there} {
			if ack := c.askUntil(rand.Text()[:12], "danmaku", fmt.Sprintf(`,"text":"from %p"`, c)); ack.num("code") != 200 {
				t.Errorf("%q speaks: %v", sub, ack)
			}
		}
		if e := there.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" }); e.in("user").str("id") != sub {
			t.Errorf("%q is shown as %v", sub, e)
		}
		first, again := here.askUntil("g", "gift", `,"gift":"rose"`), there.askUntil("g", "gift", `,"gift":"rose"`)
		if first.num("code") != 200 || first.num("seq") != again.num("seq") {
			t.Errorf("%q gives %v, again %v", sub, first, again)
		}
		if res := two.call(t, http.MethodGet, "/limits/explain?action=danmaku&room="+room+"&user="+url.QueryEscape(sub), one.adminToken, ""); res.status != 200 {
			t.Errorf("%q explained: %v", sub, res)
		}
		if res := two.call(t, http.MethodPost, "/rooms/"+room+"/moderate", hostToken, fmt.Sprintf(`{"action":"mute","user":%q,"seconds":60}`, sub)); res.status != 200 {
			t.Errorf("%q muted: %v", sub, res)
		}
		for _, c := range []*client{here, there} {
			c.wait("muted", func(e event) bool { return e.kind() == "muted" })
		}
		if res := one.call(t, http.MethodPost, "/sessions/revoke", one.adminToken, fmt.Sprintf(`{"user":%q}`, sub)); res.status != 200 {
			t.Errorf("%q revoked: %v", sub, res)
		}
		for _, c := range []*client{here, there} {
			if code, _ := c.closed(); code != 4401 {
				t.Errorf("%q revoked: closed with %d", sub, code)
			}
		}
	}
}

// A moderator's token does nothing to a host, and nothing at all once its bearer is banned, on any node and road.
func TestAModeratorsTokenBansNoHostAndLiftsNoBanOfItsOwn(t *testing.T) {
	t.Parallel()
	dir, nats, redis := t.TempDir(), natsServer(t), redistest.Start(t).URL()
	one := startServer(t, dir, "-nats", nats, "-redis", redis, "-node-id", "n1")
	two := startServer(t, "", "-nats", nats, "-redis", redis, "-node-id", "n2")
	modToken := tokenFor(t, dir, "-sub", "m", "-role", "moderator", "-rooms", "demo")
	host := join(t, one.url, "demo", one.hostToken)
	mod := join(t, two.url, "demo", modToken)
	act := func(action, user string) response {
		return two.call(t, http.MethodPost, "/rooms/demo/moderate", modToken, fmt.Sprintf(`{"action":%q,"user":%q%s}`, action, user, secondsFor(action)))
	}
	for _, action := range []string{"mute", "kick", "ban", "unmute", "unban"} {
		if res := act(action, "host"); res.status != 403 || res.body.str("reason") != "forbidden" {
			t.Errorf("%s of the host: %v", action, res)
		}
		if ack := mod.ask("moderate", fmt.Sprintf(`,"action":%q,"user":"host"%s`, action, secondsFor(action))); ack.num("code") != 403 {
			t.Errorf("%s of the host: %v", action, ack)
		}
	}
	if ack := host.ask("moderate", `,"action":"ban","user":"m","seconds":600`); ack.num("code") != 200 {
		t.Fatalf("the host bans: %v", ack)
	}
	if code, _ := mod.closed(); code != 4403 {
		t.Errorf("the banned moderator's socket: %d", code)
	}
	for _, s := range []*server{one, two} {
		for _, action := range []string{"unban", "mute", "kick"} {
			if res := s.call(t, http.MethodPost, "/rooms/demo/moderate", modToken, fmt.Sprintf(`{"action":%q,"user":"m"%s}`, action, secondsFor(action))); res.status != 403 || res.body.str("reason") != "banned" {
				t.Errorf("%s by the banned: %v", action, res)
			}
		}
		if res := s.call(t, http.MethodPut, "/rooms/demo", modToken, `{"closed":true}`); res.status != 403 {
			t.Errorf("settings by the banned: %v", res)
		}
	}
}

func secondsFor(action string) string {
	if action == "mute" || action == "ban" {
		return `,"seconds":60`
	}
	return ""
}
