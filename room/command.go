package room

import (
	"cmp"
	"encoding/json"
	"errors"

	"liveroom/limit"
	"liveroom/protocol"
)

// command is what passes between nodes and leaves no state. On the bus it is JSON.
type command struct {
	Kick     string        `json:"kick,omitempty"`     // a user
	Role     protocol.Role `json:"role,omitempty"`     // of who kicks: nobody of that rank or above is
	Announce string        `json:"announce,omitempty"` // a clean text
}

// command sends c to the room on every node.
func (r *Room) command(c command) *protocol.Error {
	message, err := json.Marshal(c)
	if err == nil {
		err = r.hub.bus.PublishControl(r.id, message)
	}
	if errors.Is(err, ErrForbidden) {
		return r.hub.unheard(r.id, err)
	}
	if err != nil {
		r.hub.troubled("command is not sent", r.id, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	return nil
}

// unheard is the answer to what nobody would get.
func (h *Hub) unheard(room string, err error) *protocol.Error {
	h.troubled("bus forbids it, nobody would get it", room, err)
	return &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(openRetry)}
}

// obey does what a command says.
func (r *Room) obey(message []byte) {
	var c command
	if err := json.Unmarshal(message, &c); err != nil {
		r.hub.troubled("command can't be read", r.id, err)
		return
	}
	var kicked []*Member
	var announcement []byte
	if c.Announce != "" {
		announcement = protocol.AppendAnnounce(nil, c.Announce)
	}
	r.mu.Lock()
	if c.Kick != "" {
		kicked = r.audience.of(c.Kick, nil)
	}
	if announcement != nil && r.audience.size > 0 {
		r.addLocked(protocol.ClassControl, announcement, 0)
	}
	r.mu.Unlock()
	below := rankOf(cmp.Or(c.Role, protocol.RoleHost))
	for _, m := range kicked {
		if rankOf(m.who.Load().Role) >= below {
			continue
		}
		m.session.Close(protocol.Refusal{Code: protocol.CloseKicked})
	}
}
