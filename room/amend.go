package room

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"liveroom/limit"
	"liveroom/protocol"
)

// changeAttempts is how often a change is tried against others who change the same room.
const changeAttempts = 8

// change stores settings that edit has worked out from those in force, however many nodes change the room at once.
func (r *Room) change(ctx context.Context, edit func(s *stored, now int64) *protocol.Error) *protocol.Error {
	return r.changeOf(ctx, nil, edit)
}

// changeOf is change that stores no more than what it is about, where that can stand by itself.
func (r *Room) changeOf(ctx context.Context, about *deed, edit func(s *stored, now int64) *protocol.Error) *protocol.Error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	later := &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(openRetry)}
	for range changeAttempts {
		p := r.policy.Load()
		now := r.hub.cfg.Now().UnixMilli()
		s := p.stored.clone()
		s.prune(now)
		if err := edit(&s, now); err != nil {
			return err
		}
		err := r.putAct(ctx, p, &s, about, now)
		if errors.Is(err, errAsWhole) {
			err = r.putWhole(ctx, p, &s, now)
		}
		told := (*protocol.Error)(nil)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &told):
			return told
		case !errors.Is(err, ErrConflict):
			r.hub.troubled("settings are not stored", r.id, err)
			return later
		}
		if err := r.catchUp(ctx); err != nil {
			r.hub.troubled("settings can't be loaded", r.id, err)
			return later
		}
	}
	return later
}

// putWhole stores all settings, deeds included, in place of those of a policy.
func (r *Room) putWhole(ctx context.Context, p *policy, s *stored, now int64) error {
	s.stampDoors(p.Closed, now)
	s.Acts = p.log.last
	value, err := json.Marshal(s)
	if err != nil {
		r.hub.troubled("settings do not encode", r.id, err)
		return &protocol.Error{Reason: protocol.ReasonInternal}
	}
	if len(value) > maxSettings {
		return &protocol.Error{Reason: protocol.ReasonUnavailable, Detail: "the room's lists are full"}
	}
	revision, err := r.hub.bus.PutSettings(ctx, r.id, value, p.revision)
	if err == nil {
		r.adopt(value, revision)
	}
	return err
}

// catchUp reads what somebody else has stored.
func (r *Room) catchUp(ctx context.Context) error {
	value, revision, err := r.hub.bus.Settings(ctx, r.id)
	if err != nil {
		return err
	}
	acts, err := r.hub.bus.ActsAfter(ctx, r.id, 0) // all: a log that was lost ends somewhere else
	if err != nil {
		return err
	}
	r.adopt(value, revision)
	r.follow(lastOf(acts), acts...)
	return nil
}

// change is what one policy means to those who were in the room under another.
type change struct {
	events   [][]byte // for everybody
	deleted  []string // messages
	restored []string
	told     []told // users to whom something happened
	roles    []string
	banned   []string // users
	marked   bool     // there are marks that were not there before
}

// told is what one user's sessions are told or closed with.
type told struct {
	user  string
	below rank // it does not concern this rank and those above
	event []byte
	close *protocol.Refusal
}

// adopt puts stored settings into force, unless newer ones are, and tells the members what changes for them.
func (r *Room) adopt(value []byte, revision uint64) {
	if revision <= r.policy.Load().revision { // our own, come back
		return
	}
	next, err := parsePolicy(value, revision)
	if err != nil {
		r.hub.troubled("settings can't be read, the last good ones stay", r.id, err)
		return
	}
	next.Pinned = r.hub.left(next.Pinned)
	fault := (*protocol.Error)(nil)
	if next.words, fault = next.compiled(r.policy.Load()); fault != nil {
		r.hub.troubled("the room's list of words can't be read, it has none", r.id, fault)
	}
	r.enforce(func(old *policy) *policy {
		if next.revision <= old.revision {
			return nil
		}
		return next.after(old)
	})
}

