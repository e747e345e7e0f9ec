package room

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Identity is who somebody has proved to be, in one room.
type Identity struct {
	User    string // valid by protocol.ValidUser
	Name    string // as viewers see it
	Role    protocol.Role
	Attrs   protocol.Attrs
	Traits  *limit.Traits // of the attributes
	Expires time.Time     // of the proof; zero: never
	Born    time.Time     // when a guest was named; zero: not known
	Muted   int64         // until when the platform lets it say nothing in the room, Unix ms; 0: it does
	Proof   uint64        // tells proofs apart, for [Hub.Disconnect]
}

// Guest reports whether the server named the user itself.
func (i *Identity) Guest() bool { return strings.HasPrefix(i.User, protocol.GuestPrefix) }

// shown is who others see.
func (i *Identity) shown() protocol.User {
	return protocol.User{ID: i.User, Name: i.Name, Role: i.Role, Attrs: i.Attrs}
}

// Speaker is somebody who asks something of a room: a member, or a platform's back end for a user.
type Speaker struct {
	who   *Identity
	user  *User
	place *place
	conn  *limit.Subject // nil without a connection
	// networks are the address and the network around it; none for somebody for whom a back end speaks.
	networks []*limit.Subject
	addr     netip.Addr
	echo     Control // takes what only the speaker shall see; nil: nobody does
}

// socket reports whether the speaker speaks for itself.
func (by *Speaker) socket() bool { return by.conn != nil }

// Caller is a user for whom somebody else speaks over HTTP.
type Caller struct {
	Who  Identity
	Addr netip.Addr // for rules that exempt networks
	// Create is asked before a room comes to be that nobody has seen before. Nil: it may.
	Create func() *protocol.Error
}

// Speak handles a request that does not come from a member. req needs an ID, and its Op is danmaku, gift, like or
// moderate. The room is opened when it is not open on this node.
func (h *Hub) Speak(ctx context.Context, room string, c Caller, req *protocol.Request) protocol.Ack {
	r, err := h.enter(ctx, room, c.Create)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	defer h.exit(r)
	u, p, err := h.attach(r, c.Who.User)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	defer h.detach(u, p)
	return r.Handle(ctx, &Speaker{who: &c.Who, user: u, place: p, addr: c.Addr}, req)
}

// attach counts a user in and finds its place in a room, until detach.
func (h *Hub) attach(r *Room, user string) (*User, *place, *protocol.Error) {
	u := h.user(user)
	if u == nil {
		return nil, nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this node has no place for another user"}
	}
	p := u.enter(h.gate.Now(), r.id)
	if p == nil {
		h.forgo(u)
		return nil, nil, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this user is in too many rooms"}
	}
	return u, p, nil
}

func (h *Hub) detach(u *User, p *place) {
	u.leave(p)
	h.forgo(u)
}

// depart is detach for a member. With a user's last one here, its buckets go back to what the nodes share, so that the
// node it comes to next finds their levels there and need not ask this one. Somebody for whom a back end speaks has no
// home: giving back after each call would cost more than it saves.
func (h *Hub) depart(u *User, p *place) {
	h.detach(u, p)
	now := h.gate.Now()
	u.mu.Lock()
	lastHere := p.refs == 0
	u.mu.Unlock()
	if lastHere {
		p.subject.Leave(now)
	}
	h.mu.Lock()
	last := u.refs == 0
	h.mu.Unlock()
	if last {
		u.subject.Leave(now)
	}
}

// await runs f, which waits for a store, or for a message's turn, so that the speaker's socket holds nothing meanwhile that others
// need. False: too many wait already, and f did not run.
func (by *Speaker) await(f func()) bool {
	if by.echo == nil {
		f()
		return true
	}
	return by.echo.Await(f)
}

// answered is the answer of f, see [Speaker.await].
func (by *Speaker) answered(req *protocol.Request, f func() protocol.Ack) protocol.Ack {
	ack := protocol.Refuse(req.ID, later(req.Op, ""))
	by.await(func() { ack = f() })
	return ack
}

// aside runs f, which waits for something, while the speaker's socket is read on. False: too many wait already, and f did not run.
func (by *Speaker) aside(f func()) bool {
	if by.echo == nil {
		f()
		return true
	}
	return by.echo.Aside(f)
}
