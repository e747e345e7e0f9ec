package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"time"

	"liveroom/protocol"
)

// Subprotocol is the one WebSocket subprotocol that is selected when a client offers it.
const Subprotocol = "liveroom.v1"

// Lobby seats sessions. It must be safe for concurrent use.
type Lobby interface {
	// Hello is called in the session's own goroutine with its first frame, which has the right shape. It returns the
	// session's seat, or why the socket is to be closed. A session that gets a seat has been opened by then; deliveries that a
	// room makes after it knows the session are held until [Session.Open]. ctx ends after [Config.HelloTimeout], or when the acceptor is stopped. r is reused after Hello
	// has returned; its strings and its Resume may be kept.
	Hello(ctx context.Context, s *Session, r *protocol.Request) (Seat, *protocol.Refusal)
}

// Seat is a session's place in a room. Both methods are called in the session's own goroutine, never at the same time.
type Seat interface {
	// Receive handles one further frame and answers it through the session, exactly once when r.ID is set. While it
	// blocks, nothing more is read from the socket, and where it waits it does so in [Session.Await]. r is reused after Receive has returned; its strings may be kept.
	Receive(r *protocol.Request)
	// Leave is called exactly once, after the last Receive, as soon as the session is closing: it does not wait for the
	// peer.
	Leave()
}

// Arrival is what a socket holds from the moment it is admitted until it is closed.
type Arrival interface{ Leave() }

// Meter decides whether a frame may be spent, before it is decoded. It must be safe for concurrent use.
type Meter interface {
	// Frame returns nil, nil for a frame that may pass; an error that the client is told (429, scope conn) for one that is
	// refused; and a refusal when the session is to be closed (4005).
	Frame(s *Session) (*protocol.Error, *protocol.Refusal)
}

// Config holds the bounds of an acceptor and of each of its sessions. A field at zero takes its default; none of the
// bounds can be switched off, since each of them keeps one client from costing the others.
type Config struct {
	// Origins lists further origins whose pages may connect, as patterns of [path.Match] over the host ("*.example.com"),
	// or over scheme and host when the pattern has "://". The page's own host and clients that are no browsers always may.
	Origins []string

	MaxSessions int // sockets at a time; default 100,000
	MaxRefused  int // sockets at a time that are upgraded beyond it just to be told 4003; default 256. More get a bare 503

	// MaxReaders is how many sessions are read at a time (Linux): each holds a stack and buffers of some 12 KB until its message
	// is handled. Input beyond it waits in the kernel. Default 8,192.
	MaxReaders int
	// MaxWaiting is how many sessions' messages wait for something else than the viewer at a time, such as a store, on top of
	// those that are read, see [Session.Await]: a stack and a buffer each as well. Default 16,384.
	MaxWaiting int

	HelloTimeout   time.Duration // from the upgrade to the hello, and again for the lobby to answer it; default 8 s
	Heartbeat      time.Duration // of silence before a ping; default 25 s
	PongTimeout    time.Duration // from the ping to any whole frame; default 10 s
	MessageTimeout time.Duration // from a message's first byte to its last; default 10 s
	WriteTimeout   time.Duration // for the peer to take one step of the queue (64 KiB at most); default 10 s
	CloseTimeout   time.Duration // from the close frame to the end of the socket; default 5 s

	// A viewer whose queue holds QueueFrames or QueueBytes gets only gifts and control until it has caught up; at
	// HardFrames or HardBytes it is closed with 4001. Broadcasts' bytes are shared by all who wait for them.
	QueueFrames int // default 64
	QueueBytes  int // default 256 KiB
	HardFrames  int // default 256
	HardBytes   int // default 1 MiB

	// The lane of answers to this one session; over either bound it is closed with 4001.
	ControlFrames int // default 256
	ControlBytes  int // default 256 KiB

	// UnsentBytes is how much a socket may hold that is not on its way yet (Linux: TCP_NOTSENT_LOWAT), so that what is old
	// for a slow viewer waits in its queue, where it can be left out, and not in the kernel. Default 128 KiB.
	UnsentBytes int

	// Deflate lets clients negotiate permessage-deflate (RFC 7692), never with context takeover. Default: not.
	Deflate bool

	// Reconnect is how long a client that is sent away waits at least; each is told a time of its own between this and its
	// double. Default 2 s.
	Reconnect time.Duration

	// ClientAddr tells the address that limits apply to. Nil: the peer's own.
	ClientAddr func(*http.Request) netip.Addr
	// Ready tells whether this node takes sockets at all now, and otherwise when one may come back. Nil: always.
	Ready func() (retry time.Duration, ok bool)
	// Admit tells whether an address may connect now, and otherwise why not and when it may come back. The arrival is
	// left exactly once, when its socket is closed. Nil: every address may.
	Admit func(netip.Addr) (Arrival, *protocol.Error)

	Meter   Meter        // of frames; nil: every frame may pass
	Metrics *Metrics     // nil: counted, and shown to nobody
	Logger  *slog.Logger // nil: nothing is logged
}

