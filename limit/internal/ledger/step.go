package ledger

import (
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// outcome is what a step does to the key.
type outcome int

const (
	leave  outcome = iota // nothing is written
	write                 // the state, with its time to live
	remove                // the key
)

// step carries a call out on a key, whose state is nil when there is none, while
// the server's clock reads raw. It sets c.Reply or returns cluster.ErrStale. s is
// the caller's to lose: it is changed and returned, or another is.
func step(s *state, c *cluster.Call, raw int64) (*state, outcome, error) {
	now := clockAt(s, c, raw)
	r := &c.Reply
	*r = cluster.Reply{Now: now}
	was := s
	if s != nil && s.kind != c.Tiers[0].Kind {
		s = nil // counted otherwise: what it says is of no use
	}
	fresh := s == nil
	if fresh && (c.Op == cluster.OpReset || c.Op == cluster.OpGive && c.Level >= c.Tiers[c.Want].Size) {
		return s, leave, nil
	}
	if fresh {
		s = create(c, now, was != nil)
	}
	if s.kind == limit.KindSlots {
		s.advance(now)
		s.slotStep(c, raw)
		return s, write, nil
	}
	i := s.find(c.Node)
	if i >= 0 && c.Seq < s.nodes[i].seq && c.Op != cluster.OpReset {
		return s, leave, cluster.ErrStale
	}
	replay := i >= 0 && c.Seq == s.nodes[i].seq && c.Op != cluster.OpReset
	if !replay && !s.enter(c, now) {
		r.Owner, r.Tier, r.Keep = s.owner, int(s.tier), duration(max(s.t+claimed-now, 0))
		return s, leave, nil
	}
	s.advance(now)
	s.offset = now - raw
	if !replay {
		s.chooseTier(c)
		s.adopt(&c.Tiers[s.tier], c)
	}
	switch {
	case replay:
		s.repeat(c, &s.nodes[i])
	case c.Op == cluster.OpReset:
		s.begin(max(s.size-s.outstanding(s.t), 0))
	case c.Op == cluster.OpGive:
		s.give(c)
	default:
		s.draw(c, fresh)
	}
	if s.kind == limit.KindBucket && s.owner == "" {
		s.cap()
	}
	s.forget()
	s.answer(c)
	if c.Op == cluster.OpGive && !replay && s.forgettable(c.Node) {
		return nil, remove, nil
	}
	return s, write, nil
}

// create returns the state of a key that is not there, at the instant now. Where
// it may have been there, its bucket is empty, and for a lease somebody may
// still hold all of it.
func create(c *cluster.Call, now int64, changed bool) *state {
	tier := c.Want
	terms := &c.Tiers[tier]
	s := &state{t: now, kind: terms.Kind, size: terms.Size, num: 0, den: 1, length: lengthOf(terms, c), tier: int64(tier)}
	if terms.Kind == limit.KindBucket {
		s.num, s.den = terms.Num, terms.Den
	}
	lost := changed || c.Lost || c.Received > 0
	knows := c.Op == cluster.OpGive || c.Op == cluster.OpClaim && c.Owned // the level
	switch {
	case knows:
		s.begin(s.size) // lowered to Level by the operation
	case !lost:
		s.begin(terms.Start)
	case s.kind == limit.KindSlots:
		s.records = []record{{now + microsUp(c.Lease), s.size, phantom, 0}}
	default:
		s.begin(0)
		if s.kind == limit.KindBucket {
			s.nodes = []entry{{node: phantom, hold: s.size, expires: now + microsUp(c.Lease), at: now}}
		}
	}
	return s
}

// enter reports whether a call may touch the key, for all that its owner says.
func (s *state) enter(c *cluster.Call, now int64) bool {
	switch {
	case s.owner == "":
	case s.owner == c.Node && (c.Op == cluster.OpClaim || c.Op == cluster.OpGive):
	case c.Op == cluster.OpGive || c.Op == cluster.OpReset:
		return false
	case s.owner == c.Node, s.owner == c.Steal:
		// It gave up without telling: it may have spent all until now.
		s.owner, s.level, s.t = "", 0, now
	case s.owner == c.Free:
		// It gave the bucket back full, or never heard that it had it: it goes
		// on from what it held then, refilled since.
		s.owner = ""
	default:
		return false
	}
	return true
}

// chooseTier changes the tier in force when the audience has asked for another
// long enough without a break.
func (s *state) chooseTier(c *cluster.Call) {
	s.tier = min(s.tier, int64(len(c.Tiers)-1))
	switch {
	case c.Stay || int64(c.Want) == s.tier:
		s.asked = 0
	case s.asked == 0:
		s.asked = s.t
	case s.t-s.asked >= tierHold:
		s.tier, s.asked = int64(c.Want), 0
	}
}

// answer fills in what every reply tells.
func (s *state) answer(c *cluster.Call) {
	r := &c.Reply
	r.Left, r.Tier, r.Owner, r.Others = s.left(), int(s.tier), s.owner, s.others(c.Node)
	r.Keep = duration(s.keep())
	if s.kind == limit.KindFixed {
		r.Ends = duration((s.window+1)*s.length - s.t)
	}
	switch {
	case c.Op == cluster.OpDraw && r.Granted == 0 && c.Least > 0:
		r.Wait = duration(s.wait(c.Least + c.Floor))
	case c.Op == cluster.OpClaim && s.owner != c.Node:
		r.Wait = duration(max(s.heldByOthers(c.Node)-s.t, 0))
	}
}

// repeat answers a call that came before, as far as its grant is still good.
func (s *state) repeat(c *cluster.Call, e *entry) {
	if e.expires > s.t && (s.kind != limit.KindFixed || div(e.granted, s.length) == s.window) {
		c.Reply.Granted = e.grant
	}
}

func (s *state) slotStep(c *cluster.Call, raw int64) {
	s.offset = s.t - raw
	if c.Op != cluster.OpReset {
		s.adopt(&c.Tiers[c.Want], c)
		s.tier = int64(c.Want)
		s.slot(c)
	}
	c.Reply.Left, c.Reply.Tier, c.Reply.Keep = s.left(), int(s.tier), duration(s.keep())
}

// life is the key's time to live, as Redis is told it.
func (s *state) life() time.Duration {
	return time.Duration(up(s.keep(), 1000)) * time.Millisecond
}
