package room

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"liveroom/protocol"
)

// Person is what one node knows of a user in a room, for those who moderate it.
type Person struct {
	User     string            `json:"user"`
	Name     string            `json:"name,omitempty"`
	Role     protocol.Role     `json:"role"` // in the room
	Guest    bool              `json:"guest,omitempty"`
	Sessions int               `json:"sessions"`
	Since    int64             `json:"since,omitempty"` // Unix ms; since when here, as far as anybody remembers
	Admitted int               `json:"admitted"`        // messages since then
	Refused  int               `json:"refused"`
	Messages []json.RawMessage `json:"messages"` // danmaku of the last minutes, the newest first
	Refusals []Refused         `json:"refusals"` // by limits
}

// mostSaid bounds the messages that are told of somebody.
const mostSaid = 20

// Person tells what this node knows of a user.
func (r *Room) Person(user string) Person {
	p := Person{User: user, Role: r.roleOf(user), Messages: []json.RawMessage{}, Refusals: []Refused{}}
	p.Guest = strings.HasPrefix(user, protocol.GuestPrefix)
	for _, m := range r.here(user) {
		p.Name = m.who.Load().Name
		p.Sessions++
	}
	if at := r.hub.placeOf(r.id, user); at != nil {
		p.Since, p.Admitted, p.Refused = at.since.UnixMilli(), int(at.admitted.Load()), int(at.refused.Load())
	}
	for _, event := range r.audience.Said(user, mostSaid) {
		p.Messages = append(p.Messages, event)
	}
	for _, f := range r.refusals(r.hub.gate.Now()) {
		if f.User == user {
			p.Refusals = append(p.Refusals, f)
		}
	}
	return p
}

// Join adds what another node knows of the same user. What was said all nodes know.
func (p *Person) Join(o Person) {
	p.Name = cmp.Or(p.Name, o.Name)
	if rankOf(o.Role) > rankOf(p.Role) {
		p.Role = o.Role
	}
	p.Sessions += o.Sessions
	p.Admitted += o.Admitted
	p.Refused += o.Refused
	if o.Since != 0 && (p.Since == 0 || o.Since < p.Since) {
		p.Since = o.Since
	}
	if len(o.Messages) > len(p.Messages) {
		p.Messages = o.Messages
	}
	p.Refusals = append(p.Refusals, o.Refusals...)
}

// placeOf returns a user's place in a room, nil when it is not remembered here.
func (h *Hub) placeOf(room, user string) *place {
	h.mu.Lock()
	u := h.users[user]
	h.mu.Unlock()
	if u == nil {
		return nil
	}
	return u.placeIn(room)
}

// InForce is a mute or a ban that is not over.
type InForce struct {
	Kind protocol.Action `json:"kind"` // mute or ban
	Sanction
	LeftMS int64  `json:"left_ms,omitempty"` // 0: for ever
	Cursor string `json:"cursor"`            // the list goes on after it
}

// farAhead is later than any time, in Unix ms.
const farAhead = int64(1e14)

// Sanctions lists the mutes and bans in force, the newest first. kind "" is both, user "" is everybody, after "" begins at the newest.
func (r *Room) Sanctions(kind protocol.Action, user, after string, limit int) []InForce {
	p, now := r.policy.Load(), r.hub.cfg.Now().UnixMilli()
	out := []InForce{}
	add := func(of protocol.Action, list []Sanction) {
		for _, s := range inForce(list, now) {
			if kind != "" && kind != of || user != "" && user != s.User {
				continue
			}
			f := InForce{Kind: of, Sanction: s, Cursor: fmt.Sprintf("%015d-%s-%s", farAhead-s.At, of, s.User)}
			f.Marks = nil // of use to nobody
			if s.Until > 0 {
				f.LeftMS = s.Until - now
			}
			if f.Cursor > after {
				out = append(out, f)
			}
		}
	}
	add(protocol.ActionMute, p.Mutes)
	add(protocol.ActionBan, p.Bans)
	slices.SortFunc(out, func(a, b InForce) int { return strings.Compare(a.Cursor, b.Cursor) })
	return out[:min(len(out), limit)]
}
