package site

import (
	"net/http"
	"slices"
	"strings"
)

// secure adds the headers that keep a page from running or loading anything but what is served here.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(r.Host))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "SAMEORIGIN") // for browsers that know no frame-ancestors
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=()")
		next.ServeHTTP(w, r)
	})
}

// shared lets pages of the configured origins load what is served (Fetch standard, sections 3.2 and 3.7).
func (s *Site) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		h.Add("Vary", "Origin")
		if slices.ContainsFunc(s.origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		}
		next.ServeHTTP(w, r)
	})
}

// policy names the page's own host for sockets, since not every browser counts ws: and wss: of the same host as 'self'
// (CSP Level 3, section 6.7.2.8 does). Trusted Types make a text that reaches an HTML sink an error.
func policy(host string) string {
	connect := "connect-src 'self'"
	if plainHost(host) {
		connect += " ws://" + host + " wss://" + host
	}
	return strings.Join([]string{
		"default-src 'self'", connect, "object-src 'none'", "base-uri 'none'", "form-action 'self'",
		"frame-ancestors 'self'", "require-trusted-types-for 'script'",
	}, "; ")
}

// plainHost keeps a Host header from adding words to the policy.
func plainHost(host string) bool {
	for i := 0; i < len(host); i++ {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".-:[]", c) >= 0) {
			return false
		}
	}
	return host != ""
}