// enforce replaces the policy with what build makes of it, nil for nothing, and what is owed.
func (r *Room) enforce(build func(old *policy) *policy) {
	for {
		old := r.policy.Load()
		next := build(old)
		if next == nil {
			return
		}
		next = r.withOwed(next)
		if next == old {
			return
		}
		if r.replace(old, next, difference(r.id, old, next, r.hub.cfg.Now().UnixMilli())) {
			r.pardon(old, next)
			return
		}
	}
}

// replace swaps the policy if it is still the old one, and makes the change known.
func (r *Room) replace(old, next *policy, c change) bool {
	type hit struct {
		members []*Member
		told
	}
	hits := make([]hit, 0, len(c.told))
	r.mu.Lock()
	if !r.policy.CompareAndSwap(old, next) {
		r.mu.Unlock()
		return false
	}
	for _, mid := range c.deleted {
		r.audience.Forget(mid)
	}
	for _, mid := range c.restored {
		if message := r.audience.Recall(mid); message != nil {
			c.events = append(c.events, protocol.AppendRestored(nil, message))
		}
	}
	r.audience.Control(c.events...)
	for _, t := range c.told {
		hits = append(hits, hit{r.here(t.user), t})
	}
	for _, user := range c.roles {
		for _, m := range r.here(user) {
			role := m.who.Load().Role
			if is := next.roleIn(user, role); is != old.roleIn(user, role) {
				hits = append(hits, hit{[]*Member{m}, told{user: user, below: ranks, event: protocol.AppendRole(nil, is)}})
			}
		}
	}
	r.mu.Unlock()
	r.followBans(c.banned, c.marked)
	for _, h := range hits {
		for _, m := range h.members {
			if rankOf(m.acting().Role) < h.below {
				m.tell(h.told)
			}
		}
	}
	return true
}

func (m *Member) tell(t told) {
	if t.close != nil {
		m.session.Close(*t.close)
		return
	}
	m.session.Control(t.event)
}

// difference works out what a new policy changes. now is Unix ms.
func difference(id string, old, next *policy, now int64) change {
	var c change
	for _, mid := range slices.Sorted(maps.Keys(next.deleted)) {
		switch is, was := next.hides(mid), old.hides(mid); {
		case is && !was:
			c.deleted = append(c.deleted, mid)
			c.events = append(c.events, protocol.AppendDeleted(nil, mid))
		case was && !is:
			c.restored = append(c.restored, mid)
		}
	}
	for user, role := range next.appointed {
		if old.appointed[user] != role {
			c.roles = append(c.roles, user)
		}
	}
	for user := range old.appointed {
		if _, still := next.appointed[user]; !still {
			c.roles = append(c.roles, user)
		}
	}
	if !next.shows(old) {
		c.events = append(c.events, protocol.AppendRoom(nil, next.state(id)))
	}
	for user, s := range next.muted {
		if left, yes := s.left(now); yes && old.muted[user] != s {
			c.told = append(c.told, told{user: user, below: s.by, event: protocol.AppendMuted(nil, int((left+999)/1000))})
		}
	}
	for user, s := range old.muted {
		if _, yes := s.left(now); !yes {
			continue
		}
		if _, still := next.muted[user]; !still {
			c.told = append(c.told, told{user: user, below: s.by, event: protocol.AppendMuted(nil, 0)})
		}
	}
	for user, s := range next.banned {
		was, known := old.banned[user]
		_, before := was.left(now)
		if _, yes := s.left(now); yes && !(known && before && was.by >= s.by) {
			c.told = append(c.told, told{user: user, below: s.by, close: &protocol.Refusal{Code: protocol.CloseForbidden, Detail: "banned"}})
		}
		if !known || was != s {
			c.banned = append(c.banned, user)
		}
	}
	for mark, b := range next.barred {
		c.marked = c.marked || old.barred[mark] != b
	}
	return c
}
