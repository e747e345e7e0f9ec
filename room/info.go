package room

import (
	"encoding/json"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// Summary is a room in a list.
type Summary struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Online int    `json:"online"` // sessions on all nodes
	Here   int    `json:"-"`      // sessions on this node
	Likes  int64  `json:"likes"`
	Closed bool   `json:"closed"`
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
	for _, a := range []limit.Action{limit.Danmaku, limit.Gift, limit.Like, limit.Join} {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	return Summary{ID: r.id, Title: p.Title, Online: r.crowd.online(), Here: r.crowd.here, Likes: r.likes.total, Closed: p.Closed}
}

// Info returns the room as its host sees it. Rates and refusals are this node's.
func (r *Room) Info() Info {
	p := r.policy.Load()
	now := r.hub.gate.Now()
	i := Info{
		Summary: r.Summary(), SlowModeMS: p.SlowMode, Pinned: p.Pinned,
		Quota: r.quota(now), Refusals: r.stats.newest(now),
		Mutes: inForce(p.Mutes, r.hub.cfg.Now().UnixMilli()), Bans: inForce(p.Bans, r.hub.cfg.Now().UnixMilli()),
	}
	i.Rates.TenSeconds, i.Rates.Minute = r.stats.rates(now, 10), r.stats.rates(now, 60)
	return i
}

// inForce returns those sanctions that are not over, never nil.
func inForce(list []Sanction, now int64) []Sanction {
	out := make([]Sanction, 0, len(list))
	for _, s := range list {
		if !s.over(now) {
			out = append(out, s)
		}
	}
	return out
}
