package room

import (
	"context"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Handle admits, degrades or refuses one request and returns its one answer. The op is danmaku, gift, like or moderate;
// any other is a bad_request. A gift waits for the ledger, at most [Config.GiftTimeout]; moderation for the store of
// settings; what a leaky bucket paces waits for its turn, at most [LongestDelay]; nothing else blocks. The same id of the same user gets the first answer again.
func (r *Room) Handle(ctx context.Context, by *Speaker, req *protocol.Request) protocol.Ack {
	if req.Op == protocol.OpGift {
		answer := make(chan protocol.Ack, 1)
		r.give(ctx, by, req, func(ack protocol.Ack) { answer <- ack })
		return <-answer
	}
	by.who = r.acting(by.who)
	c, ok := protocol.ClassOf(req.Op) // control for moderate
	if !ok && req.Op != protocol.OpModerate {
		return protocol.Refuse(req.ID, protocol.BadField("op", "a message or moderate", string(req.Op)))
	}
	if err := r.hub.shed(c); err != nil {
		return protocol.Refuse(req.ID, err)
	}
	now := r.hub.gate.Now()
	if c.Kind().Yields != protocol.Never {
		if !r.hub.waitInLine(&r.hub.turnstile, now) {
			return protocol.Refuse(req.ID, r.hub.tooMuch(c))
		}
		now = r.hub.gate.Now()
	}
	e, what, done := by.user.begin(now, r.id, req, answersFor)
	switch what {
	case foundNothing, foundUnknown:
		ack := r.fresh(ctx, now, by, req, c)
		by.user.end(e, ack)
		r.count(now, by, req, &ack)
		r.punish(now, by, &ack)
		return ack
	case foundConflict:
		return protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonConflict})
	case foundFull:
		return protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeRefused))
	case foundWork:
		known := false
		by.await(func() { known = r.awaitAnswer(ctx, done) })
		if !known {
			return protocol.Refuse(req.ID, later(req.Op, protocol.OutcomeUnknown))
		}
	}
	return r.repeated(by, req, e)
}

// repeated is the first answer again.
func (r *Room) repeated(by *Speaker, req *protocol.Request, e *answer) protocol.Ack {
	r.hub.cfg.Metrics.repeats.Inc()
	ack := by.user.answer(e)
	ack.Duplicate = ack.Duplicate || req.Op == protocol.OpGift && ack.Code == protocol.OK
	return ack
}

// awaitAnswer waits for the first answer of a request that is still under way.
func (r *Room) awaitAnswer(ctx context.Context, done <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, r.hub.cfg.GiftTimeout)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// later says that nothing can be done right now; a gift learns its outcome.
func later(op protocol.Op, outcome protocol.Outcome) *protocol.Error {
	err := &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(laterRetry)}
	if op == protocol.OpGift {
		err.Outcome = outcome
	}
	return err
}

// laterRetry is the wait told with try_later.
const laterRetry = time.Second

// fresh answers a request that was not answered before, and is no gift.
func (r *Room) fresh(ctx context.Context, now limit.Instant, by *Speaker, req *protocol.Request, c protocol.Class) protocol.Ack {
	if req.Op == protocol.OpModerate {
		return by.answered(req, func() protocol.Ack { return r.moderate(ctx, by, req) })
	}
	p := r.policy.Load()
	if left := by.user.abuse.Muted(now); left > 0 {
		return protocol.Refuse(req.ID, &protocol.Error{Reason: protocol.ReasonMuted, Scope: limit.ScopeUser.String(), Rule: abuseRule, RetryAfter: limit.Jitter(left)})
	}
	if err := r.barred(p, by, c); err != nil {
		return protocol.Refuse(req.ID, err)
	}
	switch c {
	case protocol.ClassDanmaku:
		return r.danmaku(now, p, by, req)
	case protocol.ClassLike:
		return r.like(now, p, by, req)
	}
	return r.live(now, p, by, req, c, judged{})
}

// abuseRule names what mutes a user who goes on after many refusals.
const abuseRule = "abuse"

// abuseReconnect is the wait told to a session that is closed for abuse.
const abuseReconnect = 30 * time.Second

