package config

import (
	"net/netip"
	"reflect"
	"strings"
	"time"

	"liveroom/internal/hook"
	"liveroom/protocol"
)

// EnvPrefix begins every environment variable of the server.
const EnvPrefix = "LIVEROOM_"

// NATSEmbedded is the value of nats that starts a server inside this process.
const NATSEmbedded = "embedded"

// Where the limit rules come from.
const (
	SourceFile    = "file"    // limits.file alone; the API refuses changes
	SourceCluster = "cluster" // the nodes' common store; limits.file only seeds it
)

// Whether frames are deflated for the clients that can inflate them.
const (
	CompressionOff  = "off"  // never
	CompressionAuto = "auto" // in rooms that are large enough for it to pay
	CompressionOn   = "on"   // in all rooms
)

// Who pays for gifts.
const (
	GiftsByBackend = "backend" // the platform, which sends them over the HTTP API
	GiftsByHook    = "hook"    // the platform, which is asked before a socket's is stored
	GiftsOpen      = "open"    // nobody
)

// When the addresses printed at start carry tokens.
const (
	PrintAuto   = "auto" // on a terminal
	PrintAlways = "always"
	PrintNever  = "never"
)

// Config is everything an operator can set. [Settings] documents each field: unit, default and meaning.
type Config struct {
	Addr           string
	AdminAddr      string
	PublicURL      string
	NodeID         string
	DataDir        string
	NATS           []string
	NATSFiles      NATSFiles
	Redis          string
	RedisCA        string
	TLS            TLS
	AdminTLS       AdminTLS
	AdminOIDC      AdminOIDC
	Auth           Auth
	Origins        []string
	AdminHosts     []string
	TrustedProxies []netip.Prefix
	ProxyProtocol  bool
	Rooms          Rooms
	Gifts          Gifts
	Hooks          Hooks
	Webhooks       []Webhook
	Events         Events
	Protocol       Protocol
	Limits         Limits
	Sessions       Sessions
	Compression    string
	DrainDelay     time.Duration
	DrainTimeout   time.Duration
	PrintTokens    string
	Tracing        Tracing
	Log            Log
}

// AdminTLS names the files by which operators and their listener know each other.
type AdminTLS struct {
	TLS
	ClientCA string
}

// AdminOIDC says where operators sign in, and as what.
type AdminOIDC struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	URL          string
	Scopes       []string
	Claim        string
	Admins       []string
	Moderators   []string
	Readers      []string
}

// TLS names the files of a listener's certificate.
type TLS struct {
	Cert string
	Key  string
}

// NATSFiles names the files that prove this node to the NATS servers, and them to it.
type NATSFiles struct {
	Creds string
	CA    string
	Cert  string
	Key   string
}

// Auth says who may come in.
type Auth struct {
	Secret   string
	JWKSURL  string
	Issuer   string        // what tokens must say in iss; "": anything
	Audience string        // the same of aud
	Leeway   time.Duration // of the clock of who signs
	Guests   bool
}

// Gifts says what gifts there are, and who pays for them.
type Gifts struct {
	Authority string
	Catalogue []protocol.CatalogueGift

	chosen bool // somebody wrote the authority
}

// Chosen reports whether somebody wrote the authority, so that it is not only the default.
func (g Gifts) Chosen() bool { return g.chosen }

// Protocol says what this product adds to the protocol.
type Protocol struct {
	Attributes []string
}

// Events says which custom events there are, and how much is kept for back ends that read what was admitted.
type Events struct {
	Types       []string
	Danmaku     string
	Sessions    string
	DanmakuAge  time.Duration
	DanmakuSize int // MiB
	GiftAge     time.Duration
	GiftSize    int // MiB
}

// Hooks says where and how the platform is asked.
type Hooks struct {
	Secrets  []string
	Plain    string
	CA       string
	InFlight int
	Waiting  int
	Gift     Hook
	Join     Consulted
	Danmaku  Consulted
}

