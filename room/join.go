package room

import (
	"context"
	"math/rand/v2"
	"net/netip"

	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
)

// JoinRequest is what the wiring knows of a session that said hello.
type JoinRequest struct {
	Session   Session
	SessionID string
	Order     int  // of the socket among all, its descriptor
	Deflates  bool // the session takes deflated frames
	Conn      *limit.Subject
	Addr      netip.Addr
	// Networks are the buckets of the address and of the network around it, in the order of scopes; the caller keeps
	// them until the member has left.
	Networks []*limit.Subject
	Lang     protocol.Lang

	Hello      *protocol.Request // its ID, Room and Resume are read
	Who        Identity
	GuestToken string // told in the welcome
	// Create is asked before a room comes to be that nobody has seen before. Nil: it may.
	Create func() *protocol.Error
}

// Join seats a session in its room, opens the room when need be, and hands the session its welcome with what was said
// lately. From its return on the member is the caller's to leave. A refusal says how the socket is to be closed.
func (h *Hub) Join(ctx context.Context, j JoinRequest) (*Member, *protocol.Refusal) {
	r, err := h.enter(ctx, j.Hello.Room, j.Create)
	if err != nil {
		return nil, refusal(err)
	}
	m, v, err := r.admit(&j)
	if err != nil {
		h.exit(r)
		return nil, refusal(err)
	}
	m.expireWithToken()
	j.Session.Open(r.welcome(ctx, m, &j, v))
	r.remember(ctx, &j.Who)
	return m, nil
}

// refusal turns an error into the end of a session.
func refusal(err *protocol.Error) *protocol.Refusal {
	switch err.Reason {
	case protocol.ReasonNotFound:
		return &protocol.Refusal{Code: protocol.CloseNoRoom}
	case protocol.ReasonBanned:
		return &protocol.Refusal{Code: protocol.CloseForbidden, Detail: "banned"}
	case protocol.ReasonForbidden:
		return &protocol.Refusal{Code: protocol.CloseForbidden, Detail: err.Rule}
	}
	// Where the wait is short, as for a room of thousands, all would come back within the same few milliseconds.
	spread := openRetry + rand.N(openRetry)
	if err.Reason != protocol.ReasonRateLimited { // no rule refused: it could not be judged, or there is no place
		return &protocol.Refusal{Code: protocol.CloseOverloaded, Reconnect: max(err.RetryAfter, spread), Detail: string(err.Reason)}
	}
	return &protocol.Refusal{
		Code: protocol.CloseOverloaded, Reconnect: max(err.RetryAfter, spread), Scope: err.Scope, Rule: err.Rule, Detail: err.Rule,
	}
}

// view is the room at the instant of a join: what is not in it reaches the member live.
type view struct {
	online int
	likes  int64
	gift   uint64   // sequence of the last gift that is not to come live
	recent [][]byte // danmaku that are not to come live
	chat   int64    // ts of the newest of all danmaku so far that are not to come live, 0 for none
	last   string   // its mid, "" for none
	whole  bool     // recent has all danmaku since the last one that the member saw
}

// admit asks the gate and seats the member.
func (r *Room) admit(j *JoinRequest) (*Member, view, *protocol.Error) {
	h := r.hub
	if left, yes := r.policy.Load().banned.in(&j.Who, h.cfg.Now().UnixMilli()); yes {
		return nil, view{}, sanctionedFor(protocol.ReasonBanned, left)
	}
	u, p, err := h.seat(r, j.Who.User)
	if err != nil {
		return nil, view{}, err
	}
	by := Speaker{who: &j.Who, user: u, place: p, conn: j.Conn, networks: j.Networks, addr: j.Addr}
	now := h.gate.Now()
	if d := r.ask(now, &by, limit.Join, 1); d.Verdict != limit.Allow {
		if d.Verdict == limit.Degrade { // half a join is none
			r.release(now, &by, limit.Join, 1)
		}
		h.unseat(u, p)
		return nil, view{}, admit.Error(protocol.ReasonRateLimited, d)
	}
	m := &Member{
		session: j.Session, room: r, user: u, place: p, conn: j.Conn, networks: j.Networks, addr: j.Addr, lang: j.Lang, descriptor: j.Order, deflates: j.Deflates,
		joined: now, joinedAs: j.Who.Role,
	}
	who := j.Who
	m.who.Store(&who)
	return m, r.seat(m, j.Hello.Resume), nil
}

// seat puts m among those who get the next flush, and returns what went before it, in one critical section: so m
// misses nothing and sees nothing twice.
func (r *Room) seat(m *Member, resume *protocol.Cursor) view {
	now := r.hub.gate.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{likes: r.likes.total, gift: r.gifts.shown, whole: true}
	r.history.expire(now.Add(-r.hub.cfg.HistoryAge))
	from := awake
	if resume != nil {
		from, v.whole = r.history.left(resume, now, r.hub.stamps.at)
	}
	if from != awake { // two nodes get two writers' danmaku in an order of their own
		from = from.Add(-r.hub.cfg.ResumeOverlap)
	}
	var newest *spoken
	v.recent, newest = r.history.since(from, r.tick.unshown)
	v.chat, v.last = newest.ts, newest.id()
	r.audience.add(m)
	if r.audience.size == 1 {
		r.crowd.shown = r.audience.size + r.crowd.elsewhere // told in the welcome
	}
	r.countLocked()
	v.online = r.crowd.online()
	return v
}
