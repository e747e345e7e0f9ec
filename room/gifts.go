package room

import (
	"context"
	"errors"

	"liveroom/internal/trace"
	"liveroom/limit"
	"liveroom/protocol"
)

// pendingGift is a gift that was admitted and whose storing is not known to have ended.
type pendingGift struct {
	event []byte
	until limit.Instant // when the ledger forgets its id
	ts    int64
	tried bool  // the ledger was asked before, so that a refusal now says nothing about then
	sale  *Sale // nil: nobody is asked for its price
}

// gift admits one gift and stores it.
func (r *Room) gift(ctx context.Context, now limit.Instant, p *policy, by *Speaker, req *protocol.Request, e *answer) protocol.Ack {
	if req.ID == "" {
		return protocol.Refuse(req.ID, protocol.CheckID("id", req.ID))
	}
	kind, err := r.hub.catalogue.Load().find(req.Gift)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	value := kind.Price * int64(req.Count)
	d, err := r.pass(now, p, by, req, protocol.ClassGift, value, limit.Allow) // half a gift is none
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	defer r.giveBack(now, by, limit.Gift, value)
	g := protocol.Gift{
		User: by.who.shown(),
		Gift: req.Gift, Count: req.Count, TS: r.hub.admittedAt(now, d),
		Combo: by.user.combine(by.place, now, comboWithin, req.Gift, req.Count),
	}
	e.gift = &pendingGift{event: protocol.AppendGift(nil, g), until: now.Add(giftRetry), ts: g.TS}
	if r.hub.cfg.GiftsBy == protocol.GiftsByHook && by.socket() {
		e.gift.sale = &Sale{Room: r.id, ID: req.ID, Gift: g, Price: kind.Price, Event: e.gift.event}
	}
	return r.store(ctx, by, req, e)
}

// put stores a gift, which somebody has paid for then.
func (r *Room) put(ctx context.Context, by *Speaker, req *protocol.Request, g *pendingGift) (protocol.Receipt, error) {
	if g.sale != nil {
		by.lined()
		return r.hub.cfg.Till.Sell(ctx, g.sale)
	}
	stored := r.hub.bus.StoreGift(ctx, r.id, by.who.User, req.ID, g.event)
	by.lined()
	return stored()
}

// store hands an admitted gift to the ledger. It leaves e.gift in place when the outcome is unknown, so that the same id
// sent again is stored again without asking the gate again.
func (r *Room) store(ctx context.Context, by *Speaker, req *protocol.Request, e *answer) protocol.Ack {
	ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.GiftTimeout)
	defer cancel()
	ctx, op := r.hub.cfg.Trace.Begin(ctx, trace.Gift, "give", r.id)
	receipt, err := r.put(ctx, by, req, e.gift)
	declined := (*protocol.Error)(nil)
	if errors.As(err, &declined) {
		op.Result("declined")
		err = nil
	}
	op.End(err)
	if declined != nil {
		e.gift = nil
		by.user.takeBack(by.place, req.Gift, req.Count)
		return protocol.Refuse(req.ID, declined)
	}
	if err != nil {
		r.hub.troubledIn(ctx, "gift is not stored", r.id, err)
		if errors.Is(err, ErrRefused) && !e.gift.tried {
			e.gift = nil
			by.user.takeBack(by.place, req.Gift, req.Count)
			return protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeRefused))
		}
		e.gift.tried = true
		return protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown))
	}
	if receipt.Duplicate && !e.gift.tried {
		return r.stored(ctx, by, req, e, receipt)
	}
	r.hub.cfg.Metrics.messages[protocol.ClassGift].Inc()
	return accepted(req.ID, receipt, e.gift.ts)
}

// stored answers a gift that the ledger has had since before this node can remember.
func (r *Room) stored(ctx context.Context, by *Speaker, req *protocol.Request, e *answer, receipt protocol.Receipt) protocol.Ack {
	by.user.takeBack(by.place, req.Gift, req.Count)
	old, err := r.hub.bus.Gift(ctx, r.id, receipt.Seq)
	var first protocol.Gift
	if err == nil {
		first, err = protocol.ParseGift(old.Event)
	}
	if err != nil {
		r.hub.troubledIn(ctx, "stored gift can't be read", r.id, err)
		e.gift.tried = true
		return protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown))
	}
	e.gift = nil
	if first.User.ID != by.who.User || first.Gift != req.Gift || first.Count != req.Count {
		return protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonConflict})
	}
	return accepted(req.ID, receipt, first.TS)
}

func accepted(id string, receipt protocol.Receipt, ts int64) protocol.Ack {
	return protocol.Ack{
		ID: id, Code: protocol.OK, MID: protocol.GiftMID(receipt.Seq), TS: ts,
		Seq: receipt.Seq, Duplicate: receipt.Duplicate,
	}
}
