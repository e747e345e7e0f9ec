package conn

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// foreign returns the origin of a page that may not connect: neither of the host that was asked, nor configured; "" when it
// may, or when no page asks.
func (a *Acceptor) foreign(r *http.Request) string {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil {
		return origin
	}
	if strings.EqualFold(withoutPort(u.Host, u.Scheme), withoutPort(r.Host, u.Scheme)) {
		return ""
	}
	for _, pattern := range a.cfg.Origins {
		target := u.Host
		if strings.Contains(pattern, "://") {
			target = u.Scheme + "://" + u.Host
		}
		if ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(target)); ok && err == nil {
			return ""
		}
	}
	return origin
}

// withoutPort cuts off the port that a scheme has anyway, which some proxies write and no browser does.
func withoutPort(host, scheme string) string {
	return strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
}

// originEvery is how often a refused page is worth a line.
const originEvery = time.Minute

// refuseOrigin answers 403. One line a minute names both hosts: behind a proxy that rewrites Host every page is refused,
// and whoever set it up looks here.
func (a *Acceptor) refuseOrigin(w http.ResponseWriter, r *http.Request, origin string) {
	a.cfg.Metrics.upgrades.origin.Add(1)
	now := int64(a.now())
	if last := a.originTold.Load(); (last == 0 || now-last >= int64(originEvery)) && a.originTold.CompareAndSwap(last, now) {
		a.cfg.Logger.Warn("sockets of a page are refused: its origin is not the host that was asked; set public_url to what viewers type, or add the page's to origins",
			"origin", origin, "host", r.Host)
	}
	http.Error(w, "The page at "+origin+" may not open sockets at "+r.Host+": its origin must be the same, or configured (public_url, origins).", http.StatusForbidden)
}
