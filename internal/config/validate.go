package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"liveroom/internal/hook"
	"liveroom/protocol"
)

// MinSecretBytes is the shortest secret that is accepted. RFC 7518, section 3.2 asks for 32 bytes; the server warns
// below that.
const MinSecretBytes = 16

// Validate returns everything wrong with c that can be told without opening anything.
func (c Config) Validate() Faults {
	v := validator{}
	v.address("addr", c.Addr)
	v.address("admin_addr", c.AdminAddr)
	v.optionalURL("public_url", c.PublicURL, "http", "https")
	if c.NodeID != "" && !protocol.ValidRoom(c.NodeID) {
		v.add("node_id", "1 to 64 of A-Z a-z 0-9 _ -", quote(c.NodeID))
	}
	if c.DataDir == "" {
		v.add("data_dir", "a directory", "nothing")
	}
	v.nats(c)
	v.redis(c)
	v.pair("tls.cert", c.TLS.Cert, "tls.key", c.TLS.Key)
	v.auth(c.Auth)
	v.origins(c.Origins)
	for _, h := range c.AdminHosts {
		if h == "" || strings.ContainsAny(h, "/: ") {
			v.add("admin_hosts", "names without scheme and port, such as ops.example.com", quote(h))
		}
	}
	v.gifts(c.Gifts)
	v.hooks(c.Hooks, c.Gifts.Authority)
	v.numbers(c)
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		v.add("trusted_proxies", "the proxies that send PROXY protocol headers, since proxy_protocol is on", "nothing")
	}
	v.oneOf("limits.source", c.Limits.Source, SourceFile, SourceCluster)
	v.oneOf("compression", c.Compression, CompressionOff, CompressionAuto, CompressionOn)
	v.oneOf("print_tokens", c.PrintTokens, PrintAuto, PrintAlways, PrintNever)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "json", "text")
	return v.faults
}

type validator struct{ faults Faults }

func (v *validator) add(path, allowed, received string) {
	v.faults = append(v.faults, Fault{Path: path, Allowed: allowed, Received: received})
}

func (v *validator) oneOf(path, got string, allowed ...string) {
	if !slices.Contains(allowed, got) {
		v.add(path, "one of "+strings.Join(allowed, ", "), quote(got))
	}
}

func (v *validator) address(path, s string) {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		v.add(path, "host:port, such as :8080 or 127.0.0.1:0", quote(s))
	}
}

func (v *validator) optionalURL(path, s string, schemes ...string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		v.add(path, "a URL that begins with "+strings.Join(schemes, ":// or ")+"://", quote(s))
	}
}

// nats checks how this node reaches the others. Whether it is alone there, and so may do without redis, shows at start.
func (v *validator) nats(c Config) {
	v.pair("nats_cert", c.NATSFiles.Cert, "nats_key", c.NATSFiles.Key)
	if c.Embedded() {
		if c.NATSFiles != (NATSFiles{}) {
			v.add("nats", "URLs, since nats_creds, nats_ca or nats_cert is set", NATSEmbedded)
		}
		return
	}
	if len(c.NATS) == 0 {
		v.add("nats", "embedded, or URLs such as nats://host:4222", "nothing")
	}
	for i, s := range c.NATS {
		v.secretURL(fmt.Sprintf("nats[%d]", i), s, "nats", "tls")
	}
}

// redis checks the form of the address; the store itself reads the rest.
func (v *validator) redis(c Config) {
	if scheme, _, ok := strings.Cut(c.Redis, "://"); ok {
		v.oneOf("redis", scheme+"://", "redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://", "redis+cluster://", "rediss+cluster://", "unix://")
	}
	if c.RedisCA != "" && !strings.HasPrefix(c.Redis, "rediss") {
		v.add("redis_ca", "nothing, unless redis begins with rediss", "a file")
	}
}

// secretURL is [validator.optionalURL] for a URL that may hold a password, which is not shown.
func (v *validator) secretURL(path, s string, schemes ...string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		v.add(path, "a URL that begins with "+strings.Join(schemes, ":// or ")+"://", "one that can't be read and is not shown")
	case !slices.Contains(schemes, u.Scheme):
		v.add(path, "a URL that begins with "+strings.Join(schemes, ":// or ")+"://", quote((&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).Redacted()))
	}
}

// pair checks that a certificate comes with its key.
func (v *validator) pair(certPath, cert, keyPath, key string) {
	switch {
	case cert != "" && key == "":
		v.add(keyPath, "a file, since "+certPath+" is set", "nothing")
	case cert == "" && key != "":
		v.add(certPath, "a file, since "+keyPath+" is set", "nothing")
	}
}

