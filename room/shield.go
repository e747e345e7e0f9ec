package room

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"liveroom/internal/filter"
	"liveroom/protocol"
	"liveroom/room/people"
	"liveroom/room/raid"
)

const (
	// newFor is how long somebody who came into a room is a newcomer there.
	newFor = 10 * time.Minute
	// allCome is how long nobody who comes into a room that has just opened on this node is one: they come from elsewhere.
	allCome = 2 * time.Minute
	// youngFor is how old an account is that is no newcomer's, where it is known.
	youngFor = 7 * 24 * time.Hour
	// takenBack bounds what of a raid is taken back once it is seen: the newest, of the newest danmaku that are looked at.
	takenBack, lookedAt = 100, 200
)

const byShield = "shield"

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
		out.until, out.raid, out.why = s.Raid.Until, sketched(s.Raid.Sample), s.Raid.Sample
	}
	return out
}

// newcomer reports whether a speaker's account is young or, where that is not known, came into the room lately. Whoever a back end speaks for
// is none.
func (r *Room) newcomer(by *Speaker) bool {
	if !by.socket() || mayModerate(by.who.Role) {
		return false
	}
	now := r.hub.cfg.Now()
	if r.hub.cfg.Account != "" {
		if made, known := by.who.instant(r.hub.cfg.Account); known {
			return now.Sub(made) < youngFor
		}
	}
	return now.Sub(by.place.since) < newFor && by.place.since.Sub(r.since) > allCome
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
	return Cause{By: byShield, Detail: s.why}, r.newcomer(by) || raided && sketched(req.Text).Like(s.raid)
}

// sample is a danmaku as raids are looked for in it.
type sample struct {
	protocol.Danmaku
	sketch raid.Sketch
}

func sketched(text string) raid.Sketch { return raid.Of(string(filter.AppendLook(nil, text))) }

func sampled(event []byte) (s sample, ok bool) {
	if json.Unmarshal(event, &s.Danmaku) != nil || s.MID == "" {
		return s, false
	}
	s.sketch = sketched(s.Text)
	return s, true
}

func (s *sample) user() uint64 { return uint64(people.HashOf(s.User.ID)) }

// watch looks for a raid in what the room is shown, whichever node it comes from: the one where it was said tells of newcomers.
func (r *Room) watch(event []byte) {
	s := r.policy.Load().shielded
	now := r.hub.cfg.Now().UnixMilli()
	if s == nil || !s.auto || s.until > now {
		return
	}
	said, ok := sampled(event)
	if ok && r.raids.Saw(now, said.sketch, said.user(), said.New) && r.raising.CompareAndSwap(false, true) {
		if !r.hub.spawn(func() { defer r.raising.Store(false); r.raise(&said) }) {
			r.raising.Store(false)
		}
	}
}

// raise has a raid begin on all nodes, unless another one was faster.
func (r *Room) raise(seen *sample) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	var was, is protocol.Shield
	err := r.change(ctx, func(s *stored, now int64) *protocol.Error {
		was = s.shield()
		if was.Mode != protocol.ShieldAuto || was.Raid != nil && was.Raid.Until > now {
			return &protocol.Error{Reason: protocol.ReasonConflict}
		}
		was.Raid = nil
		is = protocol.Shield{Mode: was.Mode, Raid: &protocol.Raid{At: now, Until: now + raid.Lasts.Milliseconds(), Sample: seen.Text}}
		s.Shield = &is
		return nil
	})
	if err != nil {
		return
	}
	r.hub.cfg.Metrics.raids.Inc()
	n := r.takeBack(ctx, seen, is.Raid.At)
	r.audit(ctx, AuditEntry{
		Action: protocol.ActionSettings, Text: fmt.Sprintf("%s; %d taken back", Settings{Shield: &is}, n),
		Was: &touched{Settings: &Settings{Shield: &was}}, Is: &touched{Settings: &Settings{Shield: &is}},
	})
	r.hub.cfg.Log.Info("raid", "room", r.id, "taken_back", n)
}

// takeBack deletes what newcomers said of a raid before it was seen, and has it wait for staff like what they say from now on. It returns how
// much that was.
func (r *Room) takeBack(ctx context.Context, seen *sample, at int64) int {
	events, err := r.hub.bus.Recent(ctx, r.id, lookedAt)
	if err != nil {
		r.hub.troubled("what was said of a raid stays", r.id, err)
		return 0
	}
	p := r.policy.Load()
	var all []sample
	for _, event := range events {
		if said, ok := sampled(event); ok && said.New && !said.Released && !p.hides(said.MID) && raid.Before(at, said.TS) && said.sketch.Like(seen.sketch) {
			all = append(all, said)
		}
	}
	var mids []string
	for _, said := range all[max(0, len(all)-takenBack):] {
		held := p.waits(&said.Danmaku, Cause{By: byShield, Detail: seen.Text}, r.hub.cfg.Now().UnixMilli())
		held.MID = r.hub.cfg.MIDs.Next() // by the one that it had it is deleted
		if r.hub.hold(ctx, r.id, held) != nil {
			break // told already
		}
		mids = append(mids, said.MID)
	}
	if len(mids) == 0 {
		return 0
	}
	refused := r.change(ctx, func(s *stored, now int64) *protocol.Error {
		for _, mid := range mids {
			s.remove(mid, now)
		}
		return nil
	})
	if refused != nil {
		return 0
	}
	for _, mid := range mids {
		r.eraseDeleted(ctx, mid, true)
	}
	return len(mids)
}

// clear decides, for somebody, on what the shield holds: of the raid with this sample, or with "" on all.
func (r *Room) clear(by *Identity, what protocol.Action, sample string) {
	r.hub.spawn(func() {
		n := 0
		for _, mid := range r.hub.queue.of(r.id) {
			select {
			case <-r.hub.done:
				return
			default:
			}
			_, err := r.hub.decide(context.Background(), r.id, mid, func(m *protocol.Held, now int64) *protocol.Error { // bounded by the store's time
				if m.State != protocol.HeldWaiting || m.Cause != byShield || sample != "" && m.Detail != sample {
					return &protocol.Error{Reason: protocol.ReasonDecided}
				}
				m.By, m.At, m.State = by.User, now, stateAfter(what)
				return nil
			})
			if err == nil {
				n++
			}
		}
		if n > 0 {
			r.audit(context.Background(), AuditEntry{By: by.User, Role: by.Role, Action: what, Text: fmt.Sprint(n)})
		}
	})
}

// shieldEnds has what the shield holds decided with the change of settings that asks for it, and once a raid is undone: it was none.
func (r *Room) shieldEnds(by *Identity, e *AuditEntry, given *protocol.Shield) {
	raidOf := func(t *touched) string {
		if t == nil || t.Settings == nil || t.Settings.Shield == nil || t.Settings.Shield.Raid == nil {
			return ""
		}
		return t.Settings.Shield.Raid.Sample
	}
	switch was := raidOf(e.Was); {
	case given != nil && given.Held != "":
		r.clear(by, given.Held, was)
	case given == nil && was != "" && raidOf(e.Is) != was:
		r.clear(by, protocol.ActionRelease, was)
	}
}

// pardon notes that a raid was ended before its time: what it said is harmless.
func (r *Room) pardon(old, next *policy) {
	now := r.hub.cfg.Now().UnixMilli()
	if s := old.shielded; s != nil && s.until > now && cmp.Or(next.shielded, &shielded{}).until <= now {
		r.raids.Pardon(now, s.raid)
	}
}
