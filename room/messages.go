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
		r.audience.Danmaku(event)
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

// like admits likes: all of them, or as many as the buckets have.
func (r *Room) like(now limit.Instant, by *Speaker, req *protocol.Request) protocol.Ack {
	if storing := r.hub.cfg.Storing; storing != nil && storing() != nil { // a like that is answered 200 is kept
		return protocol.Refuse(req.ID, later(req.Op, ""))
	}
	d := r.ask(now, by, limit.Like, int64(req.Count))
	if d.Verdict > limit.Degrade {
		return protocol.Refuse(req.ID, admit.Error(protocol.ReasonRateLimited, d))
	}
	defer r.release(now, by, limit.Like, int64(req.Count))
	if err := r.pace(by, req.Op, d); err != nil {
		return protocol.Refuse(req.ID, err)
	}
	r.fold(d.Counted)
	ack := protocol.Ack{ID: req.ID, Code: protocol.OK, TS: r.hub.admittedAt(now, d)}
	if d.Verdict == limit.Degrade {
		ack.Code, ack.Counted, ack.Err = protocol.Degraded, int(d.Counted), admit.Error(protocol.ReasonFolded, d)
		return ack
	}
	r.hub.cfg.Metrics.messages[protocol.ClassLike].Inc()
	return ack
}

// likes are a room's folded taps: counted here, handed to the bus once a second, shown once they came back as a total.
// Guarded by Room.mu.
type likes struct {
	pending int64 // not taken by the bus yet
	folding bool  // a folder goroutine exists
}

// fold counts taps.
func (r *Room) fold(n int64) {
	if n <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.likes.pending += n
	if !r.likes.folding {
		r.likes.folding = r.hub.spawn(r.folder)
	}
}

// folder hands what was counted to the bus, once per LikeEvery, until nothing is left.
func (r *Room) folder() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for r.handOver() {
		timer.Reset(r.hub.cfg.Audience.LikeEvery)
		select {
		case <-timer.C:
		case <-r.hub.done:
			return
		}
	}
}

// handOver gives the bus what is pending; false when nothing is, in which case the caller is no folder any more.
func (r *Room) handOver() bool {
	r.mu.Lock()
	n := r.likes.pending
	r.likes.pending = 0
	if n == 0 {
		r.likes.folding = false
	}
	r.mu.Unlock()
	if n == 0 {
		return false
	}
	if err := r.hub.bus.AddLikes(r.id, n); err != nil {
		r.hub.troubled("likes wait for the bus", r.id, err)
		r.mu.Lock()
		r.likes.pending += n
		r.mu.Unlock()
	}
	return true
}
