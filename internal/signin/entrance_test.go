package signin

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"liveroom/internal/token"
)

// Who signs in at the provider is known by a cookie that any node of the secret accepts, until the hour is over, or until they sign
// out, which ends every copy of it.
func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other, stranger := w.node(func(*Config) {}), w.node(func(c *Config) { c.Secret = "another secret" })
	if _, _, body := w.do(http.MethodGet, w.url+"/signin"); body != "{\"oidc\":true}\n" {
		t.Fatalf("a passer-by is told %s", body)
	}
	w.provider.QueueUser(person{sub: "ada"})
	_, to, _ := w.do(http.MethodGet, w.url+"/signin/oidc")
	asked, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := asked.Query()
	if q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("state")) < 22 || len(q.Get("nonce")) < 22 || q.Get("redirect_uri") != w.url+CallbackPath {
		t.Errorf("the provider is asked %v", q)
	}
	_, back, _ := w.do(http.MethodGet, to)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, back, nil)
	res, err := w.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if at := res.Header.Get("Location"); at != "/" {
		t.Fatalf("ends at %s: %s", at, &w.logs)
	}
	for _, c := range res.Cookies() {
		if c.MaxAge > 0 && (!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 3600 || c.Path != "/" || strings.Contains(c.Value, "ada")) {
			t.Errorf("the cookie is %v", c)
		}
	}
	const ada = "oidc:ada Ada admin false"
	if got := w.who(w.url); got != ada {
		t.Fatalf("%q", got)
	}
	if got := w.who(other); got != ada {
		t.Errorf("another node: %q", got)
	}
	if got := w.who(stranger); got != "" {
		t.Errorf("a node of another secret: %q", got)
	}
	var said struct {
		User  string
		Until int64
	}
	_, _, body := w.do(http.MethodGet, w.url+"/signin")
	if err := json.Unmarshal([]byte(body), &said); err != nil || said.User != "oidc:ada" || time.Until(time.UnixMilli(said.Until)) > time.Hour {
		t.Errorf("told %s", body)
	}
	w.clock.Store(int64(time.Hour + time.Second))
	if got := w.who(w.url); got != "" {
		t.Errorf("after an hour: %q", got)
	}
	w.clock.Store(0)

	kept := w.cookies()
	if status, _, _ := w.do(http.MethodPost, w.url+"/signout", "Origin", "https://evil.test"); status != http.StatusForbidden || w.who(w.url) != ada {
		t.Error("another site signs operators out")
	}
	if status, _, _ := w.do(http.MethodPost, w.url+"/signout", "Origin", w.url); status != http.StatusNoContent || len(w.cookies()) != 0 {
		t.Errorf("signed out: %d, %v", status, w.cookies())
	}
	u, _ := url.Parse(w.url)
	w.browser.Jar.SetCookies(u, kept)
	if got := w.who(other); got != "" {
		t.Errorf("a copy of the cookie, elsewhere: %q", got)
	}

	if w.signIn(person{sub: "ada"}); w.who(w.url) != ada {
		t.Fatalf("again: %s", &w.logs)
	}
	w.revoked.Add(token.UserName("oidc:ada"), time.Now())
	if got := w.who(w.url); got != "" {
		t.Errorf("whose user was revoked: %q", got)
	}
}

// What somebody is follows from the claim, wherever it lies and whatever form it has; who is nothing is not let in.
func TestRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	flat, nested := w.url, w.node(func(c *Config) { c.Claim = "realm_access.roles" })
	for _, tc := range []struct {
		node  string
		claim string
		value any
		want  string
	}{
		{flat, "roles", []string{"x", "lr-admin", "lr-look"}, "admin false"},
		{flat, "roles", "lr-admin", "admin false"},
		{flat, "roles", []any{7, "lr-mod"}, "moderator false"},
		{flat, "roles", []string{"lr-look"}, "viewer true"},
		{flat, "roles", []string{"LR-ADMIN", "lr-admin2", "lr-admin lr-mod"}, ""},
		{flat, "roles", map[string]any{"lr-admin": true}, ""},
		{flat, "roles", nil, ""},
		{flat, "role", "lr-admin", ""},
		{nested, "realm_access", map[string]any{"roles": []string{"lr-mod"}}, "moderator false"},
		{nested, "realm_access.roles", []string{"lr-mod"}, "moderator false"},
		{nested, "realm_access", []string{"lr-mod"}, ""},
	} {
		w.url = tc.node
		at := w.signIn(person{sub: "ada", claims: func(c jwt.MapClaims) {
			delete(c, "roles")
			if c[tc.claim] = tc.value; tc.value == nil {
				delete(c, tc.claim)
			}
		}})
		got := strings.TrimPrefix(w.who(tc.node), "oidc:ada Ada ")
		if tc.want == "" && at != "/#signin=norole" || tc.want != "" && (at != "/" || got != tc.want) {
			t.Errorf("%s: %v: %q at %s", tc.claim, tc.value, got, at)
		}
		w.do(http.MethodPost, tc.node+"/signout", "Origin", tc.node)
	}
}

