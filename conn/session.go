package conn

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Session is one viewer's socket. It is made by an [Acceptor] and safe for concurrent use.
type Session struct {
	// fixed after construction
	a          *Acceptor
	id         string
	addr       netip.Addr
	arrival    Arrival // nil without Config.Admit
	nc         net.Conn
	order      int  // descriptor at birth
	turnedAway bool // upgraded only to be told why not
	deflate    bool // permessage-deflate was negotiated
	count      *counters
	born       time.Duration // on the acceptor's clock

	// safe for concurrent use by themselves
	limits limit.Subject
	abuse  limit.Abuse

	// owned by the read loop; when the session rests, by whoever ends the rest
	lang     protocol.Lang // fixed once the hello is decoded
	seat     Seat
	left     bool            // the room is behind it, only the end of the socket is ahead
	raw      syscall.RawConn // for reads that do not wait; nil when the session can't rest
	at       inflow
	msg      *scratch // of the message or frame that has begun; nil between two
	kept     int      // bytes of it that count among the acceptor's
	prefix   []byte   // what net/http had read of the client's frames
	awaiting bool     // its turn waits for something else than the peer
	thrown   int      // bytes that came behind the close frame
	watched  bool     // the poller knows it
	dry      bool     // the socket holds nothing more until the next event
	hangup   bool     // the peer's end of the stream was announced

	// owned by the sweeper
	pinged time.Duration // when the last ping was sent; 0: none yet
	armed  bool          // the next visit is to send the first ping
	// guarded by wheel.mu
	next, prev *Session
	slot       int32

	seen  atomic.Int64 // when the last whole frame came, on the acceptor's clock
	begun atomic.Int64 // when the message that is being read began, likewise
	phase atomic.Uint32

	mu sync.Mutex
	// guarded by mu
	fd      int // for write(2); -1 when the conn has none, or not any more
	q       *queue
	opened  bool // Open was called
	writing bool // a writer goroutine owns the wire
	closing bool // a close frame is queued or sent: nothing may follow it
	failed  bool // the wire is broken: closing, and no close frame will pass
	closed  bool // the socket is closed
	code    protocol.CloseCode
	until   time.Duration // end of the closing handshake, on the acceptor's clock
	missed  uint64        // danmaku left out so far
	held    []byte        // events that go with whatever is sent next
	parked  bool          // it rests: no goroutine reads
	input   bool          // it was announced while a goroutine was reading
	hup     bool          // so was the end of it

	ticket int32 // guarded by poller.mu
}

// Phases of the read loop, as the sweeper needs them.
const (
	phaseGreeting uint32 = iota // no hello yet
	phaseWaiting                // between messages
	phaseMessage                // inside a message
	phaseHandling               // the lobby or the seat has the turn
)

// ID is unique over nodes and restarts, 11 characters.
func (s *Session) ID() string { return s.id }

// Addr is the client's address as [Config.ClientAddr] told it; the zero Addr when it is unknown.
func (s *Session) Addr() netip.Addr { return s.addr }

// Arrival is what [Config.Admit] gave the socket.
func (s *Session) Arrival() Arrival { return s.arrival }

// Seat is what the lobby gave the session, nil before its hello. It is for the [Meter], in the session's own goroutine.
func (s *Session) Seat() Seat { return s.seat }

// Lang is the language of the hello, else of Accept-Language. It is settled before [Lobby.Hello] is called.
func (s *Session) Lang() protocol.Lang { return s.lang }

// Subject returns the connection's own buckets.
func (s *Session) Subject() *limit.Subject { return &s.limits }

// Abuse returns the memory of what the connection was refused, for a [Meter] that ends repeated abuse.
func (s *Session) Abuse() *limit.Abuse { return &s.abuse }

// Order sorts sessions so that writing to them one after the other is cheap: descriptors that are close together share
// the kernel's cache lines. It never changes; 0 when the socket has no descriptor of its own.
func (s *Session) Order() int { return s.order }

// Stats are a session's figures at one instant.
type Stats struct {
	QueuedFrames int    // broadcasts that wait for the socket
	QueuedBytes  int    // of those; shared with everybody who waits for the same ones
	Missed       uint64 // danmaku that were left out so far
}

// Stats returns the session's figures.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Missed: s.missed}
	if s.q != nil {
		st.QueuedFrames, st.QueuedBytes = s.q.frames, s.q.bytes
	}
	return st
}

// check holds the flags to one another.
func (s *Session) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkLocked()
}
