package room

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"liveroom/internal/admit"
	"liveroom/internal/filter"
	"liveroom/limit"
	"liveroom/protocol"
)

// actions are package limit's of what viewers send, called the same.
var actions = func() (a [protocol.NumClasses]limit.Action) {
	for c := range a {
		a[c], _ = limit.ParseAction(protocol.Class(c).String())
	}
	return a
}()

// pass puts a message to the gate and waits for its turn where a rule paces it. A verdict beyond most is a refusal, as is being
// barred meanwhile; otherwise what it was given is to be released.
func (r *Room) pass(now limit.Instant, p *policy, by *Speaker, req *protocol.Request, c protocol.Class, cost int64, most limit.Verdict) (limit.Decision, *protocol.Error) {
	d := r.ask(now, by, actions[c], cost)
	if d.Verdict > limit.Degrade {
		return d, admit.Error(protocol.ReasonRateLimited, d)
	}
	if d.Verdict > most {
		r.giveBack(now, by, actions[c], cost)
		return d, admit.Error(protocol.ReasonRateLimited, d)
	}
	err := r.pace(p, by, c, d)
	if err != nil {
		r.giveBack(now, by, actions[c], cost)
	}
	return d, err
}

// danmaku admits one danmaku: clean, not the last one again, and no faster than slow mode lets.
func (r *Room) danmaku(now limit.Instant, p *policy, by *Speaker, req *protocol.Request) protocol.Ack {
	var err *protocol.Error
	if req.Text, err = protocol.CleanText(req.Text, r.hub.cfg.MaxText); err == nil {
		err = r.spoken(p, by.who, req)
	}
	var j judged
	if err == nil {
		j, err = r.filtered(p, by.who, req)
	}
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	slow := time.Duration(p.SlowMode) * time.Millisecond
	if mayModerate(by.who.Role) {
		slow = 0
	}
	mine, before, err := by.user.say(by.place, now, req.Text, repeatWithin, slow)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	ack := r.live(now, p, by, req, protocol.ClassDanmaku, j)
	if ack.Code >= protocol.BadRequest {
		by.user.unsay(by.place, mine, before)
	}
	return ack
}

// live admits a message that goes over the bus as it is. Over its quota it is degraded: its sender alone is shown it.
func (r *Room) live(now limit.Instant, p *policy, by *Speaker, req *protocol.Request, c protocol.Class, j judged) protocol.Ack {
	d, err := r.pass(now, p, by, req, c, 1, limit.Degrade)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	defer r.giveBack(now, by, actions[c], 1)
	why, hold := r.shields(p, by, req, c)
	switch ts := r.hub.admittedAt(now, d); {
	case d.Verdict == limit.Degrade:
		return r.toSender(by, req, c, ts, admit.Error(protocol.ReasonRoomBusy, d))
	case j.action == protocol.FilterHold:
		return r.held(by, req, ts, j)
	case j.action == protocol.FilterSenderOnly: // who shall not know
		return r.toSender(by, req, c, ts, nil)
	case hold:
		return r.withhold(context.Background(), by, protocol.Said{MID: r.hub.cfg.MIDs.Next(), User: by.who.shown(), TS: ts, Request: req}, why) // kept also when its sender leaves
	case c == protocol.ClassDanmaku && r.hub.cfg.DanmakuHook != nil && by.socket():
		return r.vet(p, by, req)
	}
	return r.publish(by, req, c, r.hub.admittedAt(now, d))
}

// said encodes a message of a kind that goes over the bus as it is.
func (r *Room) said(by *Speaker, req *protocol.Request, c protocol.Class, ts int64, hidden bool) (mid string, event []byte) {
	m := protocol.Said{MID: r.hub.cfg.MIDs.Next(), User: by.who.shown(), TS: ts, Hidden: hidden, New: c == protocol.ClassDanmaku && r.newcomer(by), Request: req}
	const around = 160 // keys, mid, role, colour, mode and ts
	return m.MID, c.Kind().Append(make([]byte, 0, around+len(m.User.ID)+len(m.User.Name)+len(m.User.Attrs)+len(req.Text)), m)
}

// toSender shows a message to its sender alone.
func (r *Room) toSender(by *Speaker, req *protocol.Request, c protocol.Class, ts int64, why *protocol.Error) protocol.Ack {
	mid, event := r.said(by, req, c, ts, true)
	if by.echo != nil {
		by.echo.Hold(event) // the answer takes it along
	}
	if c != protocol.ClassDanmaku || !r.hub.cfg.NoDanmaku {
		r.hub.note(r.id, event)
	}
	ack := protocol.Ack{ID: req.ID, Code: protocol.OK, MID: mid, TS: ts, Err: why}
	if why != nil {
		ack.Code = why.Reason.Code()
	}
	return ack
}

// publish shows a message to everybody.
func (r *Room) publish(by *Speaker, req *protocol.Request, c protocol.Class, ts int64) protocol.Ack {
	mid, event := r.said(by, req, c, ts, false)
	if err := r.hub.bus.Publish(c, r.id, event); errors.Is(err, ErrForbidden) {
		return protocol.Refuse(req.ID, r.hub.unheard(r.id, err))
	} else if err != nil {
		r.hub.troubled("bus is away, messages are served on this node alone", r.id, err)
		r.audience.Message(c, event)
	}
	r.hub.cfg.Metrics.messages[c].Inc()
	return protocol.Ack{ID: req.ID, Code: protocol.OK, MID: mid, TS: ts}
}

var textSeed = maphash.MakeSeed()

// say notes what a user is about to say in a room, unless it repeats itself or slow mode is on. unsay takes it back.
func (u *User) say(p *place, now limit.Instant, text string, repeat, slow time.Duration) (mine, before saying, err *protocol.Error) {
	var look [256]byte
	mine = saying{maphash.Bytes(textSeed, filter.AppendLook(look[:0], text)), now, true}
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
func (r *Room) like(now limit.Instant, p *policy, by *Speaker, req *protocol.Request) protocol.Ack {
	if storing := r.hub.cfg.Storing; storing != nil && storing() != nil { // a like that is answered 200 is kept
		return protocol.Refuse(req.ID, later(req.Op, ""))
	}
	d, err := r.pass(now, p, by, req, protocol.ClassLike, int64(req.Count), limit.Degrade)
	if err != nil {
		return protocol.Refuse(req.ID, err)
	}
	defer r.giveBack(now, by, limit.Like, int64(req.Count))
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
