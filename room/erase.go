package room

import (
	"context"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/people"
)

// Erasure is what is to be forgotten: one message, or all that a user said within a time.
type Erasure struct {
	Room  string // "": in all rooms
	User  string
	MID   string // instead of a user
	From  int64  // of its admission, Unix ms
	Until int64
	At    int64 // Unix ms from when on it is to go from what is stored
	Done  bool  // nothing is to go from there, or it went
	Node  string
}

const (
	// cleanupReach is how far back a moderator cleans up.
	cleanupReach = time.Hour
	// settles is how long what was said when somebody asked may be on its way into the logs.
	settles = 2 * time.Second
	// erasedFor is how long rooms that open are held to what was erased: the store's recent danmaku are no older.
	erasedFor = 10 * time.Minute
	// erasedMost bounds what is remembered of it.
	erasedMost = 10_000
)

// erased are the newest erasures of what users said, for rooms that open and nodes that hear of one twice.
type erased struct {
	mu  lock.Mutex[lock.Leaf]
	all []Erasure // the oldest first
}

// note remembers an erasure; false: it is known.
func (l *erased) note(e Erasure, now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.all) > 0 && (l.all[0].Until < now-erasedFor.Milliseconds() || len(l.all) >= erasedMost) {
		l.all = l.all[1:]
	}
	for _, known := range l.all {
		if known.Room == e.Room && known.User == e.User && known.From <= e.From && known.Until >= e.Until {
			return false
		}
	}
	l.all = append(l.all, e)
	return true
}

// has reports whether a danmaku of a room was erased.
func (l *erased) has(room string, event []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return false
	}
	for i := range l.all {
		if e := &l.all[i]; (e.Room == "" || e.Room == room) && e.names(event) {
			return true
		}
	}
	return false
}

// names reports whether a danmaku is among what a user said.
func (e *Erasure) names(event []byte) bool {
	by, ok := protocol.EventUser(event)
	ts := protocol.EventTS(event)
	return ok && by.ID == e.User && ts >= e.From && ts <= e.Until
}

// cleanup takes away what a user said in the room within the last hour.
func (r *Room) cleanup(ctx context.Context, user string) *protocol.Error {
	now := r.hub.cfg.Now()
	return r.hub.erase(ctx, Erasure{Room: r.id, User: user, From: now.Add(-cleanupReach).UnixMilli(), Until: now.UnixMilli(), At: now.Add(settles).UnixMilli()})
}

// EraseUser has all nodes and logs forget what a user has said in any room until now, and returns that instant in Unix ms. The ledger keeps
// what was given.
func (h *Hub) EraseUser(ctx context.Context, by Identity, user string) (until int64, err *protocol.Error) {
	now := h.cfg.Now()
	until = now.UnixMilli()
	if err := h.erase(ctx, Erasure{User: user, Until: until, At: now.Add(settles).UnixMilli()}); err != nil {
		return 0, err
	}
	h.audit(ctx, protocol.UsersAudit, AuditEntry{By: by.User, Role: by.Role, Action: protocol.ActionErase, User: user})
	return until, nil
}

// erase stores what is to be forgotten, and forgets it here.
func (h *Hub) erase(ctx context.Context, e Erasure) *protocol.Error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := h.bus.Erase(ctx, e); err != nil {
		h.troubled("erasure is not stored", e.Room, err)
		return &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	}
	h.Forget(e)
	return nil
}

// eraseDeleted has a deleted message go from the logs once nobody can take its deletion back any more; gone false: it is shown again.
// The deletion holds already, so a failure is the operator's to hear of.
func (r *Room) eraseDeleted(ctx context.Context, mid string, gone bool) {
	now := r.hub.cfg.Now()
	e := Erasure{Room: r.id, MID: mid, Until: now.UnixMilli(), At: now.Add(r.hub.cfg.Audience.HistoryAge + settles).UnixMilli(), Done: !gone}
	if ts := r.audience.When(mid); ts > 0 {
		e.From = ts
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := r.hub.bus.Erase(ctx, e); err != nil {
		r.hub.cfg.Metrics.unerased.Inc()
		r.hub.troubled("a deleted message stays in the logs", r.id, err)
	}
}

// Forget takes what a user said, as somebody has asked for on any node, from the rooms here and from the pages of who is in them.
func (h *Hub) Forget(e Erasure) {
	if e.User == "" || !h.erased.note(e, h.cfg.Now().UnixMilli()) {
		return
	}
	event := protocol.AppendErased(nil, e.User, e.From, e.Until)
	for _, r := range h.opened() {
		if e.Room != "" && e.Room != r.id {
			continue
		}
		r.mu.Lock()
		r.audience.ForgetOf(e.User, e.From, e.Until)
		r.mu.Unlock()
		if r.audience.Here() > 0 {
			r.audience.Control(event)
		}
		r.unpinOf(e)
	}
}

// unpinOf takes an erased message off the wall, and the name out of one that answers. Every node that has the room tries; one succeeds.
func (r *Room) unpinOf(e Erasure) {
	if pinned := r.policy.Load().Pinned; len(pinned) == 0 || string(e.left(pinned)) == string(pinned) {
		return
	}
	r.hub.spawn(func() {
		_ = r.change(context.Background(), func(s *stored, _ int64) *protocol.Error { // told to the log
			s.Pinned = e.left(s.Pinned)
			return nil
		})
	})
}

// left is what an erasure leaves of a danmaku, nil for nothing.
func (e *Erasure) left(event []byte) []byte {
	if e.names(event) {
		return nil
	}
	return protocol.Forgotten(event, func(user string) int64 {
		if user == e.User {
			return e.Until
		}
		return 0
	})
}

// left is what all erasures of users leave of a danmaku, nil for nothing.
func (h *Hub) left(event []byte) []byte {
	if by, ok := protocol.EventUser(event); ok && h.bus.ErasedUntil(by.ID) >= protocol.EventTS(event) {
		return nil
	}
	return protocol.Forgotten(event, h.bus.ErasedUntil)
}

// leftOf is what they leave of who was refused in shows: the number.
func (h *Hub) leftOf(shows []people.Told) []people.Told {
	return people.Without(shows, func(user string, since int64) bool { return h.bus.ErasedUntil(user) >= since })
}
