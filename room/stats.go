package room

import (
	"encoding/json"
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/people"
)

// stats are what a room's host sees of its traffic here. mu is a leaf.
type stats struct {
	mu       lock.Mutex[lock.Leaf]
	seconds  [statSeconds]tally // of the last minute, by second
	refusals []Refused          // the newest last
}

const (
	statSeconds = 60
	// mergeWithin is how long refusals of one user by one rule count as one line.
	mergeWithin = time.Minute
)

// MaxRefusals bounds the refusals that a room shows to its host.
const MaxRefusals = 50

type tally struct {
	second int64 // since the clock's epoch
	counts [outcomes]uint32
}

// outcome is what became of a message.
type outcome uint8

const (
	admitted outcome = iota
	degraded
	refused
	// What of the admitted were danmaku, gifts, and taps that count.
	danmakuShown
	giftsShown
	tapsCounted
	outcomes
)

func second(now limit.Instant) int64 { return int64(now) / int64(time.Second) }

// note counts n messages.
func (s *stats) note(now limit.Instant, o outcome, n int) {
	at := second(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.seconds[uint64(at)%statSeconds]
	if t.second != at {
		*t = tally{second: at}
	}
	t.counts[o] += uint32(n)
}

// Refused is one user refused by one rule.
type Refused struct {
	User         string `json:"user"`
	Name         string `json:"name"`
	Action       string `json:"action"`
	Reason       string `json:"reason"`
	Rule         string `json:"rule,omitempty"`
	Scope        string `json:"scope,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Count        int    `json:"count"`
	Time         int64  `json:"time"`   // of the last, Unix ms of the node that refused
	AgeMS        int64  `json:"age_ms"` // of the last, when this was read: nodes' clocks differ

	at limit.Instant // of the last
}

// refuse notes who was refused why, on the line of the same user and rule where there is one.
func (s *stats) refuse(r Refused) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.refusals) - 1; i >= 0; i-- {
		old := s.refusals[i]
		if r.at.Sub(old.at) > mergeWithin {
			break
		}
		if old.User == r.User && old.Action == r.Action && old.Rule == r.Rule && old.Reason == r.Reason {
			r.Count += old.Count
			copy(s.refusals[i:], s.refusals[i+1:])
			s.refusals[len(s.refusals)-1] = r
			return
		}
	}
	if len(s.refusals) >= MaxRefusals {
		copy(s.refusals, s.refusals[1:])
		s.refusals = s.refusals[:MaxRefusals-1]
	}
	s.refusals = append(s.refusals, r)
}

// Rates are messages per second that this node has decided on.
type Rates struct {
	Admitted float64 `json:"admitted"`
	Degraded float64 `json:"degraded"`
	Refused  float64 `json:"refused"`
	Danmaku  float64 `json:"danmaku"` // admitted
	Gift     float64 `json:"gift"`    // stored
	Like     float64 `json:"like"`    // taps that count
}

// Plus adds what another node has decided on.
func (r Rates) Plus(o Rates) Rates {
	return Rates{r.Admitted + o.Admitted, r.Degraded + o.Degraded, r.Refused + o.Refused, r.Danmaku + o.Danmaku, r.Gift + o.Gift, r.Like + o.Like}
}

// rates returns the averages over the last n seconds, the present one included.
func (s *stats) rates(now limit.Instant, n int64) Rates {
	at := second(now)
	var sum [outcomes]uint32
	s.mu.Lock()
	for i := range s.seconds {
		if t := &s.seconds[i]; t.second > at-n && t.second <= at {
			for o := range sum {
				sum[o] += t.counts[o]
			}
		}
	}
	s.mu.Unlock()
	per := func(o outcome) float64 { return float64(sum[o]) / float64(n) }
	return Rates{per(admitted), per(degraded), per(refused), per(danmakuShown), per(giftsShown), per(tapsCounted)}
}

// Rates returns the averages over the last ten seconds, of this node.
func (r *Room) Rates() Rates { return r.stats.rates(r.hub.gate.Now(), 10) }

// refusals returns the room's, the newest first, without those of users who were erased since.
func (r *Room) refusals(now limit.Instant) []Refused {
	return slices.DeleteFunc(r.stats.newest(now), func(f Refused) bool { return r.hub.bus.ErasedUntil(f.User) >= f.Time })
}

// newest returns the refusals, the newest first.
func (s *stats) newest(now limit.Instant) []Refused {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Refused, len(s.refusals))
	for i, r := range s.refusals {
		r.AgeMS = max(0, now.Sub(r.at).Milliseconds())
		out[len(out)-1-i] = r
	}
	return out
}

// count notes what became of a message, for its host to see.
func (r *Room) count(now limit.Instant, by *Speaker, req *protocol.Request, ack *protocol.Ack) {
	switch {
	case ack.Code == protocol.OK:
		by.place.admitted.Add(1)
		r.stats.note(now, admitted, 1)
		r.countShown(now, req, req.Count)
		return
	case ack.Code == protocol.Degraded:
		r.stats.note(now, degraded, 1)
		if req.Op == protocol.OpLike {
			r.countShown(now, req, ack.Counted)
		}
		return
	}
	by.place.refused.Add(1)
	r.stats.note(now, refused, 1)
	if ack.Code == protocol.TooMany {
		r.people.Refuse(refusedLine(by, req.Op, ack.Err))
		r.stats.refuse(Refused{
			User: by.who.User, Name: by.who.Name, Action: string(req.Op), Reason: string(ack.Err.Reason),
			Rule: ack.Err.Rule, Scope: ack.Err.Scope, RetryAfterMS: ack.Err.RetryAfter.Milliseconds(),
			Count: 1, Time: r.hub.cfg.Now().UnixMilli(), at: now,
		})
	}
}

// countShown counts what viewers see of a message, by kind.
func (r *Room) countShown(now limit.Instant, req *protocol.Request, taps int) {
	switch req.Op {
	case protocol.OpDanmaku:
		r.stats.note(now, danmakuShown, 1)
	case protocol.OpGift:
		r.stats.note(now, giftsShown, 1)
	case protocol.OpLike:
		r.stats.note(now, tapsCounted, taps)
	}
}

// Summary is a room in a list.
type Summary struct {
	ID         string `json:"id"`
	Title      string `json:"title"`
	Online     int    `json:"online"` // sessions on all nodes
	People     int    `json:"people"` // who have them
	Here       int    `json:"-"`      // sessions on this node
	PeopleHere int    `json:"-"`
	Likes      int64  `json:"likes"`
	Closed     bool   `json:"closed"`
}

// Info is a room as its host sees it.
type Info struct {
	Summary
	SlowModeMS int64           `json:"slow_mode_ms"`
	Pinned     json.RawMessage `json:"pinned"` // a danmaku event, or null
	Rates      struct {
		TenSeconds Rates `json:"10s"`
		Minute     Rates `json:"60s"`
	} `json:"rates"`
	Quota    []Quota    `json:"quota"`    // of the room's buckets, as a viewer's messages meet them
	Refusals []Refused  `json:"refusals"` // of the last ones, the newest first
	Mutes    []Sanction `json:"mutes"`
	Bans     []Sanction `json:"bans"`
	// Appointed are the room's own moderators, and those who are none in spite of their tokens.
	Appointed []standing `json:"appointed"`
	Allowed   []string   `json:"allowed"` // guests whom bans of others' networks do not bar
	protocol.Speech
	Review protocol.Review   `json:"review"`
	Shield protocol.Shield   `json:"shield"`
	Filter protocol.WordList `json:"filter"`

	Shows []people.Told `json:"-"` // the newest first
}

// Quota is one of a room's buckets for one action.
type Quota struct {
	Rule         string `json:"rule"`
	Action       string `json:"action"`
	Level        int64  `json:"level"` // tokens in it now
	Burst        int64  `json:"burst"` // when it is full
	Shadow       bool   `json:"shadow,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"` // until it has one more; 0: it has, or never will
}

// quota reads the levels of the room's buckets.
func (r *Room) quota(now limit.Instant) []Quota {
	out := []Quota{}
	for _, a := range append(limit.Messages(), limit.Join) {
		q := limit.Request{Action: a, Cost: 1, Role: string(protocol.RoleViewer), Room: r.id, Audience: r.Online()}
		for _, s := range r.hub.gate.Explain(now, &q, &r.subject) {
			if s.Why != "applies" && s.Why != "shadow" {
				continue
			}
			line := Quota{Rule: s.Rule, Action: a.String(), Level: s.Level, Burst: s.Burst, Shadow: s.Why == "shadow"}
			if s.RetryAfter != limit.Never {
				line.RetryAfterMS = (s.RetryAfter + time.Millisecond - 1).Milliseconds()
			}
			out = append(out, line)
		}
	}
	return out
}

// Summary returns the room's line in a list.
func (r *Room) Summary() Summary {
	p := r.policy.Load()
	online, here, likes := r.audience.Counts()
	return Summary{ID: r.id, Title: p.Title, Online: online, People: r.people.Now(), Here: here, PeopleHere: r.people.Here(), Likes: likes, Closed: p.Closed}
}

// Info returns the room as its host sees it. Rates and refusals are this node's.
func (r *Room) Info() Info {
	p := r.policy.Load()
	now := r.hub.gate.Now()
	i := Info{
		Summary: r.Summary(), SlowModeMS: p.SlowMode, Pinned: p.Pinned,
		Quota: r.quota(now), Refusals: r.refusals(now),
		Mutes: inForce(p.Mutes, r.hub.cfg.Now().UnixMilli()), Bans: inForce(p.Bans, r.hub.cfg.Now().UnixMilli()),
		Appointed: append([]standing{}, p.Appointed...), Allowed: append([]string{}, p.Allowed...), Speech: p.Speech, Review: p.review(), Shield: p.shield(), Filter: p.filter(),
	}
	i.Shows = r.hub.leftOf(r.people.Shows())
	i.Rates.TenSeconds, i.Rates.Minute = r.stats.rates(now, 10), r.stats.rates(now, 60)
	return i
}

// inForce returns those sanctions that are not over, never nil.
func inForce(list []Sanction, now int64) []Sanction {
	out := make([]Sanction, 0, len(list))
	for _, s := range list {
		if !s.over(now) {
			s.Marks = nil // of use to nobody
			out = append(out, s)
		}
	}
	return out
}
