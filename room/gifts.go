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

// give has a gift answered once: told is called at once, or later by a goroutine on which others' answers wait, so that it must not
// block. A refusal says that nothing happened, unless the same gift was tried before and nobody knows.
func (r *Room) give(ctx context.Context, by *Speaker, req *protocol.Request, told func(protocol.Ack)) {
	by.who = r.acting(by.who)
	now := r.hub.gate.Now()
	e, what, done := by.user.begin(now, r.id, req, answersFor)
	switch what {
	case foundNothing, foundUnknown:
		r.admitGift(ctx, now, by, req, e, func(ack protocol.Ack) {
			by.user.end(e, ack)
			r.count(now, by, req, &ack)
			r.punish(now, by, &ack)
			told(ack)
		})
	case foundConflict:
		told(protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonConflict}))
	case foundFull:
		told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeRefused)))
	case foundWork:
		first := func() {
			if !r.awaitAnswer(context.WithoutCancel(ctx), done) {
				told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown)))
				return
			}
			told(r.repeated(by, req, e))
		}
		if !by.aside(first) {
			told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown)))
		}
	default:
		told(r.repeated(by, req, e))
	}
}

// admitGift admits a gift that was not answered before, and stores it.
func (r *Room) admitGift(ctx context.Context, now limit.Instant, by *Speaker, req *protocol.Request, e *answer, told func(protocol.Ack)) {
	refuse := func(err *protocol.Error) { told(protocol.Refuse(req.ID, err)) }
	if !r.hub.giftMayPass(now) { // before it spends anything
		refuse(later(req.Op, outcomeBefore(e)))
		return
	}
	if e.gift != nil { // was admitted already; only the ledger has not answered
		r.store(ctx, by, req, e, told)
		return
	}
	p := r.policy.Load()
	if err := r.barred(p, by, protocol.ClassGift); err != nil {
		refuse(err)
		return
	}
	if req.ID == "" {
		refuse(protocol.CheckID("id", req.ID))
		return
	}
	kind, err := r.hub.catalogue.Load().find(req.Gift)
	if err != nil {
		refuse(err)
		return
	}
	value := kind.Price * int64(req.Count)
	d, err := r.pass(now, p, by, req, protocol.ClassGift, value, limit.Allow) // half a gift is none
	if err != nil {
		refuse(err)
		return
	}
	g := protocol.Gift{
		User: by.who.shown(),
		Gift: req.Gift, Count: req.Count, TS: r.hub.admittedAt(now, d),
		Combo: by.user.combine(by.place, now, comboWithin, req.Gift, req.Count),
	}
	e.gift = &pendingGift{event: protocol.AppendGift(nil, g), until: now.Add(giftRetry), ts: g.TS}
	if r.hub.cfg.GiftsBy == protocol.GiftsByHook && by.socket() {
		e.gift.sale = &Sale{Room: r.id, ID: req.ID, Gift: g, Price: kind.Price, Event: e.gift.event}
	}
	r.store(ctx, by, req, e, func(ack protocol.Ack) {
		r.giveBack(now, by, limit.Gift, value)
		told(ack)
	})
}

// outcomeBefore is what is known of a gift that was not tried this time.
func outcomeBefore(e *answer) protocol.Outcome {
	if e.gift != nil {
		return protocol.OutcomeUnknown
	}
	return protocol.OutcomeRefused
}

// store hands an admitted gift to the ledger, or to who has it paid for first. It leaves e.gift in place when the outcome is unknown,
// so that the same id sent again is stored again without asking the gate again.
func (r *Room) store(ctx context.Context, by *Speaker, req *protocol.Request, e *answer, told func(protocol.Ack)) {
	ctx, op := r.hub.cfg.Trace.Begin(context.WithoutCancel(ctx), trace.Gift, "give", r.id) // it is stored also when nobody waits for it any more
	done := func(receipt protocol.Receipt, err error) {
		if declined := (*protocol.Error)(nil); errors.As(err, &declined) {
			op.Result("declined")
			op.End(nil)
		} else {
			op.End(err)
		}
		r.outcome(ctx, by, req, e, receipt, err, told)
	}
	sale := e.gift.sale
	if sale == nil {
		r.hub.bus.StoreGift(ctx, r.id, by.who.User, req.ID, e.gift.event, r.hub.cfg.GiftTimeout, done)
		return
	}
	sell := func() {
		ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.GiftTimeout)
		defer cancel()
		done(r.hub.cfg.Till.Sell(ctx, sale))
	}
	if !by.aside(sell) {
		done(protocol.Receipt{}, ErrRefused)
	}
}

// outcome answers a gift with what became of it.
func (r *Room) outcome(ctx context.Context, by *Speaker, req *protocol.Request, e *answer, receipt protocol.Receipt, err error, told func(protocol.Ack)) {
	declined := (*protocol.Error)(nil)
	switch first := !e.gift.tried; {
	case errors.As(err, &declined):
		e.gift = nil
		by.user.takeBack(by.place, req.Gift, req.Count)
		told(protocol.Refuse(req.ID, declined))
	case err != nil && errors.Is(err, ErrRefused) && first:
		r.hub.troubledIn(ctx, "gift is not stored", r.id, err)
		e.gift = nil
		by.user.takeBack(by.place, req.Gift, req.Count)
		told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeRefused)))
	case err != nil:
		r.hub.troubledIn(ctx, "gift is not stored", r.id, err)
		e.gift.tried = true
		told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown)))
	case receipt.Duplicate && first: // it is read, which takes its time
		if !r.hub.spawn(func() { told(r.stored(ctx, by, req, e, receipt)) }) {
			e.gift.tried = true
			told(protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown)))
		}
	default:
		r.hub.cfg.Metrics.messages[protocol.ClassGift].Inc()
		told(accepted(req.ID, receipt, e.gift.ts))
	}
}

// stored answers a gift that the ledger has had since before this node can remember.
func (r *Room) stored(ctx context.Context, by *Speaker, req *protocol.Request, e *answer, receipt protocol.Receipt) protocol.Ack {
	ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.GiftTimeout)
	defer cancel()
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
