package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says which Redis. Zero values take their defaults.
type Config struct {
	// URL is where Redis is. Required. One of
	//
	//	redis://[user:password@]host[:6379][/db]            one server
	//	rediss://…                                          the same over TLS
	//	unix://[user:password@]/path[?db=n]                 one server, by its socket
	//	redis+sentinel://[user:password@]host[:26379][,host…]/name[/db]
	//	                                                    the master that Sentinel calls so
	//	redis+cluster://[user:password@]host[:6379][,host…] a cluster
	//	host:port                                           one server
	//	host:port,host:port…                                a cluster
	//
	// rediss+sentinel and rediss+cluster use TLS. redis:// with several hosts is
	// a cluster, too. Of the query, skip_verify=true (TLS without verifying the
	// certificate), pool_size, client_name, sentinel_username and
	// sentinel_password are known.
	URL string
	// TLS is used instead of the system's defaults where the URL asks for TLS.
	TLS *tls.Config
	// Dial is the longest that connecting takes, with TLS and log-in, 250 ms by
	// default; the pool goes on connecting when the call that needed it is over.
	Dial time.Duration
	// Answer is the longest that a server takes to answer a call whose context
	// is longer, 250 ms by default.
	Answer time.Duration
	// Pool is the number of connections to each server. The URL's pool_size,
	// else 8.
	Pool int
}

const (
	defaultDial   = 250 * time.Millisecond
	defaultAnswer = 250 * time.Millisecond
	defaultPool   = 8
)

// Open returns a store for the Redis that a configuration names. It fails only
// when the configuration is at fault; no error quotes the URL, which may hold a
// password. Of a cluster it fetches the map of slots if that is to be had within
// Dial and Answer, else Beat does later.
func Open(cfg Config) (*Store, error) {
	o, err := cfg.options()
	if err != nil {
		return nil, err
	}
	s := newStore(func() redis.UniversalClient { return redis.NewUniversalClient(o) }, assemble(part("clock")))
	if o.IsClusterMode {
		ctx, cancel := context.WithTimeout(context.Background(), o.DialTimeout+o.ReadTimeout)
		defer cancel()
		_, _ = s.Beat(ctx, alone)
	}
	return s, nil
}

// options are the client's. What decides over how long a call takes is set here
// and nowhere else: nothing is tried twice behind the caller's back.
func (cfg Config) options() (*redis.UniversalOptions, error) {
	if cfg.Dial < 0 || cfg.Answer < 0 || cfg.Pool < 0 {
		return nil, errors.New("redisstore: a time-out or pool size is negative")
	}
	o, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if o.TLSConfig != nil && cfg.TLS != nil {
		skip := o.TLSConfig.InsecureSkipVerify
		o.TLSConfig = cfg.TLS.Clone()
		o.TLSConfig.InsecureSkipVerify = o.TLSConfig.InsecureSkipVerify || skip
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries, o.DialerRetries = -1, 1
	o.MaxRedirects = 2 // followed only for calls that were told to go elsewhere
	o.DialTimeout = or(cfg.Dial, defaultDial)
	o.ReadTimeout = or(cfg.Answer, defaultAnswer)
	o.WriteTimeout, o.PoolTimeout = o.ReadTimeout, o.ReadTimeout/2
	o.PoolSize = or(cfg.Pool, or(o.PoolSize, defaultPool))
	o.PipelinePoolSize = -1 // there are only pipelines
	o.ConnMaxIdleTime = 5 * time.Minute
	o.Protocol, o.DisableIdentity = 2, true // Redis 6 knows no more, and neither is needed
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// parse reads the URL. go-redis' parsers do the work; their errors, and those of
// net/url, may quote a password and are not passed on.
func parse(text string) (*redis.UniversalOptions, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "redis", text
	}
	if rest == "" {
		return nil, errors.New("redisstore: the URL is empty")
	}
	if scheme == "unix" {
		o, err := redis.ParseURL(text)
		if err != nil {
			return nil, errors.New("redisstore: the unix:// URL does not parse (want unix://[user:password@]/path[?db=n])")
		}
		return universal(o), nil
	}
	base, kind, _ := strings.Cut(scheme, "+")
	if (base != "redis" && base != "rediss") || !slices.Contains([]string{"", "sentinel", "cluster"}, kind) {
		return nil, fmt.Errorf("redisstore: the URL's scheme is none of redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster")
	}
	u, more, err := split(base, rest)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == "sentinel":
		return parseSentinel(u, more)
	case kind == "cluster" || len(more) > 0:
		return parseCluster(u, more)
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, errors.New("redisstore: the URL's database or query does not parse")
	}
	return universal(o), nil
}

