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
		Cursor:    protocol.Cursor{Gift: v.gift, Chat: v.chat},
		Recovered: protocol.Recovered{Gift: whole, Chat: v.chatWhole(j.Hello.Resume)},
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

// chatWhole reports whether a resuming client gets every danmaku since the last it saw. One that names no instant asks for
// none: every welcome gives an instant to come back with.
func (v *view) chatWhole(resume *protocol.Cursor) bool {
	return resume == nil || resume.Chat == 0 || resume.Chat >= v.floor
}

// missedGifts returns the room's gifts after the client's last one up to the one before its first live one, and whether
// these are all.
func (r *Room) missedGifts(ctx context.Context, resume *protocol.Cursor, upTo uint64) (missed []protocol.StoredGift, whole bool) {
	if resume == nil || resume.Gift >= upTo {
		return nil, true
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
