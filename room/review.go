package room

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// Bounds of what waits for staff.
const (
	maxHeld     = 10_000 // messages of one room, about; each node counts what it has heard of
	maxHeldAll  = 50_000 // of all rooms
	heldRetry   = 10 * time.Second
	reviewEvery = time.Second
	reviewMost  = 1_000 // decided by time in one round
	// reviewLate is how much later than their time a node decides on messages of rooms that it does not have.
	reviewLate = 3 * time.Second
	// showAgain is how long after a decision another node shows what was released, if it was not told that it is shown.
	showAgain = 10 * time.Second
)

// review is what becomes of held messages that nobody decides on.
func (s *stored) review() protocol.Review {
	if s.Review == nil {
		return protocol.UsualReview
	}
	return *s.Review
}

// Cause is why a message waits for staff.
type Cause struct {
	By     string // who holds it: filter, hook, shield
	Detail string // what for; shown to staff alone
}

// withhold keeps an admitted danmaku for staff to decide on, and answers its sender. m has all but Hidden; nobody is shown it until it is
// released. It waits for the store.
func (r *Room) withhold(ctx context.Context, by *Speaker, m protocol.Said, why Cause) protocol.Ack {
	return by.answered(m.Request, func() protocol.Ack {
		d := protocol.Danmaku{MID: m.MID, User: m.User, Text: m.Request.Text, Color: m.Request.Color, Mode: m.Request.Mode, Reply: m.Request.Reply, ReplyTo: m.Request.ReplyTo, TS: m.TS}
		held := r.policy.Load().waits(&d, why, m.TS)
		if err := r.hub.hold(ctx, r.id, held); err != nil {
			return protocol.Refuse(m.Request.ID, err)
		}
		return protocol.Ack{ID: m.Request.ID, Code: protocol.Degraded, MID: m.MID, TS: m.TS, Err: &protocol.Error{Reason: protocol.ReasonHeld}}
	})
}

// waits is a danmaku that waits for staff from an instant on, Unix ms.
func (s *stored) waits(d *protocol.Danmaku, why Cause, from int64) *protocol.Held {
	v := s.review()
	return &protocol.Held{
		MID: d.MID, State: protocol.HeldWaiting, Cause: why.By, Detail: why.Detail, User: d.User, Text: d.Text, Color: d.Color, Mode: d.Mode, Reply: d.Reply, ReplyTo: d.ReplyTo,
		Until: from + int64(v.Seconds)*1000, Then: v.Then, TS: d.TS,
	}
}

// hold stores a message that waits.
func (h *Hub) hold(ctx context.Context, room string, m *protocol.Held) *protocol.Error {
	if !h.queue.reserve(room, m.MID, m.Until) {
		h.cfg.Metrics.held[heldFull].Inc()
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(heldRetry), Detail: "as many messages wait for a moderator as may"}
	}
	seq, err := h.putHeld(ctx, room, m, 0, false)
	if err != nil {
		h.queue.forget(room, m.MID)
		h.cfg.Metrics.held[heldFailed].Inc()
		h.troubled("a message can't be held", room, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	h.queue.take(room, m.MID, seq, m.Until)
	h.cfg.Metrics.held[heldWaits].Inc()
	return nil
}

func (h *Hub) putHeld(ctx context.Context, room string, m *protocol.Held, last uint64, done bool) (uint64, error) {
	value, err := m.Encode()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	seq, err := h.bus.PutHeld(ctx, room, m.MID, value, last, done)
	if err == nil && !m.Shown { // told as it was released
		h.note(room, value)
	}
	return seq, err
}

// readHeld returns a held message and its number; nil when there is none.
func (h *Hub) readHeld(ctx context.Context, room, mid string) (*protocol.Held, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	value, seq, err := h.bus.ReadHeld(ctx, room, mid)
	if err != nil || seq == 0 {
		return nil, 0, err
	}
	m, err := protocol.ParseHeld(value)
	return m, seq, err
}

// judge decides on a held message of the room for somebody, once over all nodes, and tells the audit whose it was.
func (r *Room) judge(ctx context.Context, by *Identity, req *protocol.Request, e *AuditEntry) *protocol.Error {
	m, err := r.hub.decide(ctx, r.id, req.MID, func(m *protocol.Held, now int64) *protocol.Error {
		switch role := roleOr(m.User.Role); {
		case m.State != protocol.HeldWaiting:
			return &protocol.Error{Reason: protocol.ReasonDecided, Detail: string(m.State) + " by " + decidedBy(m)}
		case m.User.ID == by.User && req.Action == protocol.ActionRelease:
			return &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "mid: this is your own"}
		case m.User.ID != by.User && decides[rankOf(by.Role)][rankOf(role)]&acts == 0:
			return higher(role, by.Role)
		}
		m.By, m.At, m.State = by.User, now, stateAfter(req.Action)
		return nil
	})
	if err == nil {
		e.User, e.Text = m.User.ID, m.Text
	}
	return err
}

