package config

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"liveroom/internal/hook"
	"liveroom/internal/trace"
	"liveroom/protocol"
)

// MinSecretBytes is the shortest secret that is accepted. RFC 7518, section 3.2 asks for 32 bytes; the server warns
// below that.
const MinSecretBytes = 16

// check finds out what is wrong with a field, given by its pointer: it returns what would be allowed, "" when it is.
type check func(field any) (allowed string)

func between[T int | time.Duration](least, most T) check {
	return func(field any) string {
		if n := *field.(*T); n < least || n > most {
			return fmt.Sprintf("%v to %v", least, most)
		}
		return ""
	}
}

// text is a check of a string that is to be ok.
func text(allowed string, ok func(string) bool) check {
	return func(field any) string {
		if ok(*field.(*string)) {
			return ""
		}
		return allowed
	}
}

func oneOf(words ...string) check {
	return text("one of "+strings.Join(words, ", "), func(s string) bool { return slices.Contains(words, s) })
}

var (
	address = text("host:port, such as :8080 or 127.0.0.1:0", func(s string) bool {
		_, port, err := net.SplitHostPort(s)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		return err == nil
	})
	webPage    = text("a URL that begins with http:// or https://", func(s string) bool { return s == "" || isURL(s, "http", "https") })
	identifier = text("1 to 64 of A-Z a-z 0-9 _ -", func(s string) bool { return s == "" || protocol.ValidRoom(s) })
	directory  = text("a directory", func(s string) bool { return s != "" })
)

var (
	receiver = text("a URL that begins with http:// or https://, without user, query and fragment", func(s string) bool { return s == "" || trace.CheckEndpoint(s) == nil })

	headerName = regexp.MustCompile(`^[!#$%&'*+.^_|~0-9A-Za-z` + "`" + `-]+$`) // RFC 9110, section 5.6.2
)

// share checks a part of all.
func share(field any) string {
	if n := *field.(*float64); n >= 0 && n <= 1 { // no NaN is
		return ""
	}
	return "0 to 1"
}

// headers checks a list of headers.
func headers(field any) string {
	for _, h := range *field.(*[]string) {
		if _, _, ok := Header(h); !ok {
			return "each name=value, such as Authorization=Bearer%20key"
		}
	}
	return ""
}

// Header reads one of tracing.headers.
func Header(h string) (name, value string, ok bool) {
	name, escaped, _ := strings.Cut(h, "=")
	value, err := url.PathUnescape(escaped)
	return name, value, err == nil && headerName.MatchString(name) && !strings.ContainsFunc(value, unicode.IsControl)
}

// eventTypes checks a list of at most maxEventTypes.
func eventTypes(field any) string {
	types := *field.(*[]string)
	for i, t := range types {
		if !protocol.ValidID(t) || slices.Contains(types[:i], t) {
			return "each 1 to 64 of A-Z a-z 0-9 _ . : @ -, once"
		}
	}
	if len(types) > maxEventTypes {
		return "at most " + strconv.Itoa(maxEventTypes)
	}
	return ""
}

var attributeName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// attributes checks a list of at most maxAttributes, none of which is what a user has anyway.
func attributes(field any) string {
	names := *field.(*[]string)
	for i, n := range names {
		if !attributeName.MatchString(n) || n == "id" || n == "name" || n == "role" || slices.Contains(names[:i], n) {
			return "each a letter of a-z and up to 31 of a-z 0-9 _, once, and not id, name or role"
		}
	}
	if len(names) > maxAttributes {
		return "at most " + strconv.Itoa(maxAttributes)
	}
	return ""
}

// maxAttributes is more than one user may have, since users differ.
const maxAttributes = 32

// maxEventTypes keeps what a refusal lists readable.
const maxEventTypes = 100

func isURL(s string, schemes ...string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && slices.Contains(schemes, u.Scheme)
}

// Validate returns everything wrong with c that can be told without opening anything.
func (c Config) Validate() Faults {
	v := validator{}
	for _, s := range Settings() {
		if s.check == nil {
			continue
		}
		if allowed := s.check(s.into(&c)); allowed != "" {
			what := received(s.into(&c))
			if s.Secret {
				what = "something else"
			}
			v.add(s.Key, allowed, what)
		}
	}
	v.nats(c)
	v.redis(c)
	v.pair("tls.cert", c.TLS.Cert, "tls.key", c.TLS.Key)
	v.pair("admin_tls.cert", c.AdminTLS.Cert, "admin_tls.key", c.AdminTLS.Key)
	if c.AdminTLS.ClientCA != "" && !c.AdminTLS.Enabled() {
		v.add("admin_tls.client_ca", "nothing, unless admin_tls.cert is set", "a file")
	}
	v.auth(c.Auth)
	v.adminOIDC(c.AdminOIDC)
	v.origins(c.Origins)
	for _, h := range c.AdminHosts {
		if h == "" || strings.ContainsAny(h, "/: ") {
			v.add("admin_hosts", "names without scheme and port, such as ops.example.com", quote(h))
		}
	}
	for _, a := range [...]struct{ key, name string }{{"rooms.followed_attribute", c.Rooms.Followed}, {"rooms.account_attribute", c.Rooms.Account}} {
		if a.name != "" && !slices.Contains(c.Protocol.Attributes, a.name) {
			v.add(a.key, "one of protocol.attributes", quote(a.name))
		}
	}
	v.gifts(c.Gifts)
	v.hooks(c.Hooks, c.Gifts.Authority)
	v.webhooks(c.Webhooks, c.Hooks)
	if c.ProxyProtocol && len(c.TrustedProxies) == 0 {
		v.add("trusted_proxies", "the proxies that send PROXY protocol headers, since proxy_protocol is on", "nothing")
	}
	return v.faults
}

