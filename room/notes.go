package room

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"liveroom/protocol"
)

// Events that are told to back ends alone, beside what viewers are shown.
const (
	noteRoom     = "room"
	noteAudience = "audience"
	noteSession  = "session"
)

// visitsEvery is how long joins and leaves are summed.
const visitsEvery = 10 * time.Second

// visits are a room's joins and leaves that no back end was told of yet.
type visits struct{ joined, left atomic.Int64 }

// roomNote says that a room came to be.
type roomNote struct {
	Event  string `json:"ev"`
	Action string `json:"action"` // made
	Node   string `json:"node,omitempty"`
	TS     int64  `json:"ts"`
}

// audienceNote sums up who came and went on one node.
type audienceNote struct {
	Event  string `json:"ev"`
	Node   string `json:"node,omitempty"`
	Joined int64  `json:"joined"`
	Left   int64  `json:"left"`
	Here   int    `json:"here"`   // sessions on this node now
	Online int    `json:"online"` // on all nodes, as far as this one knows
	TS     int64  `json:"ts"`
}

// sessionNote says who came or went.
type sessionNote struct {
	Event   string        `json:"ev"`
	Action  string        `json:"action"` // joined or left
	Session string        `json:"session"`
	User    protocol.User `json:"user"`
	Node    string        `json:"node,omitempty"`
	TS      int64         `json:"ts"`
}

// note keeps an event for who reads on. What can't be kept is counted: nobody waits for it.
func (h *Hub) note(room string, event any) {
	raw, encoded := event.([]byte)
	var err error
	if !encoded {
		raw, err = json.Marshal(event)
	}
	if err == nil {
		err = h.bus.Note(room, raw)
	}
	if err != nil {
		h.cfg.Metrics.unnoted.Inc()
		h.troubled("event is not kept for back ends", room, err)
	}
}

// noteVisits tells of each room's joins and leaves now and then. What is left then, a room tells as it closes.
func (h *Hub) noteVisits() {
	tick := time.NewTicker(visitsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, r := range h.opened() {
				r.noteVisits()
			}
		case <-h.done:
			return
		}
	}
}

func (r *Room) noteVisits() {
	joined, left := r.visits.joined.Swap(0), r.visits.left.Swap(0)
	if joined == 0 && left == 0 {
		return
	}
	online, here, _ := r.audience.Counts()
	r.hub.note(r.id, audienceNote{noteAudience, r.hub.cfg.Node, joined, left, here, online, r.hub.cfg.Now().UnixMilli()})
}

// noteSession counts who joined or left, and tells of each where that is asked for.
func (r *Room) noteSession(m *Member, action string, count *atomic.Int64) {
	count.Add(1)
	if cfg := &r.hub.cfg; cfg.NoteSessions {
		r.hub.note(r.id, sessionNote{noteSession, action, m.id, m.acting().shown(), cfg.Node, cfg.Now().UnixMilli()})
	}
}

// noteCustom keeps a custom event with whom it was for.
func (h *Hub) noteCustom(room string, c *custom) {
	whom, err := json.Marshal(struct {
		To    protocol.To `json:"to,omitempty"`
		User  string      `json:"user,omitempty"`
		Class string      `json:"class,omitempty"`
	}{c.To, c.User, c.Class})
	event := c.event
	if err == nil && len(whom) > len("{}") {
		event = append(append(append([]byte{}, event[:len(event)-1]...), ','), whom[1:]...)
	}
	h.note(room, event)
}
