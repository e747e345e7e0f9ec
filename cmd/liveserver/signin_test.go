package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
)

// operator is somebody whom the provider knows.
type operator struct{ sub, role string }

func (o operator) ID() string                        { return o.sub }
func (o operator) Userinfo([]string) ([]byte, error) { return []byte("{}"), nil }
func (o operator) Claims(_ []string, base *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	return struct {
		*mockoidc.IDTokenClaims
		Name string              `json:"name"`
		In   map[string][]string `json:"realm_access"`
	}{base, "Operator " + o.sub, map[string][]string{"roles": {o.role}}}, nil
}

// signInFlags are for a server whose operators sign in at m.
func signInFlags(m *mockoidc.MockOIDC, addr string) []string {
	return []string{"-admin-oidc-issuer", "http://" + addr + mockoidc.IssuerBase, "-admin-oidc-client-id", m.ClientID, "-admin-oidc-client-secret", m.ClientSecret,
		"-admin-oidc-claim", "realm_access.roles", "-admin-oidc-admins", "boss", "-admin-oidc-moderators", "mod", "-admin-oidc-readers", "look"}
}

// newProvider is an identity provider that is away until it is started, and the address that it will have.
func newProvider(t *testing.T) (m *mockoidc.MockOIDC, addr string, start func()) {
	t.Helper()
	m, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = ln.Addr().String()
	ln.Close()
	return m, addr, func() {
		t.Helper()
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			err = m.Start(ln, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Shutdown() })
	}
}

// TestOperatorsSignIn: who signs in at the provider may what its role may, over the API as well, and what each has changed says who
// it was. The secret of the provider is shown nowhere.
func TestOperatorsSignIn(t *testing.T) {
	t.Parallel()
	m, addr, start := newProvider(t)
	start()
	s := startServer(t, "", signInFlags(m, addr)...)
	as := func(sub, role string) *http.Client {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Jar: jar}
		m.QueueUser(operator{sub, role})
		res, err := c.Get(s.admin + "/signin/oidc")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if at := res.Request.URL.String(); at != s.admin+"/" {
			t.Fatalf("%s ends at %s:\n%s", sub, at, s.logs)
		}
		return c
	}
	ask := func(c *http.Client, method, base, path, body string, header ...string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", base)
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	boss, mod, look := as("ada", "boss"), as("bob", "mod"), as("eve", "look")
	join(t, s.url, "demo", "")
	for _, tc := range []struct {
		method, path, body string
		boss, mod, look    int
	}{
		{"GET", "/api/v1/limits/rules", "", 200, 403, 200},
		{"GET", "/api/v1/rooms/demo/audit", "", 200, 200, 200},
		{"POST", "/api/v1/rooms/demo/moderate", `{"action":"announce","text":"hello"}`, 200, 200, 403},
		{"POST", "/api/v1/rooms/demo/danmaku", `{"id":"1","user":{"id":"x"},"text":"x"}`, 200, 403, 403},
		{"PUT", "/api/v1/consumers/mine", `{"from":"now"}`, 201, 403, 403},
		{"POST", "/debug/free", "", 200, 403, 403},
	} {
		for _, who := range []struct {
			name string
			c    *http.Client
			want int
		}{{"the admin", boss, tc.boss}, {"the moderator", mod, tc.mod}, {"the reader", look, tc.look}} {
			got := ask(who.c, tc.method, s.admin, tc.path, tc.body)
			if got != who.want && !(who.want/100 == 2 && got/100 == 2) {
				t.Errorf("%s %s by %s: %d, want %d", tc.method, tc.path, who.name, got, who.want)
			}
		}
	}
	if code := ask(boss, "POST", s.admin, "/debug/free", "", "Origin", "https://evil.test"); code != http.StatusForbidden {
		t.Errorf("another site's page: %d", code)
	}
	if code := ask(boss, "POST", s.admin, "/debug/free", "", "Origin", "", "Sec-Fetch-Site", "same-site"); code != http.StatusForbidden {
		t.Errorf("a page beside it: %d", code)
	}
	if code := ask(boss, "GET", s.url, "/api/v1/limits/rules", ""); code != http.StatusUnauthorized {
		t.Errorf("the viewers' listener takes the cookie: %d", code)
	}
	if code := ask(boss, "GET", s.admin, "/api/v1/limits/rules", "", "Authorization", "Bearer "+s.hostToken); code != http.StatusForbidden {
		t.Errorf("a host's token beside an admin's cookie: %d", code)
	}
	if acts := fmt.Sprint(s.call(t, http.MethodGet, "/rooms/demo/audit", s.adminToken, "").body); !strings.Contains(acts, "by:oidc:ada") || !strings.Contains(acts, "by:oidc:bob") {
		t.Errorf("the audit: %s", acts)
	}
	log := s.logs.String()
	for _, want := range []string{`"route":"POST /debug/free","by":"oidc:ada"`, `"path":"/api/v1/consumers/mine","by":"oidc:ada"`, `"msg":"an operator has signed in"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, m.ClientSecret) {
		t.Error("the log has the secret")
	}
	if code := ask(look, "POST", s.admin, "/signout", ""); code != http.StatusNoContent || ask(look, "GET", s.admin, "/api/v1/limits/rules", "") != http.StatusUnauthorized {
		t.Errorf("signed out: %d", code)
	}
}

// follow clicks what leads to another page, or to the same one anew, and waits until it is there: while one goes nothing can be asked.
func (p *tab) follow(selector string) {
	p.t.Helper()
	p.until("there: "+selector, fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	ctx, cancel := context.WithTimeout(p.ctx, browserPatience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).click()`, selector))); err != nil {
		p.t.Fatalf("follow %s: %v", selector, err)
	}
}