// received shows a field's value.
func received(field any) string {
	switch p := field.(type) {
	case *int:
		return strconv.Itoa(*p)
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	case *time.Duration:
		return p.String()
	case *[]string:
		return quote(strings.Join(*p, ","))
	case *string:
		if *p == "" {
			return "nothing"
		}
		return quote(*p)
	}
	return ""
}

type validator struct{ faults Faults }

func (v *validator) add(path, allowed, received string) {
	v.faults = append(v.faults, Fault{Path: path, Allowed: allowed, Received: received})
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
		allowed := oneOf("redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://", "redis+cluster://", "rediss+cluster://", "unix://")
		if scheme += "://"; allowed(&scheme) != "" {
			v.add("redis", allowed(&scheme), quote(scheme))
		}
	}
	if c.RedisCA != "" && !strings.HasPrefix(c.Redis, "rediss") {
		v.add("redis_ca", "nothing, unless redis begins with rediss", "a file")
	}
}

// secretURL checks a URL that may hold a password, which is not shown.
func (v *validator) secretURL(path, s string, schemes ...string) {
	if isURL(s, schemes...) {
		return
	}
	shown := "one that can't be read and is not shown"
	if u, err := url.Parse(s); err == nil && u.Host != "" {
		shown = quote((&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).Redacted())
	}
	v.add(path, "a URL that begins with "+strings.Join(schemes, ":// or ")+"://", shown)
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

// adminOIDC checks what can be told of the sign-in without asking the provider.
func (v *validator) adminOIDC(o AdminOIDC) {
	const path = "admin_oidc."
	if o.Issuer == "" {
		if o.ClientID != "" || o.ClientSecret != "" || o.URL != "" || len(o.Admins)+len(o.Moderators)+len(o.Readers) > 0 {
			v.add(path+"issuer", "a URL, since another of admin_oidc is set", "nothing")
		}
		return
	}
	if o.ClientID == "" {
		v.add(path+"client_id", "a text, since admin_oidc.issuer is set", "nothing")
	}
	if o.Claim == "" {
		v.add(path+"claim", "a name, since admin_oidc.issuer is set", "nothing")
	}
	if len(o.Admins)+len(o.Moderators)+len(o.Readers) == 0 {
		v.add(path+"admins", "one value or more, here or in admin_oidc.moderators or admin_oidc.readers, since else nobody is let in", "nothing")
	}
	if !slices.Contains(o.Scopes, "openid") {
		v.add(path+"scopes", "openid, alone or among others", quote(strings.Join(o.Scopes, ",")))
	}
	if o.URL != "" {
		v.origin(path+"url", o.URL)
	}
}

func (v *validator) origins(list []string) {
	for _, s := range list {
		v.origin("origins", s)
	}
}

func (v *validator) origin(path, s string) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		v.add(path, "scheme://host or scheme://host:port, such as https://live.example.com", quote(s))
	}
}

// hooks checks what can be told of the platform's addresses without asking them.
func (v *validator) hooks(h Hooks, authority string) {
	for i, s := range h.Secrets {
		if _, err := hook.ParseSecret(s); err != nil {
			v.add(fmt.Sprintf("hooks.secrets[%d]", i), hook.SecretForm, "one that is not shown")
		}
	}
	if h.Gift.URL == "" && authority == GiftsByHook {
		v.add("hooks.gift.url", "a URL, since gifts.authority is hook", "nothing")
	}
	set := ""
	for _, one := range []struct{ key, url string }{{"hooks.gift.url", h.Gift.URL}, {"hooks.join.url", h.Join.URL}, {"hooks.danmaku.url", h.Danmaku.URL}} {
		if one.url == "" {
			continue
		}
		if fault := hook.CheckURL(one.url, h.Plain); fault != "" {
			v.add(one.key, "https://host/path, or http:// where hooks.plain_http lets it", fault)
		}
		set = cmp.Or(set, one.key)
	}
	if set != "" && len(h.Secrets) == 0 {
		v.add("hooks.secrets", "one or more, since "+set+" is set", "none")
	}
}

func (v *validator) gifts(c Gifts) {
	for _, f := range protocol.CheckGifts(c.Catalogue) {
		v.add("gifts.catalogue"+f.Path, f.Allowed, f.Received)
	}
}

// Enabled reports whether the listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Embedded reports whether NATS runs inside this process.
func (c Config) Embedded() bool { return len(c.NATS) == 1 && c.NATS[0] == NATSEmbedded }

// origin is the origin of a page's URL as browsers write it: small letters, and no port that the scheme has anyway.
func origin(u *url.URL) string {
	host := strings.TrimSuffix(u.Host, map[string]string{"https": ":443", "http": ":80"}[u.Scheme])
	return u.Scheme + "://" + strings.ToLower(host)
}

// AllowedOrigins are the web origins whose pages may open sockets, call the API and load the client: those of origins, and
// that of public_url.
func (c Config) AllowedOrigins() []string {
	var out []string
	for _, s := range append([]string{c.PublicURL}, c.Origins...) {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			out = append(out, origin(u))
		}
	}
	return out
}