// punish counts a refusal against its user: many in a row mute it for a while, more close its session. A refusal that many
// share, such as a full room's, is nobody's abuse.
func (r *Room) punish(now limit.Instant, by *Speaker, ack *protocol.Ack) {
	if ack.Err == nil || ack.Code != protocol.TooMany && ack.Err.Rule != abuseRule {
		return
	}
	if ack.Err.Reason == protocol.ReasonRateLimited && !personal(ack.Err.Scope) {
		return
	}
	penalty := by.user.abuse.Rejected(now, limit.AbusePolicy{})
	if by.echo == nil {
		return
	}
	switch penalty {
	case limit.Mute:
		left := by.user.abuse.Muted(now)
		by.echo.Control(protocol.AppendMuted(nil, int((left+time.Second-1)/time.Second)))
	case limit.Close:
		by.echo.Close(protocol.Refusal{Code: protocol.CloseAbuse, Reconnect: limit.Jitter(abuseReconnect)})
	}
}

// personal reports whether a limit of that scope is of one user alone.
func personal(scope string) bool {
	switch scope {
	case limit.ScopeConn.String(), limit.ScopeUser.String(), limit.ScopeUserRoom.String():
		return true
	}
	return false
}

// barred returns why a speaker may not send anything of the kind.
func (r *Room) barred(p *policy, by *Speaker, c protocol.Class) *protocol.Error {
	now := int64(0)
	if len(p.muted)+len(p.banned) > 0 || by.who.Muted > 0 {
		now = r.hub.cfg.Now().UnixMilli()
	}
	if left, yes := p.banned.in(by.who, now); yes {
		return sanctionedFor(protocol.ReasonBanned, left)
	}
	if p.Closed {
		return &protocol.Error{Reason: protocol.ReasonRoomClosed}
	}
	if c.Kind().Talk {
		if left, yes := by.who.muted(now); yes {
			return sanctionedFor(protocol.ReasonMuted, left)
		}
		if left, yes := p.muted.in(by.who, now); yes {
			return sanctionedFor(protocol.ReasonMuted, left)
		}
		if err := r.maySpeak(p, by.who); err != nil {
			return err
		}
	}
	if c == protocol.ClassGift {
		return r.unpaid(by)
	}
	return nil
}

// unpaid returns why nobody would pay for a gift of this speaker. A back end has seen to that before it speaks.
func (r *Room) unpaid(by *Speaker) *protocol.Error {
	switch {
	case !by.socket():
	case r.hub.cfg.GiftsBy == protocol.GiftsByBackend:
		return &protocol.Error{Reason: protocol.ReasonByBackend}
	case r.hub.cfg.GiftsBy == protocol.GiftsByHook && by.who.Guest():
		return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "guests send no gifts"}
	}
	return nil
}

// sanctionedFor tells how long a mute or ban lasts yet, in ms; 0: for ever, and no time is told.
func sanctionedFor(reason protocol.Reason, left int64) *protocol.Error {
	err := &protocol.Error{Reason: reason}
	if left > 0 {
		err.RetryAfter = limit.Jitter(time.Duration(left) * time.Millisecond)
	}
	return err
}

// LongestDelay bounds how long a rule that paces may hold one message back. The wiring refuses rules that could ask for
// more; a decision that asks for more nevertheless, since a reload left a debt, is held for so long.
const LongestDelay = time.Second

// pace holds back what a leaky bucket admitted until its turn comes, on the goroutine of whoever asked: a session handles
// one frame at a time, so what it sends stays in order and no other session waits. A message goes ahead also when its
// sender leaves meanwhile, unless a moderator has barred it by then: pace returns why. p is what it was held to before.
func (r *Room) pace(p *policy, by *Speaker, c protocol.Class, d limit.Decision) *protocol.Error {
	if d.Delay <= 0 {
		return nil
	}
	if !by.await(func() { time.Sleep(min(d.Delay, LongestDelay)) }) {
		return later(protocol.Op(c.String()), protocol.OutcomeRefused)
	}
	if now := r.policy.Load(); now != p {
		return r.barred(now, by, c)
	}
	return nil
}
