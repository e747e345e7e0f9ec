package limit

import (
	"context"
	"net/http"
	"net/netip"
	"time"
)

// Identity is who a request is from, as far as that has been verified. The
// zero Identity is nobody in particular, who is limited by address.
type Identity struct {
	// Key names an API key or a service, User a user. A request with either
	// is limited by them and not by the address it comes from.
	Key  string
	User string
	Role string
}

// Middleware limits the requests of an http.Handler by rules for the action
// api, one route's ("api:" and its pattern) or all.
type Middleware struct {
	// Gate decides. Required.
	Gate *Gate
	// Identify returns the verified identity of a request: from a token
	// whose signature was checked, never from a bare header or parameter.
	// Nil means nobody is ever known.
	Identify func(*http.Request) Identity
	// Trusted are the proxies whose X-Forwarded-For is believed.
	Trusted []netip.Prefix
	// Route returns a request's route template; r.Pattern when nil, which the
	// ServeMux has set when the middleware stands inside of it.
	Route func(*http.Request) string
	// MostClients bounds the keys, users, addresses and networks remembered,
	// each; 100,000 when 0.
	MostClients int
	// Ask returns what a request asks, and of whose buckets, until release,
	// which is never nil; ok is false when no place was left for its client. It
	// stands in for the four fields above where a server keeps buckets itself.
	Ask func(now Instant, r *http.Request) (q Request, subjects []*Subject, release func(), ok bool)
	// Refuse answers a rejection, in place of WriteRefusal. One for want of a
	// place is Unavailable and names no rule.
	Refuse func(http.ResponseWriter, *http.Request, Decision)
}

// clients are the tables of a middleware.
type clients struct {
	keys  *Table[string]
	users *Table[string]
	hosts *Table[netip.Prefix]
	nets  *Table[netip.Prefix]
}

// decisionKey finds the Decision in a request's context.
type decisionKey struct{}

// FromContext returns the decision under which a handler runs, and whether
// there was one. Its verdict may be Degrade: serve the cached or the small.
func FromContext(ctx context.Context) (Decision, bool) {
	d, ok := ctx.Value(decisionKey{}).(Decision)
	return d, ok
}

// Wrap returns next behind the limits. A refusal is answered by WriteRefusal;
// an admission has the RateLimit headers set, is held back for a leaky
// bucket's delay, and gives its slots back when next returns or panics.
func (m Middleware) Wrap(next http.Handler) http.Handler {
	if m.Ask == nil {
		m.Ask = m.askTables()
	}
	if m.Refuse == nil {
		m.Refuse = func(w http.ResponseWriter, r *http.Request, d Decision) {
			if d.Unavailable && d.Rule == "" {
				writeUnavailable(w, r)
				return
			}
			WriteRefusal(w, r, d, m.Gate.Rules())
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
}

// askTables asks by the identity and the address, of tables of its own.
func (m Middleware) askTables() func(Instant, *http.Request) (Request, []*Subject, func(), bool) {
	most := m.MostClients
	if most == 0 {
		most = 100_000
	}
	all := &clients{
		keys:  NewTable[string](ScopeKey, most),
		users: NewTable[string](ScopeUser, most),
		hosts: NewTable[netip.Prefix](ScopeIP, most),
		nets:  NewTable[netip.Prefix](ScopeNet, most),
	}
	return func(now Instant, r *http.Request) (Request, []*Subject, func(), bool) {
		q := Request{Action: API, Route: r.Pattern, Addr: ClientAddr(r, m.Trusted)}
		if m.Route != nil {
			q.Route = m.Route(r)
		}
		var who Identity
		if m.Identify != nil {
			who = m.Identify(r)
		}
		q.Role, q.User, q.Key = who.Role, who.User, who.Key
		subjects, release, ok := all.acquire(now, who, q.Addr)
		return q, subjects, release, ok
	}
}

func (m Middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	now := m.Gate.Now()
	q, subjects, release, ok := m.Ask(now, r)
	defer release()
	if !ok {
		m.Refuse(w, r, Decision{Verdict: Reject, Unavailable: true})
		return
	}
	d := m.Gate.Decide(now, &q, subjects...)
	if d.Verdict == Reject {
		m.Refuse(w, r, d)
		return
	}
	defer m.Gate.Release(now, &q, subjects...)
	if !pause(r.Context(), d.Delay) {
		return
	}
	SetHeaders(w.Header(), d, m.Gate.Rules())
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), decisionKey{}, d)))
}

// acquire finds the subjects of a client. release is never nil.
func (c *clients) acquire(now Instant, who Identity, addr netip.Addr) (subjects []*Subject, release func(), ok bool) {
	var held []func()
	release = func() {
		for _, f := range held {
			f()
		}
	}
	ok = true
	if who.Key != "" {
		ok = hold(c.keys, now, who.Key, &subjects, &held)
	}
	if who.User != "" {
		ok = ok && hold(c.users, now, who.User, &subjects, &held)
	}
	if who.Key == "" && who.User == "" {
		ok = hold(c.hosts, now, HostPrefix(addr), &subjects, &held) &&
			hold(c.nets, now, NetPrefix(addr), &subjects, &held)
	}
	return subjects, release, ok
}

func hold[K comparable](t *Table[K], now Instant, key K, subjects *[]*Subject, held *[]func()) bool {
	e, ok := t.Acquire(now, key)
	if ok {
		*subjects = append(*subjects, &e.Subject)
		*held = append(*held, func() { t.Release(e) })
	}
	return ok
}

// pause waits, and reports false when the client has gone meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
