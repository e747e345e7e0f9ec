package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"

	"liveroom/internal/certtest"
)

// secureClient trusts pool and shows a certificate, unless it has none.
func secureClient(t *testing.T, pool *x509.CertPool, shown ...tls.Certificate) *http.Client {
	t.Helper()
	road := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: shown}, ForceAttemptHTTP2: true}
	t.Cleanup(road.CloseIdleConnections)
	return &http.Client{Transport: road}
}

// TestOperatorsCertificates: with admin_tls.client_ca who shows a certificate of it comes in, and nobody else but health checks, of
// which liveserver health is one.
func TestOperatorsCertificates(t *testing.T) {
	t.Parallel()
	cert, key, pool := certtest.New(t)
	theirs, theirKey, _ := certtest.New(t) // signs itself
	strange, strangeKey, _ := certtest.New(t)
	pair := func(cert, key string) tls.Certificate {
		p, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s := startServer(t, "", "-admin-tls-cert", cert, "-admin-tls-key", key, "-admin-tls-client-ca", theirs)
	if !strings.HasPrefix(s.admin, "https://") {
		t.Fatalf("operators are told to go to %s", s.admin)
	}
	get := func(c *http.Client, path string) int {
		res, err := c.Get(s.admin + path)
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	nobody, operator, stranger := secureClient(t, pool), secureClient(t, pool, pair(theirs, theirKey)), secureClient(t, pool, pair(strange, strangeKey))
	for _, path := range []string{"/", "/metrics", "/api/v1/rooms", "/debug/pprof/"} {
		if code := get(operator, path); code != http.StatusOK {
			t.Errorf("an operator at %s: %d", path, code)
		}
		if code := get(nobody, path); code != http.StatusForbidden {
			t.Errorf("nobody at %s: %d", path, code)
		}
		if code := get(stranger, path); code == http.StatusOK {
			t.Errorf("a stranger at %s: %d", path, code)
		}
	}
	if code := get(nobody, "/readyz"); code != http.StatusOK {
		t.Errorf("a probe: %d", code)
	}
	out := &lines{}
	if err := run(t.Context(), []string{"health", "-admin-addr", strings.TrimPrefix(s.admin, "https://"), "-admin-tls-cert", cert, "-admin-tls-key", key}, out, out, nil); err != nil {
		t.Errorf("health: %v %s", err, out)
	}
}

// TestHTTP2IsForPagesAlone: pages come by it, and a socket does not; browsers, which are not told of RFC 8441 by this server, open
// HTTP/1.1 for one.
func TestHTTP2IsForPagesAlone(t *testing.T) {
	t.Parallel()
	cert, key, pool := certtest.New(t)
	s := startServer(t, "", "-tls-cert", cert, "-tls-key", key)
	c := secureClient(t, pool)
	for path, want := range map[string]int{"/room/demo": http.StatusOK, "/ws": http.StatusUpgradeRequired} {
		res, err := c.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != want {
			t.Errorf("%s by %s: %d, want %d", path, res.Proto, res.StatusCode, want)
		}
	}
}
