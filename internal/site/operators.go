package site

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Operators guards a listener that is the operators' alone from what other web pages in an operator's browser make that
// browser do: a page whose name was pointed here (DNS rebinding), and a page that sends requests across sites.
type Operators struct {
	Addr    string   // the listener's configured host:port
	Hosts   []string // names by which operators reach it, besides localhost, IP addresses and the name in Addr
	Origins []string // pages of which may call, besides its own
	// Scraped are paths that machines ask for, by whatever name they know the node, where it listens on more than loopback.
	Scraped []string
	// Returns is where another site may send somebody to, besides the page itself: back from signing in. "": nowhere.
	Returns string
}

// Guard wraps what the listener serves.
func (o Operators) Guard(next http.Handler) http.Handler {
	own, _, _ := net.SplitHostPort(o.Addr)
	hosts := append([]string{"localhost", own}, o.Hosts...)
	local := strings.EqualFold(own, "localhost")
	if addr, err := netip.ParseAddr(own); err == nil {
		local = addr.IsLoopback()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !local && slices.Contains(o.Scraped, r.URL.Path):
		case !named(r.Host, hosts):
			http.Error(w, fmt.Sprintf("This is the operators' listener, and %.100q is not a name of it: use its address, or add the name to admin_hosts.", r.Host), http.StatusForbidden)
			return
		case !o.sameSite(r):
			http.Error(w, "A page of another site may not ask this: open the admin page itself, or add the site to origins.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// named reports whether a Host header is an address or one of the names.
func named(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host != "" && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, strings.TrimSuffix(host, ".")) })
}

// sameSite reports whether a request comes from a page served here, from one of the origins, from somebody who opens a
// page, or from no browser (Fetch Metadata, W3C; Origin, RFC 6454, section 7).
func (o Operators) sameSite(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		_, host, _ := strings.Cut(origin, "://")
		return strings.EqualFold(host, r.Host) || slices.ContainsFunc(o.Origins, func(a string) bool { return strings.EqualFold(a, origin) })
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	opened := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return opened && r.Method == http.MethodGet && (r.URL.Path == "/" || r.URL.Path == o.Returns)
}