// Nothing that is wrong with the answer lets anybody in, and nothing in it sends the browser elsewhere.
func TestWhatIsWrongLetsNobodyIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	claim := func(name string, value any) func(jwt.MapClaims) {
		return func(c jwt.MapClaims) { c[name] = value }
	}
	with := func(name, value string) func(string) string {
		return func(back string) string {
			u, _ := url.Parse(back)
			q := u.Query()
			q.Set(name, value)
			u.RawQuery = q.Encode()
			return u.String()
		}
	}
	for name, tc := range map[string]struct {
		claims func(jwt.MapClaims)
		back   func(string) string
		late   time.Duration // how long the operator is at the provider
		want   string
	}{
		"another state":         {back: with("state", "x"), want: "stale"},
		"no state":              {back: with("state", ""), want: "stale"},
		"too late":              {late: flowTime, want: "stale"},
		"another code":          {back: with("code", "x"), want: "refused"},
		"no code":               {back: with("code", ""), want: "refused"},
		"refused there":         {back: with("error", "access_denied"), want: "refused"},
		"another provider":      {back: with("iss", "https://evil.test"), want: "refused"},
		"another nonce":         {claims: claim("nonce", "x"), want: "refused"},
		"no nonce":              {claims: func(c jwt.MapClaims) { delete(c, "nonce") }, want: "refused"},
		"another client's":      {claims: claim("aud", "another"), want: "refused"},
		"given to another":      {claims: claim("azp", "another"), want: "refused"},
		"another issuer's":      {claims: claim("iss", "https://evil.test"), want: "refused"},
		"expired":               {claims: claim("exp", time.Now().Add(-time.Minute).Unix()), want: "refused"},
		"not yet":               {claims: claim("nbf", time.Now().Add(time.Hour).Unix()), want: "refused"},
		"without an end":        {claims: func(c jwt.MapClaims) { delete(c, "exp") }, want: "refused"},
		"a name too long":       {claims: claim("sub", strings.Repeat("x", 251)), want: "refused"},
		"a name for a terminal": {claims: claim("sub", "a\x1b[2J"), want: "refused"},
		"without a name":        {claims: claim("sub", ""), want: "refused"},
	} {
		back := w.toProvider(person{sub: "ada", claims: tc.claims})
		if tc.back != nil {
			back = tc.back(back)
		}
		w.clock.Add(int64(tc.late))
		_, at, _ := w.do(http.MethodGet, with("next", "//evil.test")(back))
		w.clock.Add(-int64(tc.late))
		if at != "/#signin="+tc.want || w.who(w.url) != "" {
			t.Errorf("%s: at %s as %q", name, at, w.who(w.url))
		}
	}

	back := w.toProvider(person{sub: "ada"})
	kept := w.cookies()
	if _, at, _ := w.do(http.MethodGet, back); at != "/" {
		t.Fatalf("an honest one: at %s: %s", at, &w.logs)
	}
	w.do(http.MethodPost, w.url+"/signout", "Origin", w.url)
	if _, at, _ := w.do(http.MethodGet, back); at != "/#signin=stale" {
		t.Errorf("the answer once more: at %s", at)
	}
	u, _ := url.Parse(w.url)
	w.browser.Jar.SetCookies(u, kept)
	if _, at, _ := w.do(http.MethodGet, back); at != "/#signin=refused" {
		t.Errorf("the code once more, with the cookie of before: at %s", at)
	}
	w.toProvider(person{sub: "eve"})
	theirs := w.toProvider(person{sub: "eve"})
	w.browser.Jar.SetCookies(u, kept)
	if _, at, _ := w.do(http.MethodGet, theirs); at != "/#signin=stale" {
		t.Errorf("another's answer: at %s", at)
	}
}

// The flow's cookie passes for no session's, and one that was changed is none.
func TestCookiesOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.toProvider(person{sub: "ada"})
	u, _ := url.Parse(w.url)
	for _, value := range []string{w.cookies()[0].Value, "", "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		w.browser.Jar.SetCookies(u, []*http.Cookie{{Name: sessionCookie, Value: value, Path: "/"}})
		if got := w.who(w.url); got != "" {
			t.Errorf("%.20s: %q", value, got)
		}
	}
}