func roleOr(role protocol.Role) protocol.Role {
	if role == "" {
		return protocol.RoleViewer
	}
	return role
}

// decidedBy names who has decided.
func decidedBy(m *protocol.Held) string {
	if m.By == "" {
		return "its time limit"
	}
	return m.By
}

func stateAfter(what protocol.Action) protocol.HeldState {
	if what == protocol.ActionRelease {
		return protocol.HeldReleased
	}
	return protocol.HeldDropped
}

// decide has edit decide on a held message, and shows it if it is released. The store takes one decision; who is slower is told of it by
// edit, which is asked again.
func (h *Hub) decide(ctx context.Context, room, mid string, edit func(m *protocol.Held, now int64) *protocol.Error) (*protocol.Held, *protocol.Error) {
	later := &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	for range changeAttempts {
		m, last, err := h.readHeld(ctx, room, mid)
		if err != nil {
			h.troubled("held messages can't be read", room, err)
			return nil, later
		}
		if m == nil {
			h.queue.forget(room, mid)
			return nil, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "mid: no message of this room that waits"}
		}
		if refusal := edit(m, h.cfg.Now().UnixMilli()); refusal != nil {
			return nil, refusal
		}
		dropped := m.State == protocol.HeldDropped
		seq, err := h.putHeld(ctx, room, m, last, dropped)
		switch {
		case errors.Is(err, ErrConflict):
			continue
		case err != nil:
			h.troubled("a decision is not stored", room, err)
			return nil, later
		case dropped:
			h.queue.forget(room, mid)
		default:
			h.queue.take(room, mid, seq, m.At+showAgain.Milliseconds())
			h.showHeld(ctx, room, m, seq)
		}
		h.cfg.Metrics.held[heldOutcome(m)].Inc()
		return m, nil
	}
	return nil, later
}

// showHeld shows what was released, then stores that it is shown. When a node ends between the two, another shows it once more, and those
// who know it drop it.
func (h *Hub) showHeld(ctx context.Context, room string, m *protocol.Held, last uint64) {
	event := protocol.AppendDanmaku(nil, m.Danmaku())
	err := h.bus.Publish(protocol.ClassDanmaku, room, event)
	if err == nil {
		m.Shown = true
		_, err = h.putHeld(ctx, room, m, last, true)
	}
	if err != nil && !errors.Is(err, ErrConflict) {
		h.troubled("a released message is shown later", room, err)
		return
	}
	h.queue.forget(room, m.MID)
	h.cfg.Metrics.messages[protocol.ClassDanmaku].Inc()
}

// overdue decides on what nobody has decided on in time.
func (h *Hub) overdue() {
	tick := time.NewTicker(reviewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.done:
			return
		}
		now := h.cfg.Now()
		for _, q := range h.queue.due(now.UnixMilli()) {
			if _, here := h.Room(q.room); !here && now.Add(-reviewLate).UnixMilli() < q.until {
				continue // who has the room comes first
			}
			select {
			case <-h.done:
				return
			default:
				h.expire(context.Background(), q.room, q.mid) // bounded by the store's time
			}
		}
	}
}

// expire decides on one message whose time is over, or shows one that was released and not shown.
func (h *Hub) expire(ctx context.Context, room, mid string) {
	m, last, err := h.readHeld(ctx, room, mid)
	switch {
	case err != nil:
		h.troubled("held messages can't be read", room, err)
	case m == nil || m.State == protocol.HeldDropped || m.Shown:
		h.queue.forget(room, mid)
	case m.State == protocol.HeldReleased:
		h.showHeld(ctx, room, m, last)
	default:
		h.timeOut(ctx, room, mid)
	}
}