// TestSigningInOnThePage is an operator in a real browser: the provider is away, then it is there, a change says who made it, and
// after signing out the door is back.
func TestSigningInOnThePage(t *testing.T) {
	t.Parallel()
	m, addr, start := newProvider(t)
	s := startServer(t, "", signInFlags(m, addr)...)
	p := startBrowser(t).open(s.admin + "/")
	p.shows("#door", "Open this page with the admin address")
	p.follow("#door-oidc:not([hidden])")
	p.shows("#door-said", "does not answer")
	p.sound()

	start()
	m.QueueUser(operator{"nobody", "cleaner"})
	m.QueueUser(operator{"ada", "boss"})
	p.follow("#door-oidc:not([hidden])")
	p.shows("#door-said", "no role that opens this page")
	p.follow("#door-oidc:not([hidden])")
	p.shows("#who", "Operator ada")
	p.click(`#tabs a[href="#limits"]`)
	p.shows("#change-title", "Version 1 is in force")
	p.mark("danmaku-user-room", "seat")
	p.fill("#seat .burst input", "7")
	p.fill("#note", "by hand")
	p.click("#publish")
	p.until("published", `document.getElementById("change-title").textContent.includes("Version 2") || document.getElementById("confirm").open`)
	p.shows("#change-by", "oidc:ada")
	if all := fmt.Sprint(s.call(t, http.MethodGet, "/limits/versions", s.adminToken, "").body); !strings.Contains(all, "author:oidc:ada") {
		t.Errorf("the versions: %s", all)
	}
	p.sound()
	if res := s.call(t, http.MethodPost, "/sessions/revoke", s.adminToken, `{"user":"oidc:ada"}`); res.status != http.StatusOK {
		t.Fatalf("%+v", res)
	}
	p.shows("#signed-out", "Your sign-in has ended")
	m.QueueUser(operator{"ada", "boss"})
	p.click("#signed-out a") // opens a tab of its own
	p.until("signed in again", `document.getElementById("signed-out").hidden`)
	p.follow("#sign-out")
	p.shows("#door", "Open this page with the admin address")
	if got := eval[string](p, `document.cookie`); got != "" {
		t.Errorf("the page can read %s", got)
	}
}