// split parses what stands after the scheme. url.Parse takes one host: the others
// are returned apart.
func split(scheme, rest string) (*url.URL, []string, error) {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	login := ""
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		login, authority = authority[:i+1], authority[i+1:]
	}
	hosts := strings.Split(authority, ",")
	for _, h := range hosts {
		if v, err := url.Parse("//" + h); err != nil || v.Hostname() == "" || v.Host != h {
			return nil, nil, errors.New("redisstore: the URL's hosts do not parse (want host:port[,host:port…])")
		}
	}
	u, err := url.Parse(scheme + "://" + login + hosts[0] + tail)
	if err != nil {
		return nil, nil, errors.New("redisstore: the URL does not parse (a password's special characters are written as %XX)")
	}
	known := []string{"db", "skip_verify", "pool_size", "client_name", "sentinel_username", "sentinel_password"}
	for name := range u.Query() {
		if !slices.Contains(known, name) {
			return nil, nil, fmt.Errorf("redisstore: the URL's query may have %s only", strings.Join(known, ", "))
		}
	}
	return u, hosts[1:], nil
}

func parseSentinel(u *url.URL, more []string) (*redis.UniversalOptions, error) {
	name, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, errors.New("redisstore: the URL lacks the master's name (redis+sentinel://host:26379/name)")
	}
	q := u.Query()
	sentinelUser, sentinelPassword := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	q.Set("master_name", name)
	for _, h := range more {
		q.Add("addr", withPort(h, "26379"))
	}
	u.Host, u.Path, u.RawQuery = withPort(u.Host, "26379"), "/"+db, q.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, errors.New("redisstore: the URL's database or query does not parse")
	}
	password, _ := u.User.Password()
	return &redis.UniversalOptions{ // the log-in is the servers', Sentinel has its own
		Addrs: o.SentinelAddrs, MasterName: name, DB: o.DB, Username: u.User.Username(), Password: password,
		SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword,
		TLSConfig: o.TLSConfig, PoolSize: o.PoolSize, ClientName: o.ClientName,
	}, nil
}

func parseCluster(u *url.URL, more []string) (*redis.UniversalOptions, error) {
	if strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("redisstore: a cluster has one database, the URL names another")
	}
	q := u.Query()
	for _, h := range more {
		q.Add("addr", withPort(h, "6379"))
	}
	u.Host, u.RawQuery = withPort(u.Host, "6379"), q.Encode()
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, errors.New("redisstore: the URL's query does not parse")
	}
	return &redis.UniversalOptions{
		Addrs: o.Addrs, IsClusterMode: true, Username: o.Username, Password: o.Password,
		TLSConfig: o.TLSConfig, PoolSize: o.PoolSize, ClientName: o.ClientName,
	}, nil
}

func universal(o *redis.Options) *redis.UniversalOptions {
	u := &redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password,
		TLSConfig: o.TLSConfig, PoolSize: o.PoolSize, ClientName: o.ClientName,
	}
	if o.Network == "unix" {
		u.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", o.Addr)
		}
	}
	return u
}

func withPort(host, port string) string {
	if u := (url.URL{Host: host}); u.Port() != "" {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}
