package config

import (
	"net/netip"
	"net/url"
	"strings"
	"time"

	"liveroom/protocol"
)

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
	Auth           Auth
	Origins        []string
	AdminHosts     []string
	TrustedProxies []netip.Prefix
	ProxyProtocol  bool
	Rooms          Rooms
	Gifts          Gifts
	Hooks          Hooks
	Limits         Limits
	Sessions       Sessions
	Compression    string
	DrainTimeout   time.Duration
	PrintTokens    string
	Log            Log
}

// TLS names the files of the main listener's certificate.
type TLS struct {
	Cert string
	Key  string
}

// Enabled reports whether the main listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

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

// Hooks says where and how the platform is asked.
type Hooks struct {
	Secrets  []string
	Plain    string
	CA       string
	InFlight int
	Waiting  int
	Gift     Hook
}

// Hook is one address of the platform.
type Hook struct {
	URL     string
	Timeout time.Duration
}

// Rooms bounds what rooms there may be and what is said in them.
type Rooms struct {
	AutoCreate    bool
	CreateRate    int
	Max           int
	Idle          time.Duration
	Tick          time.Duration
	TextGraphemes int
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

// Log says what the server writes to standard error.
type Log struct {
	Level  string
	Format string
}

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
