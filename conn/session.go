package conn

import (
	"net"
	"net/netip"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// Session is one viewer's socket. It is made by an [Acceptor] and safe for concurrent use. What it is at is told by two
// states: its stage and its turn.
type Session struct {
	// fixed after construction
	a          *Acceptor
	id         string
	addr       netip.Addr
	arrival    Arrival // nil without Config.Admit
	nc         net.Conn
	order      int  // descriptor at birth
	turnedAway bool // upgraded only to be told why not

	// safe for concurrent use by themselves
	limits limit.Subject
	abuse  limit.Abuse

	pulse  pulse
	timer  timer
	reader reader

	mu lock.Mutex[lock.Session]
	// guarded by mu
	stage stage
	turn  turn
	wire  wire
	end   end
}

// ID is unique over nodes and restarts, 11 characters.
func (s *Session) ID() string { return s.id }

// Addr is the client's address as [Config.ClientAddr] told it; the zero Addr when it is unknown.
func (s *Session) Addr() netip.Addr { return s.addr }

// Arrival is what [Config.Admit] gave the socket.
func (s *Session) Arrival() Arrival { return s.arrival }

// Seat is what the lobby gave the session, nil before its hello. It is for the [Meter], in the session's own goroutine.
func (s *Session) Seat() Seat { return s.reader.seat }

// Lang is the language of the hello, else of Accept-Language. It is settled before [Lobby.Hello] is called.
func (s *Session) Lang() protocol.Lang { return s.reader.lang }

// Subject returns the connection's own buckets.
func (s *Session) Subject() *limit.Subject { return &s.limits }

// Abuse returns the memory of what the connection was refused, for a [Meter] that ends repeated abuse.
func (s *Session) Abuse() *limit.Abuse { return &s.abuse }

// Deflates reports whether the client has negotiated permessage-deflate. It never changes.
func (s *Session) Deflates() bool { return s.reader.frames.Deflate }

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
	st := Stats{Missed: s.wire.missed}
	if q := s.wire.q; q != nil {
		st.QueuedFrames, st.QueuedBytes = q.frames, q.bytes
	}
	return st
}