// Hook is one address of the platform.
type Hook struct {
	URL     string
	Timeout time.Duration
}

// Consulted is a hook that need not have an answer.
type Consulted struct {
	Hook
	OnTimeout string
}

// What happens where a hook has given no answer.
const (
	WithoutAllow      = "allow"       // as if it had not to be asked
	WithoutRefuse     = "refuse"      // a join is
	WithoutSenderOnly = "sender_only" // a danmaku is shown to who said it
	WithoutHold       = "hold"        // a danmaku waits for the room's staff
)

// Whether danmaku, or sessions, are kept.
const (
	EventsOn  = "on"
	EventsOff = "off"
)

// Rooms bounds what rooms there may be and what is said in them.
type Rooms struct {
	AutoCreate    bool
	CreateRate    int
	Max           int
	Idle          time.Duration
	Tick          time.Duration
	Behind        time.Duration
	TextGraphemes int
	Followed      string // an attribute
	Account       string // an attribute
}

// Limits says where the limit rules come from.
type Limits struct {
	File   string
	Source string
}

// Sessions bounds the sockets of this node.
type Sessions struct {
	Max          int
	MaxMemory    int // MiB
	Heartbeat    time.Duration
	HelloTimeout time.Duration
	WriteTimeout time.Duration
}

// Tracing says where spans of operations are sent, and how many.
type Tracing struct {
	Endpoint string   // "": nowhere
	Headers  []string // each name=value
	Sample   float64  // 0 to 1
	Service  string
}

// Log says what the server writes to standard error.
type Log struct {
	Level  string
	Format string
	Slow   time.Duration
}

// Setting is one row of the table.
type Setting struct {
	Key     string // path in the file, dots between levels
	Unit    string // what kind of value it is
	Default string // as one would write it in the environment
	Doc     string // what it decides, one sentence or two
	Secret  bool   // the value is never shown

	into  func(*Config) any // pointer to the field
	check check             // nil: whatever can be read is allowed, as far as this row alone goes
}

// Flag is the name of the setting's flag, without the dash.
func (s Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Key) }

// Env is the name of the setting's environment variable.
func (s Setting) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_"))
}

