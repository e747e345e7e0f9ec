package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sony/gobreaker/v2"

	"liveroom/internal/trace"
)

// Where a hook may go over plain HTTP.
const (
	PlainNever    = "never"
	PlainLoopback = "loopback" // to this machine
	PlainPrivate  = "private"  // also to RFC 1918, fc00::/7 and link-local addresses
)

// Config configures an [Endpoint].
type Config struct {
	Name     string // of the closed list of hooks, for metrics and log
	URL      string
	Secrets  []Secret       // one or more
	Roots    *x509.CertPool // nil: the system's
	Plain    string         // where to plain HTTP may go
	Timeout  time.Duration  // of one call, all its tries and its wait for a place together
	InFlight int            // calls at a time
	Waiting  int            // and beyond these, how many wait for a place
	Metrics  *Metrics
	Trace    *trace.Tracer // nil: calls are not traced
	Log      *slog.Logger
	Now      func() time.Time // of signatures; nil: time.Now
}

// CheckURL returns what is wrong with an address, as far as it shows without looking the host up; "" when nothing is.
func CheckURL(address, plain string) (fault string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "no URL that begins with https:// or http://"
	case u.User != nil:
		return "one with a user in it, which is not needed: calls are signed"
	case u.Fragment != "":
		return "one with a fragment"
	case u.Scheme == "https":
		return ""
	case plain == PlainNever:
		return "plain http, which hooks.plain_http: never rules out"
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !plainTo(plain, ip) {
		return fmt.Sprintf("plain http to %s, which is not %s", ip, plain)
	}
	return ""
}

// plainTo reports whether plain HTTP may go to an address.
func plainTo(plain string, ip netip.Addr) bool {
	ip = ip.Unmap()
	return plain != PlainNever && (ip.IsLoopback() || plain == PlainPrivate && (ip.IsPrivate() || ip.IsLinkLocalUnicast()))
}

// Endpoint is one address of the platform.
type Endpoint struct {
	// Fixed after construction.
	cfg     Config
	client  *http.Client
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	places  chan struct{}

	waiting atomic.Int64
}

// New returns an endpoint; nothing is sent yet.
func New(cfg Config) (*Endpoint, error) {
	if fault := CheckURL(cfg.URL, cfg.Plain); fault != "" {
		return nil, errors.New("hook: the address is " + fault)
	}
	if len(cfg.Secrets) == 0 {
		return nil, errors.New("hook: no secret to sign with")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	e := &Endpoint{cfg: cfg, places: make(chan struct{}, cfg.InFlight)}
	e.client = &http.Client{
		Transport:     e.transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	e.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Timeout: reopenAfter,
		IsExcluded:  func(err error) bool { return outcomeOf(err) == Abandoned },
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= tripAfter },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			cfg.Metrics.away(cfg.Name, to != gobreaker.StateClosed)
			switch {
			case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
				cfg.Log.Error("a hook is away: nothing but a ping is sent to it", "hook", cfg.Name)
			case to == gobreaker.StateClosed:
				cfg.Log.Info("a hook is back", "hook", cfg.Name)
			}
		},
	})
	return e, nil
}

const (
	// tripAfter failures without an answer between them an endpoint is away; reopenAfter it is asked once whether it is back.
	tripAfter   = 5
	reopenAfter = time.Second

	idleFor    = 90 * time.Second
	mostHeader = 16 << 10
	keepAlive  = 15 * time.Second
)

// transport keeps connections and speaks HTTP/2 where the endpoint does. An address is looked at when it is dialled, so that no
// name leads plain HTTP elsewhere.
func (e *Endpoint) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: e.cfg.Timeout, KeepAlive: keepAlive}
	plain := *dialer
	plain.Control = func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err == nil && !plainTo(e.cfg.Plain, to.Addr()) {
			err = fmt.Errorf("plain http to %s is not allowed by hooks.plain_http: %s", to.Addr(), e.cfg.Plain)
		}
		return err
	}
	t := &http.Transport{
		DialContext:     plain.DialContext,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.cfg.Roots}, TLSHandshakeTimeout: e.cfg.Timeout,
		ForceAttemptHTTP2: true, DisableCompression: true, // a small body may inflate to any size
		MaxIdleConns: e.cfg.InFlight, MaxIdleConnsPerHost: e.cfg.InFlight, MaxConnsPerHost: e.cfg.InFlight, IdleConnTimeout: idleFor,
		MaxResponseHeaderBytes: mostHeader,
	}
	if u, err := url.Parse(e.cfg.URL); err == nil && u.Scheme == "https" {
		t.DialContext = dialer.DialContext
	}
	return t
}

// Err returns nil unless the endpoint is away.
func (e *Endpoint) Err() error {
	if e.breaker.State() != gobreaker.StateClosed {
		return &Failure{Outcome: Away, Why: errAway}
	}
	return nil
}

var (
	errAway = errors.New("it has not answered for a while")
	errBusy = errors.New("too many calls wait for it")
)

// pingEvery is how often an endpoint that is away is asked whether it is back.
const pingEvery = reopenAfter

// Watch pings the endpoint while it is away, until ctx ends, so that no user's request finds out that it is back.
func (e *Endpoint) Watch(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if e.Err() != nil {
				_ = e.Ping(ctx) // the breaker has learnt it
			}
		case <-ctx.Done():
			return
		}
	}
}

// Ping asks the endpoint for nothing but a word.
func (e *Endpoint) Ping(ctx context.Context) error {
	now := e.cfg.Now()
	return e.Call(ctx, Call{ID: fmt.Sprintf("ping_%d", now.UnixNano()), Type: "ping"}, &Done{})
}

// Close lets go of the connections that nobody uses.
func (e *Endpoint) Close() { e.client.CloseIdleConnections() }
