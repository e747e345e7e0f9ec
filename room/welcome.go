package room

import (
	"context"

	"liveroom/protocol"
)

// welcome encodes what a session is told when it has joined: the welcome, what was said lately, and the gifts that it
// missed. It may ask the ledger; what happens in the room meanwhile waits in the session.
func (r *Room) welcome(ctx context.Context, m *Member, j *JoinRequest, v view) []byte {
	cfg := &r.hub.cfg
	now := cfg.Now().UnixMilli()
	missed, whole := r.missedGifts(ctx, j.Hello.Resume, v.gift)
	state := r.policy.Load().state(r.id)
	state.Online, state.Likes = v.online, v.likes
	w := protocol.Welcome{
		ID: j.Hello.ID, Session: j.SessionID, Node: cfg.Node, GuestToken: j.GuestToken,
		User:      protocol.Self{ID: j.Who.User, Name: j.Who.Name, Role: j.Who.Role},
		Room:      state,
		Cursor:    protocol.Cursor{Gift: v.gift, Chat: v.chat, Last: v.last, Ledger: r.hub.bus.LedgerID()},
		Recovered: protocol.Recovered{Gift: whole, Chat: v.whole},
		Limits:    map[string]protocol.Allowance{}, Gifts: cfg.Gifts,
		GiftRetryMS: cfg.GiftRetry.Milliseconds(), HeartbeatMS: cfg.Heartbeat.Milliseconds(), Time: now,
	}
	if w.Cursor.Chat == 0 {
		w.Cursor.Chat = now
	}
	if w.Gifts == nil {
		w.Gifts = []protocol.CatalogueGift{}
	}
	if cfg.Allowances != nil {
		w.Limits = cfg.Allowances(r.id, j.Who.Role)
	}
	out := protocol.AppendWelcome(make([]byte, 0, 2048), w)
	for _, event := range v.recent {
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