func (c Config) withDefaults() Config {
	def(&c.MaxSessions, 100_000)
	def(&c.MaxRefused, 256)
	def(&c.MaxReaders, 8192)
	def(&c.MaxWaiting, 16384)
	def(&c.HelloTimeout, 8*time.Second)
	def(&c.Heartbeat, 25*time.Second)
	def(&c.PongTimeout, 10*time.Second)
	def(&c.MessageTimeout, 10*time.Second)
	def(&c.WriteTimeout, 10*time.Second)
	def(&c.CloseTimeout, 5*time.Second)
	def(&c.QueueFrames, 64)
	def(&c.QueueBytes, 256<<10)
	def(&c.HardFrames, 256)
	def(&c.HardBytes, 1<<20)
	def(&c.ControlFrames, 256)
	def(&c.ControlBytes, 256<<10)
	def(&c.UnsentBytes, 128<<10)
	def(&c.Reconnect, 2*time.Second)
	if c.ClientAddr == nil {
		c.ClientAddr = peerAddr
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func def[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Validate returns every fault at once, each with the name of its field; nil when there is none. Fields at zero are
// judged by their defaults.
func (c Config) Validate() error {
	d := c.withDefaults()
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for _, p := range d.Origins {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			fault("Origins: %q is no pattern", p)
		}
	}
	for _, f := range []struct {
		name string
		v    int
	}{
		{"MaxSessions", d.MaxSessions}, {"MaxRefused", d.MaxRefused}, {"MaxReaders", d.MaxReaders}, {"MaxWaiting", d.MaxWaiting}, {"QueueFrames", d.QueueFrames}, {"QueueBytes", d.QueueBytes},
		{"HardFrames", d.HardFrames}, {"HardBytes", d.HardBytes}, {"ControlFrames", d.ControlFrames}, {"ControlBytes", d.ControlBytes},
		{"UnsentBytes", d.UnsentBytes},
	} {
		if f.v < 0 {
			fault("%s: %d is negative", f.name, f.v)
		}
	}
	for _, f := range []struct {
		name string
		v    time.Duration
	}{
		{"HelloTimeout", d.HelloTimeout}, {"Heartbeat", d.Heartbeat}, {"PongTimeout", d.PongTimeout}, {"MessageTimeout", d.MessageTimeout},
		{"WriteTimeout", d.WriteTimeout}, {"CloseTimeout", d.CloseTimeout}, {"Reconnect", d.Reconnect},
	} {
		if f.v < time.Millisecond {
			fault("%s: %v is below a millisecond", f.name, f.v)
		}
	}
	if d.HardFrames < d.QueueFrames {
		fault("HardFrames: %d is below QueueFrames (%d)", d.HardFrames, d.QueueFrames)
	}
	if d.HardBytes < d.QueueBytes {
		fault("HardBytes: %d is below QueueBytes (%d)", d.HardBytes, d.QueueBytes)
	}
	return errors.Join(faults...)
}

// peerAddr reads the address of the other end of the connection.
func peerAddr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
