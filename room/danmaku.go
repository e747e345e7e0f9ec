package room

import (
	"errors"
	"hash/maphash"
	"time"

	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
)

// danmaku admits one danmaku.
func (r *Room) danmaku(now limit.Instant, p *policy, by *Speaker, req *protocol.Request) protocol.Ack {
	text, err := protocol.CleanText(req.Text, r.hub.cfg.MaxText)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	slow := time.Duration(p.SlowMode) * time.Millisecond
	if mayModerate(by.who.Role) {
		slow = 0
	}
	mine, before, err := by.user.say(by.place, now, text, r.hub.cfg.RepeatWithin, slow)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	d := r.ask(now, by, limit.Danmaku, 1)
	if d.Verdict > limit.Degrade {
		by.user.unsay(by.place, mine, before)
		return protocol.Refuse(req.ID, admit.Error(protocol.ReasonRateLimited, d))
	}
	defer r.release(now, by, limit.Danmaku, 1)
	if err := r.pace(by, req.Op, d); err != nil {
		by.user.unsay(by.place, mine, before)
		return protocol.Refuse(req.ID, err)
	}
	m := protocol.Danmaku{
		MID: r.hub.cfg.MIDs.Next(), User: protocol.User{ID: by.who.User, Name: by.who.Name, Role: by.who.Role},
		Text: text, Color: req.Color, Mode: req.Mode, TS: r.hub.admittedAt(now, d),
	}
	m.Hidden = d.Verdict == limit.Degrade
	const around = 160 // keys, mid, role, colour, mode and ts
	event := protocol.AppendDanmaku(make([]byte, 0, around+len(m.User.ID)+len(m.User.Name)+len(text)), m)
	if d.Verdict == limit.Degrade {
		if by.echo != nil {
			by.echo.Hold(event) // the answer takes it along
		}
		return protocol.Ack{ID: req.ID, Code: protocol.Degraded, MID: m.MID, TS: m.TS, Err: admit.Error(protocol.ReasonRoomBusy, d)}
	}
	if err := r.hub.bus.PublishDanmaku(r.id, event); errors.Is(err, ErrForbidden) {
		by.user.unsay(by.place, mine, before)
		return protocol.Refuse(req.ID, r.hub.unheard(r.id, err))
	} else if err != nil {
		r.hub.troubled("bus is away, danmaku are served on this node alone", r.id, err)
		r.show(event)
	}
	r.hub.cfg.Metrics.messages[protocol.ClassDanmaku].Inc()
	return protocol.Ack{ID: req.ID, Code: protocol.OK, MID: m.MID, TS: m.TS}
}

// say notes what a user is about to say in a room, unless it repeats itself or slow mode is on. unsay takes it back.
func (u *User) say(p *place, now limit.Instant, text string, repeat, slow time.Duration) (mine, before saying, err *protocol.Error) {
	mine = saying{maphash.String(contentSeed, protocol.FoldText(text)), now, true}
	u.mu.Lock()
	defer u.mu.Unlock()
	before = p.said
	if before.any {
		since := now.Sub(before.at)
		if since < slow {
			return mine, before, tooSoon(protocol.ReasonSlowMode, "room", slow-since)
		}
		if before.content == mine.content && since < repeat {
			return mine, before, tooSoon(protocol.ReasonRepeatedText, "user_room", repeat-since)
		}
	}
	p.said = mine
	p.hold = max(p.hold, now.Add(max(repeat, slow)))
	return mine, before, nil
}

// unsay takes back what was not admitted, unless something was said since.
func (u *User) unsay(p *place, mine, before saying) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if p.said == mine {
		p.said = before
	}
}

func tooSoon(reason protocol.Reason, scope string, wait time.Duration) *protocol.Error {
	return &protocol.Error{Reason: reason, Scope: scope, RetryAfter: limit.Jitter(wait)}
}
