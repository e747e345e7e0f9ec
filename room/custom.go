package room

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"liveroom/internal/admit"
	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// custom is a custom event between nodes: a line of JSON, and behind it the event as viewers get it.
type custom struct {
	MID     string      `json:"mid"`
	Content uint64      `json:"content"`
	TS      int64       `json:"ts"` // instant of admission, Unix ms
	To      protocol.To `json:"to"`
	User    string      `json:"user,omitempty"`
	Class   string      `json:"class"`

	event []byte
}

// encode is undone by parseCustom.
func (c *custom) encode() ([]byte, error) {
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), c.event...), nil
}

func parseCustom(message []byte) (*custom, error) {
	head, event, ok := bytes.Cut(message, []byte("\n"))
	if !ok {
		return nil, errors.New("custom event without its line of JSON")
	}
	c := &custom{event: event}
	if err := json.Unmarshal(head, c); err != nil {
		return nil, fmt.Errorf("custom event: %w", err)
	}
	return c, nil
}

// heardMost is how many custom events of a room, and of those for all rooms, a node knows again.
const heardMost = 1000

// heard are the newest custom events, so that what a platform sends again is shown once on each node, by whichever it is sent.
type heard struct {
	mu    lock.Mutex[lock.Leaf]
	known map[string]custom // by mid, without the events
	order []string          // by the time they came; a ring once it is full
	next  int
}

// take calls f with an event that is not known, and knows it once f has taken it. f must not block. False: f did not take it.
func (h *heard) take(c *custom, f func() bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.known[c.MID]; ok {
		return true
	}
	if !f() {
		return false
	}
	h.noteLocked(c)
	return true
}

func (h *heard) noteLocked(c *custom) {
	if h.known == nil {
		h.known = map[string]custom{}
	}
	h.known[c.MID] = custom{Content: c.Content, TS: c.TS}
	if len(h.order) < heardMost {
		h.order = append(h.order, c.MID)
		return
	}
	delete(h.known, h.order[h.next])
	h.order[h.next] = c.MID
	h.next = (h.next + 1) % heardMost
}

func (h *heard) of(mid string) (custom, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.known[mid]
	return c, ok
}

// Emit has a room's viewers told of a custom event, on every node, and returns its answer. The same id of the same caller is
// told of once, whichever node is asked, as long as the room's newest 1,000 go back.
func (h *Hub) Emit(ctx context.Context, room string, c Caller, e *protocol.Custom) protocol.Ack {
	if err := e.Check(h.types); err != nil {
		return protocol.Refuse(e.ID, err)
	}
	r, err := h.enter(ctx, room, c.Create)
	if err != nil {
		return protocol.Refuse(e.ID, err)
	}
	defer h.exit(r)
	u, p, err := h.attach(r, c.Who.User)
	if err != nil {
		return protocol.Refuse(e.ID, err)
	}
	defer h.detach(u, p)
	return r.emit(&Speaker{who: &c.Who, user: u, place: p, addr: c.Addr}, e)
}

func (r *Room) emit(by *Speaker, e *protocol.Custom) protocol.Ack {
	mid := e.MID(by.who.User, r.id)
	if ack, known := again(&r.heard, mid, e); known {
		r.hub.cfg.Metrics.repeats.Inc()
		return ack
	}
	now := r.hub.gate.Now()
	d := r.ask(now, by, limit.Event, 1)
	if d.Verdict != limit.Reject {
		defer r.giveBack(now, by, limit.Event, 1)
	}
	if d.Verdict != limit.Allow { // half an event is none
		return protocol.Refuse(e.ID, admit.Error(protocol.ReasonRateLimited, d))
	}
	time.Sleep(min(d.Delay, LongestDelay))
	c := newCustom(mid, e, r.hub.admittedAt(now, d))
	message, err := c.encode()
	if err == nil {
		err = r.hub.bus.Publish(protocol.ClassEvent, r.id, message)
	}
	if err != nil {
		return protocol.Refuse(e.ID, r.hub.unsent(r.id, err))
	}
	r.hub.noteCustom(r.id, c)
	r.hub.cfg.Metrics.messages[protocol.ClassEvent].Inc()
	return protocol.Ack{ID: e.ID, Code: protocol.OK, MID: mid, TS: c.TS}
}

// again is the answer to an event that is known.
func again(h *heard, mid string, e *protocol.Custom) (ack protocol.Ack, known bool) {
	first, known := h.of(mid)
	if known && first.Content != e.Content() {
		return protocol.Refuse(e.ID, &protocol.Error{Reason: protocol.ReasonConflict}), true
	}
	return protocol.Ack{ID: e.ID, Code: protocol.OK, MID: mid, TS: first.TS, Duplicate: true}, known
}

// newCustom encodes an event, once for ever.
func newCustom(mid string, e *protocol.Custom, ts int64) *custom {
	const around = 96 // keys, mid and ts
	event := protocol.AppendCustom(make([]byte, 0, around+len(e.Type)+len(e.Data)), mid, e, ts)
	return &custom{MID: mid, Content: e.Content(), TS: ts, To: e.To, User: e.User, Class: e.Class, event: event}
}

