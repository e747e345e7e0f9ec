package room

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"liveroom/internal/lock"
	"liveroom/protocol"
)

// A moderator whom a split cut off from the store must still be rid of a spammer. Acts that keep somebody or something away are in
// force here, and on the nodes that are still heard, until this node can store them: then they hold for all, beside what the other
// side has decided meanwhile. A node that ends before that forgets them, which the answer says.

const (
	maxOwed     = 200 // acts of one room that wait for the store
	settleEvery = 500 * time.Millisecond
)

// owedAct is an act that waits for the store. On the bus it is JSON.
type owedAct struct {
	By   string           `json:"by"`
	Role protocol.Role    `json:"role"`
	At   int64            `json:"at"` // Unix ms
	Req  protocol.Request `json:"req"`

	entry AuditEntry
	mine  bool   // this node stores it
	since uint64 // of others: the revision here when it was heard of; the next one has it
}

// owed are a room's. mu is a leaf.
type owed struct {
	mu       lock.Mutex[lock.Leaf]
	acts     []owedAct
	settling bool // a goroutine stores them
}

// keepsAway reports whether an action can be owed.
func keepsAway(a protocol.Action) bool {
	switch a {
	case protocol.ActionMute, protocol.ActionUnmute, protocol.ActionBan, protocol.ActionUnban, protocol.ActionDelete:
		return true
	}
	return false
}

// owe puts an act into force that can't be stored now; false: too many wait already.
func (r *Room) owe(a owedAct) bool {
	a.since = r.policy.Load().revision
	r.owed.mu.Lock()
	full := len(r.owed.acts) >= maxOwed
	if !full {
		r.owed.acts = append(slices.Clip(r.owed.acts), a)
	}
	start := !full && a.mine && !r.owed.settling
	r.owed.settling = r.owed.settling || start
	r.owed.mu.Unlock()
	if full {
		return false
	}
	r.overlay()
	if start {
		r.hub.spawn(r.settle)
	}
	return true
}

// owing reports whether acts of this node wait for the store.
func (r *Room) owing() bool {
	r.owed.mu.Lock()
	defer r.owed.mu.Unlock()
	return r.owed.settling
}

// overlay puts what is owed into force over the settings that are stored.
func (r *Room) overlay() {
	r.enforce(func(old *policy) *policy { return old })
}

// withOwed is a policy with what is owed; the same one where nothing is.
func (r *Room) withOwed(p *policy) *policy {
	r.owed.mu.Lock()
	r.owed.acts = slices.DeleteFunc(slices.Clone(r.owed.acts), func(a owedAct) bool { return !a.mine && p.revision > a.since })
	acts := r.owed.acts
	r.owed.mu.Unlock()
	if len(acts) == 0 {
		return p
	}
	s := p.stored.clone()
	r.enact(&s, acts)
	return p.amended(s)
}

// enact writes acts that were taken before. One that a higher rank, or a full list, now stands against is left out.
func (r *Room) enact(s *stored, acts []owedAct) {
	for _, a := range acts {
		by := &Speaker{who: &Identity{User: a.By, Role: a.Role}}
		if err := r.amend(s, a.At, by, &a.Req); err != nil {
			r.hub.cfg.Log.Warn("an act that waited for the store has no place", "room", r.id, "action", string(a.Req.Action), "by", a.By, "reason", string(err.Reason))
		}
	}
}

// settle stores what is owed as soon as the store answers, then tells the audit.
func (r *Room) settle() {
	timer := time.NewTimer(settleEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.hub.done:
			return
		}
		if r.settled() {
			return
		}
		timer.Reset(settleEvery)
	}
}

// settled stores what is owed and reports whether nothing is any more.
func (r *Room) settled() bool {
	mine := func(a owedAct) bool { return a.mine }
	r.owed.mu.Lock()
	acts := slices.DeleteFunc(slices.Clone(r.owed.acts), func(a owedAct) bool { return !mine(a) })
	r.owed.mu.Unlock()
	ctx := context.Background()
	if err := r.change(ctx, func(s *stored, _ int64) *protocol.Error { r.enact(s, acts); return nil }); err != nil {
		return false
	}
	r.owed.mu.Lock()
	kept, stored := make([]owedAct, 0, len(r.owed.acts)), len(acts)
	for _, a := range r.owed.acts {
		if a.mine && stored > 0 { // in the order in which they were taken; those behind were taken since
			stored--
			continue
		}
		kept = append(kept, a)
	}
	r.owed.acts = kept
	left := slices.ContainsFunc(kept, mine)
	r.owed.settling = left
	r.owed.mu.Unlock()
	for _, a := range acts {
		r.audit(ctx, a.entry)
	}
	return !left
}

// postpone has an act wait for a store that does not answer, and tells the nodes that are still heard; nil: it is in force here.
func (r *Room) postpone(by *Speaker, req *protocol.Request, e *AuditEntry, why *protocol.Error) *protocol.Error {
	if why.Reason != protocol.ReasonTryLater || !keepsAway(req.Action) {
		return why
	}
	a := owedAct{By: by.who.User, Role: by.who.Role, At: r.hub.cfg.Now().UnixMilli(), Req: *req, entry: *e, mine: true}
	a.entry.Time = a.At
	s := r.policy.Load().stored.clone()
	a.entry.Was = s.touches(req.Action, req.User, req.MID, nil)
	if err := r.amend(&s, a.At, by, req); err != nil {
		return err
	}
	a.entry.Is = s.touches(req.Action, req.User, req.MID, nil)
	if !r.owe(a) {
		return why
	}
	if message, err := json.Marshal(command{Owed: &a, Node: r.hub.cfg.Node}); err == nil {
		_ = r.hub.bus.Publish(protocol.ClassControl, r.id, message) // whoever is not heard gets it from the store
	}
	return nil
}