// Settings returns the table, in the order of the documentation.
func Settings() []Setting {
	return []Setting{
		{Key: "addr", Unit: "host:port", Default: ":8080", into: func(c *Config) any { return &c.Addr }, check: address,
			Doc: "Where viewers connect: pages, API and sockets. Port 0 takes a free one."},
		{Key: "admin_addr", Unit: "host:port", Default: "127.0.0.1:8081", into: func(c *Config) any { return &c.AdminAddr }, check: address,
			Doc: "Where operators connect: admin page, API, metrics, health, pprof. Keep it off the internet; it speaks plain HTTP, unless admin_tls.cert is set."},
		{Key: "admin_hosts", Unit: "list of names", Default: "", into: func(c *Config) any { return &c.AdminHosts },
			Doc: "Names by which operators reach admin_addr, besides localhost, IP addresses and the name in admin_addr. Another Host is refused, health and metrics excepted where admin_addr is not on loopback."},
		{Key: "admin_tls.cert", Unit: "file", Default: "", into: func(c *Config) any { return &c.AdminTLS.Cert },
			Doc: "Certificate chain of admin_addr, PEM, renewed as tls.cert is. Empty: plain HTTP."},
		{Key: "admin_tls.key", Unit: "file", Default: "", into: func(c *Config) any { return &c.AdminTLS.Key },
			Doc: "Private key of admin_tls.cert, PEM."},
		{Key: "admin_tls.client_ca", Unit: "file", Default: "", into: func(c *Config) any { return &c.AdminTLS.ClientCA },
			Doc: "Certificates, PEM, one of which must have signed the certificate that operators and Prometheus show to admin_addr; /healthz and /readyz answer everybody. Empty: none is asked for."},
		{Key: "admin_oidc.issuer", Unit: "URL", Default: "", into: func(c *Config) any { return &c.AdminOIDC.Issuer }, check: webPage,
			Doc: "The OpenID Connect provider at which operators may sign in on the admin page. Empty: with a token alone, which stays good beside it."},
		{Key: "admin_oidc.client_id", Unit: "text", Default: "", into: func(c *Config) any { return &c.AdminOIDC.ClientID },
			Doc: "What the provider knows the admin page by."},
		{Key: "admin_oidc.client_secret", Unit: "text", Default: "", into: func(c *Config) any { return &c.AdminOIDC.ClientSecret }, Secret: true,
			Doc: "What the provider gave the admin page to prove itself. Empty: nothing, for a client that is public there (PKCE is used either way). Write it into the environment or the file."},
		{Key: "admin_oidc.url", Unit: "scheme://host[:port]", Default: "", into: func(c *Config) any { return &c.AdminOIDC.URL },
			Doc: "How operators' browsers reach admin_addr; the provider must know /signin/callback there. Empty: the Host of each request counts, and https where admin_tls.cert is set. Set it behind a proxy that ends TLS."},
		{Key: "admin_oidc.scopes", Unit: "list of names", Default: "openid,profile", into: func(c *Config) any { return &c.AdminOIDC.Scopes },
			Doc: "What the provider is asked for, openid among it; some want one more to tell groups or roles."},
		{Key: "admin_oidc.claim", Unit: "name", Default: "roles", into: func(c *Config) any { return &c.AdminOIDC.Claim },
			Doc: "The ID token's claim that says what an operator is: a text, or a list of them. With dots it may lie in objects: realm_access.roles."},
		{Key: "admin_oidc.admins", Unit: "list of values", Default: "", into: func(c *Config) any { return &c.AdminOIDC.Admins },
			Doc: "Values of the claim for who may everything, as with an admin's token."},
		{Key: "admin_oidc.moderators", Unit: "list of values", Default: "", into: func(c *Config) any { return &c.AdminOIDC.Moderators },
			Doc: "Values of the claim for who moderates in all rooms, over the API of admin_addr."},
		{Key: "admin_oidc.readers", Unit: "list of values", Default: "", into: func(c *Config) any { return &c.AdminOIDC.Readers },
			Doc: "Values of the claim for who sees what admins see and changes nothing. Who has none of all these values is not let in."},
		{Key: "public_url", Unit: "URL", Default: "", into: func(c *Config) any { return &c.PublicURL }, check: webPage,
			Doc: "How viewers reach this server: its origin counts as the server's own, and it is printed at start. Empty: the Host of each request counts, and addr is printed. Set it behind a proxy that rewrites Host."},
		{Key: "node_id", Unit: "identifier", Default: "", into: func(c *Config) any { return &c.NodeID }, check: identifier,
			Doc: "This node's name among its peers, A-Z a-z 0-9 _ -. Empty: the host's name, with several nodes also the port of addr."},
		{Key: "data_dir", Unit: "directory", Default: "data", into: func(c *Config) any { return &c.DataDir }, check: directory,
			Doc: "Where gifts, likes, room settings and the generated secret are kept. Created when missing."},
		{Key: "nats", Unit: "embedded or list of URLs", Default: NATSEmbedded, into: func(c *Config) any { return &c.NATS }, Secret: true,
			Doc: "The NATS servers between nodes, nats:// or tls://, JetStream on; embedded runs one inside this process. A second node needs redis."},
		{Key: "nats_creds", Unit: "file", Default: "", into: func(c *Config) any { return &c.NATSFiles.Creds },
			Doc: "Credentials for the NATS servers, as nsc writes them. A user and password may also stand in the URL."},
		{Key: "nats_ca", Unit: "file", Default: "", into: func(c *Config) any { return &c.NATSFiles.CA },
			Doc: "Certificates that the NATS servers' are checked against, PEM. Empty: the system's."},
		{Key: "nats_cert", Unit: "file", Default: "", into: func(c *Config) any { return &c.NATSFiles.Cert },
			Doc: "Certificate that this node shows to the NATS servers, PEM. Empty: none."},
		{Key: "nats_key", Unit: "file", Default: "", into: func(c *Config) any { return &c.NATSFiles.Key },
			Doc: "Private key of nats_cert, PEM."},
		{Key: "redis", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Redis }, Secret: true,
			Doc: "The authority on quotas over several nodes: redis://host:6379, redis+sentinel://host,host/name or redis+cluster://host,host; rediss for TLS. Empty: this node alone is the authority."},
		{Key: "redis_ca", Unit: "file", Default: "", into: func(c *Config) any { return &c.RedisCA },
			Doc: "Certificates that the Redis servers' are checked against over TLS, PEM. Empty: the system's."},
		{Key: "tls.cert", Unit: "file", Default: "", into: func(c *Config) any { return &c.TLS.Cert },
			Doc: "Certificate chain of the main listener, PEM. A renewed one is taken within 15s, or on SIGHUP. Empty: plain HTTP."},
		{Key: "tls.key", Unit: "file", Default: "", into: func(c *Config) any { return &c.TLS.Key },
			Doc: "Private key of the certificate, PEM."},
		{Key: "auth.secret", Unit: "text, 16 bytes or more", Default: "", into: func(c *Config) any { return &c.Auth.Secret }, Secret: true,
			Doc: "Key of HS256 tokens and guest tokens. Empty: 32 random bytes, generated once and kept in data_dir, with several nodes in the NATS servers' store. Write it into the environment or the file: a flag is seen in the list of processes."},
		{Key: "auth.jwks_url", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Auth.JWKSURL }, Secret: true,
			Doc: "Public keys of RS256 and ES256 tokens, as a JSON Web Key Set. Empty: only HS256 is accepted."},
		{Key: "auth.issuer", Unit: "text", Default: "", into: func(c *Config) any { return &c.Auth.Issuer },
			Doc: "What a token must say in iss, guests' excepted. Empty: anything. Name it where one provider signs for many products."},
		{Key: "auth.audience", Unit: "text", Default: "", into: func(c *Config) any { return &c.Auth.Audience },
			Doc: "What a token must say in aud, alone or among others, guests' excepted. Empty: anything."},
		{Key: "auth.leeway", Unit: "duration", Default: "2s", into: func(c *Config) any { return &c.Auth.Leeway }, check: between(time.Second, 5*time.Minute),
			Doc: "How far the clock of who signs tokens may be off: a token is good for so long before nbf and after exp. 1s to 5m."},
		{Key: "auth.guests", Unit: "true or false", Default: "true", into: func(c *Config) any { return &c.Auth.Guests },
			Doc: "Whether a viewer without a token comes in as a guest."},
		{Key: "origins", Unit: "list of scheme://host[:port]", Default: "", into: func(c *Config) any { return &c.Origins },
			Doc: "Web origins, other than the server's own, whose pages may open sockets, call the API and load the client file."},
		{Key: "trusted_proxies", Unit: "list of addresses or CIDR", Default: "", into: func(c *Config) any { return &c.TrustedProxies },
			Doc: "Proxies whose X-Forwarded-For is believed, walked from the right. Empty: the peer's address counts."},
		{Key: "proxy_protocol", Unit: "true or false", Default: "false", into: func(c *Config) any { return &c.ProxyProtocol },
			Doc: "Whether connections of trusted_proxies to addr begin with a PROXY protocol header, version 2, which says who they are of. One without it is cut, one from elsewhere is believed nothing."},
		{Key: "rooms.auto_create", Unit: "true or false", Default: "true", into: func(c *Config) any { return &c.Rooms.AutoCreate },
			Doc: "Whether joining an unknown room creates it. Off: only PUT /api/v1/rooms/{room} does."},
		{Key: "rooms.create_rate", Unit: "rooms per second", Default: "5", into: func(c *Config) any { return &c.Rooms.CreateRate }, check: between(0, 100_000),
			Doc: "How fast one network (/24, /48) may create rooms by joining them, after 40 seconds' worth at once. 0: unbounded."},
		{Key: "rooms.max", Unit: "number", Default: "10000", into: func(c *Config) any { return &c.Rooms.Max }, check: between(1, 1_000_000),
			Doc: "Live rooms this node holds at most."},
		{Key: "rooms.idle", Unit: "duration", Default: "1m", into: func(c *Config) any { return &c.Rooms.Idle }, check: between(time.Second, 24*time.Hour),
			Doc: "How long an empty room stays in memory."},
		{Key: "rooms.tick", Unit: "duration", Default: "25ms", into: func(c *Config) any { return &c.Rooms.Tick }, check: between(time.Millisecond, time.Second),
			Doc: "How long a room gathers messages for one frame. The first after a quiet tick leaves at once."},
		{Key: "rooms.behind", Unit: "duration", Default: "40ms", into: func(c *Config) any { return &c.Rooms.Behind }, check: between(10*time.Millisecond, time.Hour),
			Doc: "How late this node may come to what viewers send before it gives things up, ticks first and newcomers last. Raise it where the processor is throttled or shared with what is none of its load."},
		{Key: "rooms.text_graphemes", Unit: "characters", Default: "100", into: func(c *Config) any { return &c.Rooms.TextGraphemes }, check: between(1, 500),
			Doc: "Longest danmaku, in grapheme clusters; 1 KiB in any case."},
		{Key: "rooms.followed_attribute", Unit: "name", Default: "", into: func(c *Config) any { return &c.Rooms.Followed },
			Doc: "The attribute (of protocol.attributes) that says since when a user follows the room, in Unix seconds, so that a host may let followers alone speak. Empty: no room can."},
		{Key: "rooms.account_attribute", Unit: "name", Default: "", into: func(c *Config) any { return &c.Rooms.Account },
			Doc: "The attribute (of protocol.attributes) that says when a user's account was made, in Unix seconds: shields take accounts of less than seven days for newcomers', and older ones for nobody's. Empty, or where a user has none: who came into the room less than ten minutes ago is one."},
		{Key: "gifts.authority", Unit: "backend, hook or open", Default: GiftsByBackend, into: func(c *Config) any { return &c.Gifts.Authority }, check: oneOf(GiftsByBackend, GiftsByHook, GiftsOpen),
			Doc: "Who pays for gifts. backend: they come by the HTTP API with a service token, and a socket's is refused. hook: a user's socket may send them, and hooks.gift is asked first. open: anybody's may, guests too, and nothing is charged: for a demonstration."},
		{Key: "gifts.catalogue", Unit: "list of gifts", Default: defaultGifts, into: func(c *Config) any { return &c.Gifts.Catalogue },
			Doc: "The catalogue: id, name, names.en, names.zh, price, icon. In force until somebody changes it by PUT /api/v1/gifts; then it counts no more. Its former name, gifts, counts too."},
		{Key: "hooks.secrets", Unit: "list of secrets", Default: "", into: func(c *Config) any { return &c.Hooks.Secrets }, Secret: true,
			Doc: "What calls of the platform are signed by (Standard Webhooks), each whsec_ and the base64 of 24 to 64 random bytes. Several while they are changed: each call is signed by all."},
		{Key: "hooks.plain_http", Unit: "never, loopback or private", Default: hook.PlainLoopback, into: func(c *Config) any { return &c.Hooks.Plain }, check: oneOf(hook.PlainNever, hook.PlainLoopback, hook.PlainPrivate),
			Doc: "Where hooks may go over plain HTTP: to this machine, or to private addresses too. Anywhere else only by HTTPS."},
		{Key: "hooks.ca", Unit: "file", Default: "", into: func(c *Config) any { return &c.Hooks.CA },
			Doc: "Certificates that the hooks' servers are checked against, PEM. Empty: the system's."},
		{Key: "hooks.in_flight", Unit: "number", Default: "64", into: func(c *Config) any { return &c.Hooks.InFlight }, check: between(1, 10_000),
			Doc: "Calls of one hook that this node has under way at most."},
		{Key: "hooks.waiting", Unit: "number", Default: "256", into: func(c *Config) any { return &c.Hooks.Waiting }, check: between(0, 100_000),
			Doc: "Calls of one hook that wait for one of these places at most; more are not made."},
		{Key: "hooks.gift.url", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Hooks.Gift.URL }, Secret: true,
			Doc: "What is asked whether a socket's gift is paid for, and told what became of it (docs/integrate.md). Needed where gifts.authority is hook."},
		{Key: "hooks.gift.timeout", Unit: "duration", Default: "1500ms", into: func(c *Config) any { return &c.Hooks.Gift.Timeout }, check: between(50*time.Millisecond, 2*time.Second),
			Doc: "How long the platform may take for one answer, tries and waiting included. 50ms to 2s; then the gift is refused, and what was reserved is given back."},
		{Key: "hooks.join.url", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Hooks.Join.URL }, Secret: true,
			Doc: "What is asked who may come in, as what role, with which attributes, and muted or not. Empty: nobody is asked."},
		{Key: "hooks.join.timeout", Unit: "duration", Default: "500ms", into: func(c *Config) any { return &c.Hooks.Join.Timeout }, check: between(10*time.Millisecond, 2*time.Second),
			Doc: "How long the platform may take for one answer, tries and waiting included. 10ms to 2s."},
		{Key: "hooks.join.on_timeout", Unit: "refuse or allow", Default: WithoutRefuse, into: func(c *Config) any { return &c.Hooks.Join.OnTimeout }, check: oneOf(WithoutRefuse, WithoutAllow),
			Doc: "What happens where there is no answer: come back in a moment (4003), or come in as the token says."},
		{Key: "hooks.danmaku.url", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Hooks.Danmaku.URL }, Secret: true,
			Doc: "What is asked about each danmaku of a socket before it is shown, a room's of one tick at once. Empty: nobody is asked."},
		{Key: "hooks.danmaku.timeout", Unit: "duration", Default: "150ms", into: func(c *Config) any { return &c.Hooks.Danmaku.Timeout }, check: between(10*time.Millisecond, 2*time.Second),
			Doc: "How long the platform may take for one answer, tries and waiting included: danmaku are late by so much and a tick at most. 10ms to 2s."},
		{Key: "hooks.danmaku.on_timeout", Unit: "allow, sender_only or hold", Default: WithoutAllow, into: func(c *Config) any { return &c.Hooks.Danmaku.OnTimeout }, check: oneOf(WithoutAllow, WithoutSenderOnly, WithoutHold),
			Doc: "What happens where there is no answer: it is shown, to its sender alone, or held until the room's staff has decided."},
		{Key: "protocol.attributes", Unit: "list of names", Default: "", into: func(c *Config) any { return &c.Protocol.Attributes }, check: attributes,
			Doc: "What may be said of a user beside name and role, by the attrs of a token or of a call, each a-z 0-9 _, the same on all nodes. The pages show level, badge and fan_club. Empty: nothing, and a token's attrs are not looked at."},
		{Key: "events.types", Unit: "list of identifiers", Default: "", into: func(c *Config) any { return &c.Events.Types }, check: eventTypes,
			Doc: "The types of custom events that the platform may send over the HTTP API, each 1 to 64 of A-Z a-z 0-9 _ . : @ -, the same on all nodes. Empty: there are none."},
		{Key: "events.danmaku", Unit: "on or off", Default: EventsOn, into: func(c *Config) any { return &c.Events.Danmaku }, check: oneOf(EventsOn, EventsOff),
			Doc: "Whether danmaku are kept on disk for back ends that read them (GET /api/v1/events), beside all else. The same on all nodes."},
		{Key: "events.danmaku_age", Unit: "duration", Default: "168h", into: func(c *Config) any { return &c.Events.DanmakuAge }, check: between(time.Minute, 366*24*time.Hour),
			Doc: "How long. 1m to 8784h."},
		{Key: "events.danmaku_size", Unit: "MiB", Default: "4096", into: func(c *Config) any { return &c.Events.DanmakuSize }, check: between(16, 1<<20),
			Doc: "How much of the disk they take at most; the oldest go first, and readers are told."},
		{Key: "events.gift_age", Unit: "duration", Default: "720h", into: func(c *Config) any { return &c.Events.GiftAge }, check: between(24*time.Hour, 39*24*time.Hour),
			Doc: "How long gifts stay in the ledger. 24h to 936h."},
		{Key: "events.gift_size", Unit: "MiB", Default: "4096", into: func(c *Config) any { return &c.Events.GiftSize }, check: between(16, 1<<20),
			Doc: "How much of the disk the ledger takes at most; then gifts are refused, with an alert at 80 %."},
		{Key: "events.sessions", Unit: "on or off", Default: EventsOff, into: func(c *Config) any { return &c.Events.Sessions }, check: oneOf(EventsOn, EventsOff),
			Doc: "Whether each join and leave is kept too, with its user. Off: how many there were, per room and ten seconds."},
		{Key: "webhooks", Unit: "list of endpoints", Default: "", into: func(c *Config) any { return &c.Webhooks }, Secret: true,
			Doc: "Where the events are delivered, signed by hooks.secrets (docs/integrate.md): name, url, and which rooms and kinds, all where there are none. The same on all nodes, one of which delivers."},
		{Key: "limits.file", Unit: "file", Default: "", into: func(c *Config) any { return &c.Limits.File },
			Doc: "Limit rules, YAML. Empty: the rules that ship."},
		{Key: "limits.source", Unit: "cluster or file", Default: SourceCluster, into: func(c *Config) any { return &c.Limits.Source }, check: oneOf(SourceFile, SourceCluster),
			Doc: "Who owns the rules: cluster (the store; limits.file only seeds an empty one), or file (read again when it changes; the API refuses changes)."},
		{Key: "sessions.max", Unit: "number", Default: "100000", into: func(c *Config) any { return &c.Sessions.Max }, check: between(1, 10_000_000),
			Doc: "Sockets this node holds at most; more are told to come back (4003)."},
		{Key: "sessions.max_memory", Unit: "MiB", Default: "0", into: func(c *Config) any { return &c.Sessions.MaxMemory }, check: between(0, 1<<30),
			Doc: "Memory this process should stay below; from three quarters of it on new sockets are told to come back (4003). 0: GOMEMLIMIT, else nine tenths of the container's limit, else unbounded."},
		{Key: "sessions.heartbeat", Unit: "duration", Default: "25s", into: func(c *Config) any { return &c.Sessions.Heartbeat }, check: between(time.Second, 10*time.Minute),
			Doc: "Time between protocol pings; a socket that misses two is gone."},
		{Key: "sessions.hello_timeout", Unit: "duration", Default: "8s", into: func(c *Config) any { return &c.Sessions.HelloTimeout }, check: between(100*time.Millisecond, time.Minute),
			Doc: "How long a new socket may take to say hello."},
		{Key: "sessions.write_timeout", Unit: "duration", Default: "10s", into: func(c *Config) any { return &c.Sessions.WriteTimeout }, check: between(100*time.Millisecond, time.Minute),
			Doc: "How long a viewer may accept no byte before it is cut off as slow."},
		{Key: "compression", Unit: "off, auto or on", Default: CompressionAuto, into: func(c *Config) any { return &c.Compression }, check: oneOf(CompressionOff, CompressionAuto, CompressionOn),
			Doc: "permessage-deflate, one deflated frame for all viewers of a room. auto: where 16 viewers or more take it; a busy room then gathers up to 100ms for a frame. on: the same from the first viewer."},
		{Key: "drain_delay", Unit: "duration", Default: "0s", into: func(c *Config) any { return &c.DrainDelay }, check: between(0, 10*time.Minute),
			Doc: "How long after SIGTERM this node serves as before while /readyz already says 503: what balancers need to notice."},
		{Key: "drain_timeout", Unit: "duration", Default: "10s", into: func(c *Config) any { return &c.DrainTimeout }, check: between(0, 10*time.Minute),
			Doc: "Over how long sockets are sent away after SIGTERM."},
		{Key: "print_tokens", Unit: "auto, always or never", Default: PrintAuto, into: func(c *Config) any { return &c.PrintTokens }, check: oneOf(PrintAuto, PrintAlways, PrintNever),
			Doc: "Whether the addresses printed at start carry a host's and an admin's token, good for 12 hours; auto: on a terminal only."},
		{Key: "tracing.endpoint", Unit: "URL", Default: "", into: func(c *Config) any { return &c.Tracing.Endpoint }, check: receiver,
			Doc: "Where traces of API calls, gifts, hooks and store calls are sent, OTLP over HTTP, such as http://localhost:4318; /v1/traces unless it has a path. Empty: nowhere."},
		{Key: "tracing.headers", Unit: "list of name=value", Default: "", into: func(c *Config) any { return &c.Tracing.Headers }, check: headers, Secret: true,
			Doc: "Headers that are sent along, such as a key; in a value %20 is a space, and %25 a percent sign."},
		{Key: "tracing.sample", Unit: "0 to 1", Default: "0.1", into: func(c *Config) any { return &c.Tracing.Sample }, check: share,
			Doc: "The share of the traces begun here that are sent. A caller of the API with a token decides by its traceparent."},
		{Key: "tracing.service", Unit: "text", Default: "liveroom", into: func(c *Config) any { return &c.Tracing.Service }, check: text("a name", func(s string) bool { return s != "" }),
			Doc: "The service's name in traces."},
		{Key: "log.level", Unit: "debug, info, warn or error", Default: "info", into: func(c *Config) any { return &c.Log.Level }, check: oneOf("debug", "info", "warn", "error"),
			Doc: "The least important lines to write to standard error. Read again on SIGHUP."},
		{Key: "log.format", Unit: "json or text", Default: "json", into: func(c *Config) any { return &c.Log.Format }, check: oneOf("json", "text"),
			Doc: "How log lines look."},
		{Key: "log.slow", Unit: "duration", Default: "1s", into: func(c *Config) any { return &c.Log.Slow }, check: between(0, time.Minute),
			Doc: "How long an API call, a gift, a hook, a call of NATS or Redis or a room's tick may take before a line tells of it. 0 to 1m; 0: none does."},
	}
}

// defaultGifts is the small catalogue that ships, priced in the platform's own unit.
const defaultGifts = `[
{id: rose, name: Rose, names: {en: Rose, zh: 玫瑰}, price: 1, icon: 🌹},
{id: tea, name: Tea, names: {en: Tea, zh: 热茶}, price: 5, icon: 🍵},
{id: lantern, name: Sky lantern, names: {en: Sky lantern, zh: 孔明灯}, price: 20, icon: 🏮},
{id: fireworks, name: Fireworks, names: {en: Fireworks, zh: 烟花}, price: 99, icon: 🎆},
{id: rocket, name: Rocket, names: {en: Rocket, zh: 火箭}, price: 500, icon: 🚀},
{id: whale, name: Star whale, names: {en: Star whale, zh: 星鲸}, price: 2000, icon: 🐋}]`

// Changed lists the keys of which two configurations have different values.
func Changed(a, b Config) (keys []string) {
	for _, s := range Settings() {
		if !reflect.DeepEqual(s.into(&a), s.into(&b)) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}