func (v *validator) auth(a Auth) {
	if n := len(a.Secret); n > 0 && n < MinSecretBytes {
		v.add("auth.secret", fmt.Sprintf("%d bytes or more, better 32", MinSecretBytes), fmt.Sprintf("%d bytes", n))
	}
	if a.JWKSURL != "" {
		v.secretURL("auth.jwks_url", a.JWKSURL, "https", "http")
	}
	for path, s := range map[string]string{"auth.issuer": a.Issuer, "auth.audience": a.Audience} {
		if strings.TrimSpace(s) != s {
			v.add(path, "a text without space around it", quote(s))
		}
	}
}

func (v *validator) origins(list []string) {
	for _, s := range list {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			v.add("origins", "scheme://host or scheme://host:port, such as https://live.example.com", quote(s))
		}
	}
}

// hooks checks what can be told of the platform's addresses without asking them.
func (v *validator) hooks(h Hooks, authority string) {
	v.oneOf("hooks.plain_http", h.Plain, hook.PlainNever, hook.PlainLoopback, hook.PlainPrivate)
	for i, s := range h.Secrets {
		if _, err := hook.ParseSecret(s); err != nil {
			v.add(fmt.Sprintf("hooks.secrets[%d]", i), hook.SecretForm, "one that is not shown")
		}
	}
	v.count("hooks.in_flight", h.InFlight, 1, 10_000)
	v.count("hooks.waiting", h.Waiting, 0, 100_000)
	v.duration("hooks.gift.timeout", h.Gift.Timeout, 50*time.Millisecond, 2*time.Second)
	if h.Gift.URL == "" {
		if authority == GiftsByHook {
			v.add("hooks.gift.url", "a URL, since gifts.authority is hook", "nothing")
		}
		return
	}
	if fault := hook.CheckURL(h.Gift.URL, h.Plain); fault != "" {
		v.add("hooks.gift.url", "https://host/path, or http:// where hooks.plain_http lets it", fault)
	}
	if len(h.Secrets) == 0 {
		v.add("hooks.secrets", "one or more, since hooks.gift.url is set", "none")
	}
}

func (v *validator) gifts(c Gifts) {
	v.oneOf("gifts.authority", c.Authority, GiftsByBackend, GiftsByHook, GiftsOpen)
	seen := map[string]bool{}
	for i, g := range c.Catalogue {
		at := fmt.Sprintf("gifts.catalogue[%d].", i)
		if !protocol.ValidRoom(g.ID) {
			v.add(at+"id", "1 to 64 of A-Z a-z 0-9 _ -", quote(g.ID))
		}
		if seen[g.ID] {
			v.add(at+"id", "an id once", quote(g.ID)+" again")
		}
		seen[g.ID] = true
		if g.Price < 1 {
			v.add(at+"price", "a whole number from 1", strconv.FormatInt(g.Price, 10))
		}
		for lang, name := range map[string]string{"name": g.Name, "names.en": g.Names["en"], "names.zh": g.Names["zh"]} {
			if n := protocol.CountGraphemes(name); n > protocol.MaxNameGraphemes || n == 0 && lang == "name" {
				v.add(at+lang, fmt.Sprintf("1 to %d characters", protocol.MaxNameGraphemes), quote(name))
			}
		}
		for lang := range g.Names {
			if lang != "en" && lang != "zh" {
				v.add(at+"names", "en and zh", quote(lang))
			}
		}
	}
}

func (v *validator) numbers(c Config) {
	v.count("rooms.create_rate", c.Rooms.CreateRate, 0, 100_000)
	v.count("rooms.max", c.Rooms.Max, 1, 1_000_000)
	v.count("rooms.text_graphemes", c.Rooms.TextGraphemes, 1, 500)
	v.count("sessions.max", c.Sessions.Max, 1, 10_000_000)
	v.count("sessions.max_memory", c.Sessions.MaxMemory, 0, 1<<30)
	v.duration("rooms.idle", c.Rooms.Idle, time.Second, 24*time.Hour)
	v.duration("rooms.tick", c.Rooms.Tick, time.Millisecond, time.Second)
	v.duration("sessions.heartbeat", c.Sessions.Heartbeat, time.Second, 10*time.Minute)
	v.duration("sessions.hello_timeout", c.Sessions.HelloTimeout, 100*time.Millisecond, time.Minute)
	v.duration("sessions.write_timeout", c.Sessions.WriteTimeout, 100*time.Millisecond, time.Minute)
	v.duration("auth.leeway", c.Auth.Leeway, time.Second, 5*time.Minute)
	v.duration("drain_timeout", c.DrainTimeout, 0, 10*time.Minute)
}

func (v *validator) count(path string, n, least, most int) {
	if n < least || n > most {
		v.add(path, fmt.Sprintf("%d to %d", least, most), strconv.Itoa(n))
	}
}

func (v *validator) duration(path string, d, least, most time.Duration) {
	if d < least || d > most {
		v.add(path, fmt.Sprintf("%v to %v", least, most), d.String())
	}
}
