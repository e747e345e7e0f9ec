package room

import (
	"context"
	"math/rand/v2"
	"net/netip"

	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/audience"
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
	token := j.Who
	j.Who = *r.acting(&token)
	m, v, err := r.admit(ctx, &j, &token)
	if err != nil {
		h.exit(r)
		return nil, refusal(err)
	}
	if err := r.shutOut(&j.Who, m.marked); err != nil { // since the gate was asked, and before there was a member to close
		m.Leave()
		return nil, refusal(err)
	}
	m.expireWithToken()
	j.Session.Open(r.welcome(ctx, m, &j, v))
	if left, yes := j.Who.muted(h.cfg.Now().UnixMilli()); yes {
		j.Session.Control(protocol.AppendMuted(nil, int((left+999)/1000)))
	}
	r.remember(ctx, &token)
	return m, nil
}

// refusal turns an error into the end of a session.
func refusal(err *protocol.Error) *protocol.Refusal {
	switch err.Reason {
	case protocol.ReasonNotFound:
		return &protocol.Refusal{Code: protocol.CloseNoRoom}
	case protocol.ReasonBanned, protocol.ReasonNetworkBanned:
		return &protocol.Refusal{Code: protocol.CloseForbidden, Detail: string(err.Reason)}
	case protocol.ReasonForbidden:
		return &protocol.Refusal{Code: protocol.CloseForbidden, Detail: err.Rule}
	case protocol.ReasonRejected:
		return &protocol.Refusal{Code: protocol.CloseForbidden, Detail: string(err.Reason), Words: err.Detail}
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

// admit asks the gate, then the platform where it wants to be, and seats the member, who goes by its token and what the platform says.
func (r *Room) admit(ctx context.Context, j *JoinRequest, token *Identity) (*Member, audience.View, *protocol.Error) {
	h := r.hub
	if err := r.shutOut(&j.Who, func() marks { return r.marksOf(j.Addr, j.Hello.Note) }); err != nil {
		return nil, audience.View{}, err
	}
	u, p, err := h.attach(r, j.Who.User)
	if err != nil {
		return nil, audience.View{}, err
	}
	by := Speaker{who: &j.Who, user: u, place: p, conn: j.Conn, networks: j.Networks, addr: j.Addr}
	now := h.gate.Now()
	if d := r.ask(now, &by, limit.Join, 1); d.Verdict != limit.Allow {
		if d.Verdict == limit.Degrade { // half a join is none
			r.giveBack(now, &by, limit.Join, 1)
		}
		h.detach(u, p)
		return nil, audience.View{}, admit.Error(protocol.ReasonRateLimited, d)
	}
	asked := j.Who
	granted, err := r.invited(ctx, &j.Who, token)
	if err != nil {
		r.giveBack(now, &by, limit.Join, 1)
		h.detach(u, p)
		return nil, audience.View{}, err
	}
	m := &Member{
		id: j.SessionID, session: j.Session, room: r, user: u, place: p, conn: j.Conn, networks: j.Networks, addr: j.Addr, device: j.Hello.Note, lang: j.Lang, spot: audience.Spot{Order: j.Order, Deflates: j.Deflates},
		joined: now, since: h.stamps.at(now), joinedAs: asked.Role, traits: asked.Traits, granted: granted,
	}
	m.who.Store(token)
	r.crowds.count(m.addr, 1)
	v := r.audience.Join(m, r.seat(u, p), j.Hello.Resume)
	r.noteSession(m, "joined", &r.visits.joined)
	return m, v, nil
}

// welcome encodes what a session is told when it has joined: the welcome, what was said lately, and the gifts that it
// missed. It may ask the ledger; what happens in the room meanwhile waits in the session.
func (r *Room) welcome(ctx context.Context, m *Member, j *JoinRequest, v audience.View) []byte {
	cfg := &r.hub.cfg
	now := cfg.Now().UnixMilli()
	missed, whole := r.missedGifts(ctx, j.Hello.Resume, v.Gift)
	state := r.policy.Load().state(r.id)
	state.Online, state.People, state.Likes = v.Online, v.People, v.Likes
	w := protocol.Welcome{
		ID: j.Hello.ID, Session: j.SessionID, Node: cfg.Node, GuestToken: j.GuestToken,
		User:      protocol.Self{ID: j.Who.User, Name: j.Who.Name, Role: j.Who.Role, Attrs: j.Who.Attrs},
		Room:      state,
		Cursor:    protocol.Cursor{Gift: v.Gift, Chat: v.Chat, Last: v.Last, Ledger: r.hub.bus.LedgerID()},
		Recovered: protocol.Recovered{Gift: whole, Chat: v.Whole},
		Limits:    map[string]protocol.Allowance{}, Catalogue: r.hub.catalogue.Load().Catalogue, GiftsBy: cfg.GiftsBy,
		GiftRetryMS: giftRetry.Milliseconds(), HeartbeatMS: cfg.Heartbeat.Milliseconds(), Time: now,
	}
	if w.Cursor.Chat == 0 {
		w.Cursor.Chat = now
	}
	if cfg.Allowances != nil {
		w.Limits = cfg.Allowances(r.id, j.Who.Role)
	}
	out := protocol.AppendWelcome(make([]byte, 0, 2048), w)
	for _, event := range v.Recent {
		out = append(append(out, ','), event...)
	}
	for _, g := range missed {
		out = protocol.AppendStoredGift(append(out, ','), g)
	}
	return out
}

// missedGifts returns the room's gifts after the client's last one up to the one before its first live one, and whether
// these are all.
func (r *Room) missedGifts(ctx context.Context, resume *protocol.Cursor, upTo uint64) (missed []protocol.StoredGift, whole bool) {
	switch {
	case resume == nil:
		return nil, true
	case otherLedger(resume.Ledger, r.hub.bus.LedgerID()):
		return nil, false
	case resume.Gift == upTo:
		return nil, true
	case resume.Gift > upTo: // seen on a node that is ahead of this one, or the ledger is another or an older one
		return nil, r.stores(ctx, resume.Gift)
	}
	gifts, err := r.hub.bus.Gifts(ctx, r.id, resume.Gift, r.hub.cfg.ResumeGifts)
	if err != nil {
		r.hub.troubled("missed gifts can't be read", r.id, err)
		return nil, false
	}
	for len(gifts) > 0 && gifts[len(gifts)-1].Seq > upTo {
		gifts = gifts[:len(gifts)-1]
	}
	if len(gifts) == 0 || gifts[0].Prev != resume.Gift || gifts[len(gifts)-1].Seq != upTo {
		return nil, false
	}
	return gifts, true
}

// otherLedger reports whether a cursor is known to be of another ledger than the one in use.
func otherLedger(cursor, inUse string) bool { return cursor != "" && inUse != "" && cursor != inUse }

// stores reports whether the room's gifts in the ledger go as far as seq.
func (r *Room) stores(ctx context.Context, seq uint64) bool {
	last, err := r.hub.bus.GiftsEnd(ctx, r.id)
	if err != nil {
		r.hub.troubled("end of the ledger can't be read", r.id, err)
	}
	return err == nil && last >= seq
}
