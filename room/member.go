package room

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/audience"
)

// Member is one session in a room. Receive is called from one goroutine at a time, Leave from any.
type Member struct {
	// fixed
	id       string // of the session
	session  Session
	room     *Room
	user     *User
	place    *place
	conn     *limit.Subject
	networks []*limit.Subject
	addr     netip.Addr
	device   string // the page's note
	lang     protocol.Lang
	spot     audience.Spot
	joined   limit.Instant // what the gate was asked with
	since    int64         // the same, Unix ms: read once, since how far apart the clocks are is measured anew
	joinedAs protocol.Role
	traits   *limit.Traits // as it joined
	granted  Grant         // by the platform, beside what its tokens say

	given sync.WaitGroup // gifts that wait for their answers

	who  atomic.Pointer[Identity]
	left atomic.Bool

	marks atomic.Pointer[marks] // nil: nobody has asked

	// mu guards the timer against a refresh that crosses Leave. A leaf.
	mu     lock.Mutex[lock.Leaf]
	expiry *time.Timer // closes the session when its token ends; nil for a token without end
}

// Room is the room that the member is in.
func (m *Member) Room() *Room { return m.room }

// User is the member's user.
func (m *Member) User() *User { return m.user }

// Spot implements [audience.Viewer].
func (m *Member) Spot() *audience.Spot { return &m.spot }

// Deliver implements [audience.Viewer].
func (m *Member) Deliver(b *protocol.Broadcast) { m.session.Deliver(b) }

// Release implements [audience.Viewer].
func (m *Member) Release() { m.session.Release() }

// Receive handles one frame after the hello and answers it through the session.
func (m *Member) Receive(req *protocol.Request) {
	switch req.Op {
	case protocol.OpPing:
		m.session.Control(protocol.AppendPong(nil, req.ID, m.room.hub.cfg.Now().UnixMilli()))
		return
	case protocol.OpHello:
		m.answer(protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "op: hello comes once, as the first frame"}))
		return
	case protocol.OpRefresh:
		m.answer(m.refresh(req))
		return
	}
	by := Speaker{who: m.who.Load(), user: m.user, place: m.place, conn: m.conn, networks: m.networks, addr: m.addr, echo: m.session}
	if req.Op == protocol.OpGift { // waits for the ledger, and what its sender says next does not
		m.given.Add(1)
		own := *req
		m.room.give(context.Background(), &by, &own, func(ack protocol.Ack) {
			if m.room.hub.overload.at.Load() != rungNormal {
				m.holdBehind(ack)
			} else {
				m.answer(ack)
			}
			m.given.Done()
		})
		return
	}
	ack := m.room.Handle(context.Background(), &by, req)
	c, kind := protocol.ClassOf(req.Op)
	switch behind := m.room.hub.overload.at.Load() != rungNormal; {
	case behind && kind && c.Kind().Yields != protocol.Never:
		m.holdBehind(ack)
	case kind && c.Kind().Live && ack.Code == protocol.OK && !ack.Duplicate:
		m.hold(ack)
		if !m.room.audience.OweSoon(m) {
			m.session.Release()
		}
	default:
		m.answer(ack)
	}
}

// holdBehind has an answer go along with the room's next flush, while the node is behind: a write(2) of its own would cost more than all
// the rest of a refusal.
func (m *Member) holdBehind(a protocol.Ack) {
	m.hold(a)
	m.room.audience.Owe(m)
}

// hold has an answer go along with what is sent next.
func (m *Member) hold(a protocol.Ack) {
	m.session.Hold(protocol.AppendAck(make([]byte, 0, 128), a, m.lang))
}

func (m *Member) answer(a protocol.Ack) {
	m.session.Control(protocol.AppendAck(make([]byte, 0, 128), a, m.lang))
}

// refresh takes a new token of the same user.
func (m *Member) refresh(req *protocol.Request) protocol.Ack {
	cfg := &m.room.hub.cfg
	if cfg.Verify == nil {
		return protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonUnavailable, Detail: "tokens can't be refreshed here"})
	}
	who, err := cfg.Verify(m.room.id, req.Token)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	if who.User != m.user.id {
		return protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "token: of another user"})
	}
	m.granted.to(&who)
	who.Muted = m.who.Load().Muted
	m.who.Store(&who)
	m.expireWithToken()
	return protocol.Ack{ID: req.ID, Code: protocol.OK, TS: cfg.Now().UnixMilli()}
}

// expireWithToken makes the session end with its token, unless the member has left.
func (m *Member) expireWithToken() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.expiry != nil {
		m.expiry.Stop()
		m.expiry = nil
	}
	if at := m.who.Load().Expires; !at.IsZero() && !m.left.Load() {
		m.expiry = time.AfterFunc(at.Sub(m.room.hub.cfg.Now()), m.expire)
	}
}

// expire closes the session unless its token was refreshed in this very moment.
func (m *Member) expire() {
	if m.room.hub.cfg.Now().Before(m.who.Load().Expires) { // also when the wall clock was set back meanwhile: the timer does not follow it
		m.expireWithToken()
		return
	}
	m.session.Close(protocol.Refusal{Code: protocol.CloseToken, Detail: "expired"})
}

// Who is who the member is in the room, by its last token and by what the room has decided. It must not be changed.
func (m *Member) Who() *Identity { return m.acting() }

func (m *Member) acting() *Identity { return m.room.acting(m.who.Load()) }

// Leave takes the member out of the room, once its gifts are answered. Only the first call does anything.
func (m *Member) Leave() {
	if m.left.Swap(true) {
		return
	}
	m.given.Wait()
	m.expireWithToken() // which stops what runs
	m.room.audience.Leave(m, m.room.unseat(m.user, m.place))
	m.room.crowds.count(m.addr, -1)
	m.room.departed.note(m, m.room.hub.cfg.Now())
	m.room.noteSession(m, "left", &m.room.visits.left)
	who := Identity{User: m.user.id, Role: m.joinedAs, Traits: m.traits}
	m.room.giveBack(m.joined, &Speaker{who: &who, user: m.user, place: m.place, conn: m.conn, networks: m.networks, addr: m.addr}, limit.Join, 1)
	m.room.hub.depart(m.user, m.place)
	m.room.hub.exit(m.room)
}
