package room

import (
	"context"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// JoinHook asks the platform who may come in.
type JoinHook interface {
	// MayJoin returns as what somebody comes in, and its error is why not. It takes a bounded time.
	MayJoin(ctx context.Context, room string, who *Identity) (Grant, *protocol.Error)
}

// Grant is what the platform says of somebody who comes in. It holds as long as the session, over refreshed tokens too.
type Grant struct {
	Role  protocol.Role   // "": the token's
	Attrs *protocol.Attrs // nil: the token's
	Mute  time.Duration   // how long nothing may be said; 0: it may
}

// to makes somebody what the platform says, but for the mute, which ends.
func (g *Grant) to(who *Identity) {
	if g.Role != "" {
		who.Role = g.Role
	}
	if g.Attrs != nil {
		who.Attrs, who.Traits = *g.Attrs, limit.NewTraits(string(*g.Attrs))
	}
}

// invited asks the platform of who wants to come in, where it wants to be asked, and makes of the token and of who what it says. What the
// room itself has made of somebody stays.
func (r *Room) invited(ctx context.Context, who, token *Identity) (g Grant, err *protocol.Error) {
	if r.hub.cfg.JoinHook == nil {
		return g, nil
	}
	if g, err = r.hub.cfg.JoinHook.MayJoin(ctx, r.id, who); err != nil {
		return g, err
	}
	g.to(token)
	if g.Mute > 0 {
		token.Muted = r.hub.cfg.Now().Add(g.Mute).UnixMilli()
	}
	*who = *r.acting(token)
	return g, nil
}

// muted reports whether the platform lets somebody say nothing at an instant, and for how many ms yet.
func (i *Identity) muted(now int64) (left int64, yes bool) {
	return i.Muted - now, i.Muted > now
}

// DanmakuHook asks the platform what may be shown.
type DanmakuHook interface {
	// Check returns a verdict for each draft of a room, in their order. It takes a bounded time and keeps no draft.
	Check(room string, drafts []*Draft) []Verdict
}

// Draft is a danmaku that has passed all that this server judges, and is not shown yet.
type Draft struct {
	User    protocol.User
	Request *protocol.Request // its Text is clean

	// What the room needs to go on.
	by     *Speaker
	policy *policy // what it was held to
	held   *Cause
	ts     int64
	ack    protocol.Ack
}

// Verdict is what becomes of a draft. The zero value shows it as it is.
type Verdict struct {
	Text       string          // shown in its stead; "": its own
	SenderOnly bool            // nobody else is shown it
	Held       *Cause          // why it waits for staff
	Refused    *protocol.Error // why nobody is; with SenderOnly what its sender is told, nil: that it was shown
}

// MostDrafts bounds what one call asks about, and mostVetted what of a room waits for verdicts, calls under way included.
const (
	MostDrafts = 64
	mostVetted = 1024
)

// vetting has the platform asked about what a room says: one call for all of a tick, the first after a quiet tick at once. A call
// does not wait for the one before it, but its verdicts do; so what is said keeps its order, and waits for a tick and
// one call's timeout at most, however slowly each is answered. Guarded by Room.mu.
type vetting struct {
	open    *sheet        // gathers; nil: there is none
	last    chan struct{} // of the newest sheet; nil: there was none
	next    limit.Instant // before when no call begins whose sheet is not full
	waiting int
}

// sheet is what one call asks about.
type sheet struct {
	drafts []*Draft      // guarded by Room.mu while it is open
	full   chan struct{} // closed when no more fit
	before chan struct{} // closed when the sheet before is done; nil: there was none
	done   chan struct{} // closed when the verdicts are carried out
}

// vet has the platform asked about a danmaku, and does with it what it says.
func (r *Room) vet(p *policy, by *Speaker, req *protocol.Request) protocol.Ack {
	d := &Draft{User: by.who.shown(), Request: req, by: by, policy: p, ack: protocol.Refuse(req.ID, later(req.Op, ""))}
	by.await(func() {
		if s := r.submit(d); s != nil {
			<-s.done
		}
	})
	if d.held != nil { // which waits for the store, and nobody waits for it
		m := protocol.Said{MID: r.hub.cfg.MIDs.Next(), User: d.User, TS: d.ts, Request: req}
		return r.withhold(context.Background(), by, m, *d.held)
	}
	return d.ack
}

// submit writes a draft on the sheet that is open, or on a new one; nil when too many wait.
func (r *Room) submit(d *Draft) *sheet {
	now, tick := r.hub.gate.Now(), r.hub.cfg.Audience.Tick
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &r.vetted
	if v.waiting == mostVetted {
		return nil
	}
	s := v.open
	if s == nil {
		s = &sheet{full: make(chan struct{}), done: make(chan struct{}), before: v.last}
		begins := max(now, v.next)
		if !r.hub.spawn(func() { r.consult(s, begins.Sub(now)) }) {
			return nil
		}
		v.open, v.last, v.next = s, s.done, begins.Add(tick)
	}
	s.drafts = append(s.drafts, d)
	if v.waiting++; len(s.drafts) == MostDrafts {
		v.open, v.next = nil, now.Add(tick)
		close(s.full)
	}
	return s
}

// consult waits for a sheet to fill, asks the platform, and carries out what it says after all sheets before.
func (r *Room) consult(s *sheet, wait time.Duration) {
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.full:
		case <-r.hub.done:
		}
	}
	r.mu.Lock()
	if r.vetted.open == s {
		r.vetted.open = nil
	}
	r.mu.Unlock()
	verdicts := r.hub.cfg.DanmakuHook.Check(r.id, s.drafts)
	if s.before != nil {
		<-s.before
	}
	for i, d := range s.drafts {
		d.ack = r.decided(d, verdicts[i])
	}
	r.mu.Lock()
	r.vetted.waiting -= len(s.drafts)
	r.mu.Unlock()
	close(s.done)
}

// decided does with a draft what the platform says, unless its sender has been barred meanwhile.
func (r *Room) decided(d *Draft, v Verdict) protocol.Ack {
	if p := r.policy.Load(); p != d.policy {
		if err := r.barred(p, d.by, protocol.ClassDanmaku); err != nil {
			return protocol.Refuse(d.Request.ID, err)
		}
	}
	if v.Text != "" {
		d.Request.Text = v.Text
	}
	d.ts = r.hub.stamps.at(r.hub.gate.Now())
	switch {
	case v.SenderOnly:
		return r.toSender(d.by, d.Request, protocol.ClassDanmaku, d.ts, v.Refused)
	case v.Refused != nil:
		return protocol.Refuse(d.Request.ID, v.Refused)
	case v.Held != nil:
		d.held = v.Held
		return d.ack
	}
	return r.publish(d.by, d.Request, protocol.ClassDanmaku, d.ts)
}