func (h *Hub) timeOut(ctx context.Context, room, mid string) {
	m, err := h.decide(ctx, room, mid, func(m *protocol.Held, now int64) *protocol.Error {
		if m.State != protocol.HeldWaiting || m.Until > now {
			return &protocol.Error{Reason: protocol.ReasonDecided}
		}
		m.At, m.State = now, stateAfter(m.Then)
		return nil
	})
	if err == nil {
		h.audit(ctx, room, AuditEntry{Action: m.Then, User: m.User.ID, MID: mid, Text: m.Text, Reason: "nobody decided in time"})
	}
}

// HeardHeld takes what is stored of a held message, from this node or another. known tells that it was there before this node.
func (h *Hub) HeardHeld(room string, seq uint64, value []byte, known bool) {
	m, err := protocol.ParseHeld(value)
	if err != nil {
		h.troubled("a held message can't be read", room, err)
		return
	}
	switch {
	case m.State == protocol.HeldWaiting:
		h.queue.take(room, m.MID, seq, m.Until)
	case m.State == protocol.HeldReleased && !m.Shown:
		h.queue.take(room, m.MID, seq, m.At+showAgain.Milliseconds())
	default:
		h.queue.forget(room, m.MID)
	}
	h.cfg.Metrics.waiting.Set(float64(h.queue.len()))
	if r, ok := h.Room(room); ok && !known && !m.Shown {
		r.tellHeld(m, value)
	}
}

// tellHeld tells the room's staff here of a held message, and its sender that it was dropped.
func (r *Room) tellHeld(m *protocol.Held, event []byte) {
	for _, v := range r.audience.Where(func(v *Member) bool { return mayModerate(v.acting().Role) }) {
		v.session.Control(event)
	}
	if m.State != protocol.HeldDropped {
		return
	}
	for _, v := range r.here(m.User.ID) {
		if !mayModerate(v.acting().Role) {
			v.session.Control(protocol.AppendHeld(nil, m.MID, m.State))
		}
	}
}

// queue is what waits for staff in any room, as this node has heard.
type queue struct {
	mu    lock.Mutex[lock.Leaf]
	rooms map[string]map[string]waiting // by mid
	size  int
}

// waiting is one held message.
type waiting struct {
	seq   uint64 // 0 while it is being stored
	until int64  // when somebody has to look at it, Unix ms
}

// reserve finds a place for a message.
func (q *queue) reserve(room, mid string, until int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size >= maxHeldAll || len(q.rooms[room]) >= maxHeld {
		return false
	}
	q.putLocked(room, mid, waiting{until: until})
	return true
}

func (q *queue) putLocked(room, mid string, w waiting) {
	of := q.rooms[room]
	if of == nil {
		of = map[string]waiting{}
		q.rooms[room] = of
	}
	if _, ok := of[mid]; !ok {
		q.size++
	}
	of[mid] = w
}

// take notes what is stored, unless something newer is known.
func (q *queue) take(room, mid string, seq uint64, until int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if have, ok := q.rooms[room][mid]; !ok || seq > have.seq {
		q.putLocked(room, mid, waiting{seq, until})
	}
}

func (q *queue) forget(room, mid string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.rooms[room]
	if _, ok := of[mid]; !ok {
		return
	}
	q.size--
	if delete(of, mid); len(of) == 0 {
		delete(q.rooms, room)
	}
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size
}

// of returns what waits in a room, in the order in which it was held.
func (q *queue) of(room string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.rooms[room]
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Compare(of[a].seq, of[b].seq) })
}

// any reports whether something of the room waits.
func (q *queue) any(room string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.rooms[room]) > 0
}

// queued is a held message whose time is over.
type queued struct {
	room, mid string
	until     int64
}

// due returns some of those whose time is over.
func (q *queue) due(now int64) (out []queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for room, of := range q.rooms {
		for mid, w := range of {
			if w.seq > 0 && w.until <= now {
				out = append(out, queued{room, mid, w.until})
			}
			if len(out) >= reviewMost {
				return out
			}
		}
	}
	return out
}