// A new key of the provider is taken up; one that it does not publish signs for nobody.
func TestKeysOfTheProvider(t *testing.T) {
	t.Parallel()
	var published atomic.Pointer[mockoidc.Keypair] // nil: that which signs
	w := newWorld(t, func(m *mockoidc.MockOIDC) {
		_ = m.AddMiddleware(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if keys := published.Load(); keys != nil && r.URL.Path == mockoidc.JWKSEndpoint {
					b, _ := keys.JWKS()
					_, _ = rw.Write(b)
					return
				}
				next.ServeHTTP(rw, r)
			})
		})
	})
	signsWith := func(kid string) *mockoidc.Keypair {
		k, err := mockoidc.RandomKeypair(2048)
		if err != nil {
			t.Fatal(err)
		}
		k.Kid = kid
		w.provider.Keypair = k
		return k
	}
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Fatalf("at %s: %s", at, &w.logs)
	}
	published.Store(signsWith("newer"))
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Errorf("after the key was changed: at %s: %s", at, &w.logs)
	}
	for _, kid := range []string{"newer", "unheard of", ""} {
		signsWith(kid)
		if at := w.signIn(person{sub: "ada"}); at != "/#signin=refused" {
			t.Errorf("a key that is not published, called %q: at %s", kid, at)
		}
	}
}

// The provider's clock may be off by the leeway.
func TestTheProvidersClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.provider.FastForward(-w.provider.AccessTTL - time.Second) // with a leeway of two
	w.clock.Store(int64(-500 * time.Millisecond))
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Errorf("half a second late: at %s: %s", at, &w.logs)
	}
	w.provider.FastForward(-time.Minute)
	if at := w.signIn(person{sub: "ada"}); at != "/#signin=refused" {
		t.Errorf("a minute late: at %s", at)
	}
}

// A provider that is away is said to be, and asked again by the next one.
func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ln := listen(t)
	addr := ln.Addr().String()
	ln.Close()
	w.url = w.node(func(c *Config) { c.Issuer = "http://" + addr + mockoidc.IssuerBase })
	if _, at, _ := w.do(http.MethodGet, w.url+"/signin/oidc"); at != "/#signin=away" {
		t.Fatalf("at %s", at)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	was := w.provider
	w.provider = startProvider(t, ln, func(m *mockoidc.MockOIDC) { m.ClientID, m.ClientSecret = was.ClientID, was.ClientSecret })
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Fatalf("once it is there: at %s: %s", at, &w.logs)
	}
	back := w.toProvider(person{sub: "ada"})
	w.provider.QueueError(&mockoidc.ServerError{Code: http.StatusBadGateway, Error: "down"})
	if _, at, _ := w.do(http.MethodGet, back); at != "/#signin=away" {
		t.Errorf("an answer of 502: at %s", at)
	}
}

// A cookie counts for the page alone, whatever page made the browser send it; and a token counts more.
func TestTheCookieIsThePagesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Fatalf("at %s: %s", at, &w.logs)
	}
	for _, tc := range []struct {
		method string
		header []string
		counts bool
	}{
		{"GET", nil, true},
		{"GET", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"GET", []string{"Sec-Fetch-Site", "none"}, true},
		{"GET", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"GET", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"GET", []string{"Authorization", "Bearer x"}, false},
		{"PUT", []string{"Sec-Fetch-Site", "same-origin"}, true},
		{"PUT", []string{"Sec-Fetch-Site", "same-origin", "Origin", w.url}, true},
		{"PUT", []string{"Origin", w.url}, true},
		{"PUT", nil, false},
		{"POST", []string{"Sec-Fetch-Site", "none"}, false},
		{"POST", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"POST", []string{"Origin", "null"}, false},
		{"POST", []string{"Origin", "https://evil.test"}, false},
		{"POST", []string{"Origin", w.url + "0"}, false},
		{"DELETE", []string{"Sec-Fetch-Site", "cross-site"}, false},
	} {
		if _, _, body := w.do(tc.method, w.url+"/who", tc.header...); (body != "") != tc.counts {
			t.Errorf("%s %q: %q", tc.method, tc.header, body)
		}
	}
}

// Behind a proxy that ends TLS the address is what is configured, and so is the cookie's.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.url = w.node(func(c *Config) { c.URL = "https://ops.test" })
	w.provider.QueueUser(person{sub: "ada"})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/signin/oidc", nil)
	res, err := w.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	to, _ := url.Parse(res.Header.Get("Location"))
	if got := to.Query().Get("redirect_uri"); got != "https://ops.test/signin/callback" {
		t.Errorf("the provider is to send to %s", got)
	}
	if c := res.Cookies(); len(c) != 1 || c[0].Name != "__Host-"+flowCookie || !c[0].Secure || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", c)
	}
}

// Without a provider there is a token alone, and no cookie counts.
func TestWithoutAProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if at := w.signIn(person{sub: "ada"}); at != "/" {
		t.Fatalf("at %s: %s", at, &w.logs)
	}
	w.url = w.node(func(c *Config) { c.Issuer = "" })
	if status, _, _ := w.do(http.MethodGet, w.url+"/signin/oidc"); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	if _, _, body := w.do(http.MethodGet, w.url+"/signin"); body != "{\"oidc\":false}\n" || w.who(w.url) != "" {
		t.Errorf("told %s, %q", body, w.who(w.url))
	}
}