// customs takes a custom event from the bus.
func (r *Room) customs(message []byte) {
	c, err := parseCustom(message)
	if err != nil {
		r.hub.troubled("custom event can't be read", r.id, err)
		return
	}
	fresh := false
	r.heard.take(c, func() bool { fresh = true; return true })
	if fresh {
		r.tell(c)
	}
}

// tell hands a custom event to those members here that it is for.
func (r *Room) tell(c *custom) {
	switch {
	case c.To == protocol.ToUser:
		for _, m := range r.here(c.User) {
			m.session.Control(c.event)
		}
	case c.To == protocol.ToHosts:
		for _, m := range r.audience.Where(func(m *Member) bool { return m.who.Load().Role == protocol.RoleHost }) {
			m.session.Control(c.event)
		}
	case c.Class == protocol.ClassDanmaku.String():
		r.audience.Message(protocol.ClassEvent, c.event)
	default:
		r.audience.Control(c.event)
	}
}

const (
	// maxCasts bounds the events for all rooms that wait for their turn.
	maxCasts = 64
	// castSlice is how many sessions are told of one within a tick at most, some 16 ms of writing, and castTicks over how many ticks a
	// node's are spread at least. A room is told whole, as of anything that is said in it.
	castSlice, castTicks = 2000, 8
)

// anyRoom stands for all rooms where an event is named. It is no room's id.
const anyRoom = "*"

// Cast is [Hub.Emit] for all rooms: each node tells its rooms one after the other, not all in one tick. Its rules are those of the caller
// and of all. An answer of 503 means that not every node has it: the same id again brings it to those that lack it.
func (h *Hub) Cast(ctx context.Context, who Identity, e *protocol.Custom) protocol.Ack {
	if err := e.Check(h.types); err != nil {
		return protocol.Refuse(e.ID, err)
	}
	mid := e.MID(who.User, anyRoom)
	ack, known := again(&h.heard, mid, e)
	if ack.Code == protocol.Conflict {
		return ack
	}
	if !known {
		d, err := h.askCast(&who)
		if err != nil {
			return protocol.Refuse(e.ID, err)
		}
		ack = protocol.Ack{ID: e.ID, Code: protocol.OK, MID: mid, TS: h.stamps.at(max(d.At, h.gate.Now()))}
	}
	c := newCustom(mid, e, ack.TS)
	message, err := c.encode()
	if err == nil {
		err = h.everywhere(ctx, message)
	}
	if err != nil {
		return protocol.Refuse(e.ID, h.unsent("", err))
	}
	h.noteCustom("", c)
	h.cfg.Metrics.messages[protocol.ClassEvent].Inc()
	return ack
}

// askCast puts an event for all rooms to the gate.
func (h *Hub) askCast(who *Identity) (limit.Decision, *protocol.Error) {
	u := h.user(who.User)
	if u == nil {
		return limit.Decision{}, &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry), Detail: "this node has no place for another user"}
	}
	defer h.forgo(u)
	now := h.gate.Now()
	q := limit.Request{Action: limit.Event, Cost: 1, Role: string(who.Role), User: who.User}
	d := h.gate.Decide(now, &q, &u.subject, &h.global)
	if d.Verdict != limit.Reject {
		h.gate.Release(now, &q, &u.subject, &h.global)
	}
	if d.Verdict != limit.Allow {
		return d, admit.Error(protocol.ReasonRateLimited, d)
	}
	time.Sleep(min(d.Delay, LongestDelay))
	return d, nil
}

func (h *Hub) everywhere(ctx context.Context, message []byte) error {
	if h.cfg.Everywhere == nil {
		return h.Heard(message)
	}
	return h.cfg.Everywhere(ctx, message)
}

// unsent is the answer to what not all nodes were told.
func (h *Hub) unsent(room string, err error) *protocol.Error {
	if errors.Is(err, ErrForbidden) {
		return h.unheard(room, err)
	}
	h.troubled("custom event is not sent", room, err)
	return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
}

// errCasts says that as many events for all rooms wait as may.
var errCasts = errors.New("room: too many events for all rooms wait for their turn")

// Heard takes what [Config.Everywhere] brings, from this node or another. It does not wait for the rooms to be told.
func (h *Hub) Heard(message []byte) error {
	c, err := parseCustom(message)
	if err != nil {
		return err
	}
	taken := h.heard.take(c, func() bool {
		select {
		case h.toCast <- c:
			return true
		default:
			return false
		}
	})
	if !taken {
		return errCasts
	}
	return nil
}

// castAll tells all rooms of one event after the other, and of what can be given.
func (h *Hub) castAll() {
	for {
		select {
		case c := <-h.toCast:
			if !h.inTurn(func(r *Room) { r.tell(c) }) {
				return
			}
		case <-h.offered:
			if !h.tellCatalogue() {
				return
			}
		case <-h.done:
			return
		}
	}
}
