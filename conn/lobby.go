package conn

import (
	"context"

	"liveroom/protocol"
)

// Lobby seats sessions. It must be safe for concurrent use.
type Lobby interface {
	// Hello is called in the session's own goroutine with its first frame, which has the right shape. It returns the
	// session's seat, or why the socket is to be closed. Deliveries that a room makes after it knows the session are held
	// until [Session.Open]. ctx ends after [Config.HelloTimeout], or when the acceptor is stopped. r is reused after Hello
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
