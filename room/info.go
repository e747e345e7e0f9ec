package room

import (
	"encoding/json"
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
	Refusals []Refused  `json:"refusals"` // of the last ones, the newest first
	Mutes    []Sanction `json:"mutes"`
	Bans     []Sanction `json:"bans"`
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
		Refusals: r.stats.newest(),
		Mutes:    inForce(p.Mutes, r.hub.cfg.Now().UnixMilli()), Bans: inForce(p.Bans, r.hub.cfg.Now().UnixMilli()),
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
