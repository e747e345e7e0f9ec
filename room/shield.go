package room

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"liveroom/protocol"
	"liveroom/room/people"
	"liveroom/room/raid"
)

const (
	// newFor is how long somebody who came into a room is a newcomer there.
	newFor = 10 * time.Minute
	// allCome is how long nobody who comes into a room that has just opened on this node is one: they come from elsewhere.
	allCome = 2 * time.Minute
	// raidFor is how long a raid lasts unless it is seen again.
	raidFor = 5 * time.Minute
)

// shield is what the settings say of it.
func (s *stored) shield() protocol.Shield {
	if s.Shield == nil {
		return protocol.Shield{Mode: protocol.ShieldOff}
	}
	return *s.Shield
}

// shielded is a shield as messages are held to it; nil: it is off.
type shielded struct {
	auto  bool
	until int64 // of the raid, Unix ms; 0: there is none
	raid  raid.Sketch
	why   string
}

func newShielded(s *protocol.Shield) *shielded {
	if s == nil || s.Mode == protocol.ShieldOff {
		return nil
	}
	out := &shielded{auto: s.Mode == protocol.ShieldAuto}
	if s.Raid != nil {
		out.until, out.raid, out.why = s.Raid.Until, raid.Of(protocol.FoldText(s.Raid.Sample)), s.Raid.Sample
	}
	return out
}

// newcomer reports whether a speaker came into the room lately. Whoever a back end speaks for is none.
func (r *Room) newcomer(by *Speaker) bool {
	now := r.hub.cfg.Now()
	return by.socket() && !mayModerate(by.who.Role) && now.Sub(by.place.since) < newFor && by.place.since.Sub(r.since) > allCome
}

// shields reports whether a danmaku is to be held, and why.
func (r *Room) shields(p *policy, by *Speaker, req *protocol.Request, c protocol.Class) (why Cause, hold bool) {
	s := p.shielded
	if s == nil || c != protocol.ClassDanmaku || !by.socket() || mayModerate(by.who.Role) {
		return why, false
	}
	raided := s.until > r.hub.cfg.Now().UnixMilli()
	if s.auto && !raided {
		return why, false
	}
	return Cause{By: "shield", Detail: s.why}, r.newcomer(by) || raided && raid.Of(protocol.FoldText(req.Text)).Like(s.raid)
}

// tellsNew reports whether other nodes are to know that a danmaku is a newcomer's.
func (r *Room) tellsNew(by *Speaker, c protocol.Class) bool {
	s := r.policy.Load().shielded
	return s != nil && s.auto && c == protocol.ClassDanmaku && r.newcomer(by)
}

// watch looks for a raid in what the room is shown, whichever node it comes from: the one where it was said tells of newcomers.
func (r *Room) watch(event []byte) {
	s := r.policy.Load().shielded
	now := r.hub.cfg.Now().UnixMilli()
	if s == nil || !s.auto || s.until > now {
		return
	}
	var said struct {
		Text string `json:"text"`
		New  bool   `json:"new"`
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	if json.Unmarshal(event, &said) != nil {
		return
	}
	if r.raids.Saw(now, raid.Of(protocol.FoldText(said.Text)), uint64(people.HashOf(said.User.ID)), said.New) && r.raising.CompareAndSwap(false, true) {
		if !r.hub.spawn(func() { defer r.raising.Store(false); r.raise(said.Text) }) {
			r.raising.Store(false)
		}
	}
}

// raise has a raid begin on all nodes, unless another one was faster.
func (r *Room) raise(sample string) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	var was, is protocol.Shield
	err := r.change(ctx, func(s *stored, now int64) *protocol.Error {
		was = s.shield()
		if was.Mode != protocol.ShieldAuto || was.Raid != nil && was.Raid.Until > now {
			return &protocol.Error{Reason: protocol.ReasonConflict}
		}
		was.Raid = nil
		is = protocol.Shield{Mode: was.Mode, Raid: &protocol.Raid{At: now, Until: now + raidFor.Milliseconds(), Sample: sample}}
		s.Shield = &is
		return nil
	})
	if err != nil {
		return
	}
	r.hub.cfg.Metrics.raids.Inc()
	r.audit(ctx, AuditEntry{
		Action: protocol.ActionSettings, Text: Settings{Shield: &is}.String(),
		Was: &touched{Settings: &Settings{Shield: &was}}, Is: &touched{Settings: &Settings{Shield: &is}},
	})
	r.hub.cfg.Log.Info("raid", "room", r.id)
}

// pardon notes that a raid was ended before its time: what it said is harmless.
func (r *Room) pardon(old, next *policy) {
	now := r.hub.cfg.Now().UnixMilli()
	if s := old.shielded; s != nil && s.until > now && cmp.Or(next.shielded, &shielded{}).until <= now {
		r.raids.Pardon(now, s.raid)
	}
}
