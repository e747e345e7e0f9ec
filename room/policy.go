package room

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"liveroom/internal/filter"
	"liveroom/limit"
	"liveroom/protocol"
)

// Bounds of what moderators can leave behind in a room.
const (
	maxSettings  = 512 << 10 // bytes of all of it, half of what a NATS message holds
	maxSanctions = 1000      // mutes and bans, each
	maxDeleted   = 300       // deletions remembered, the newest
)

// stored is a room's settings as the bus keeps them, in JSON.
type stored struct {
	Title    string          `json:"title,omitempty"`
	SlowMode int64           `json:"slow_mode_ms,omitempty"`
	Closed   bool            `json:"closed,omitempty"`
	Pinned   json.RawMessage `json:"pinned,omitempty"` // a danmaku event
	Mutes    []Sanction      `json:"mutes,omitempty"`
	Bans     []Sanction      `json:"bans,omitempty"`
	Deleted  []deletion      `json:"deleted,omitempty"`
	Opened   int64           `json:"opened,omitempty"` // the last time, Unix ms
	Shut     int64           `json:"shut,omitempty"`   // closed the last time, Unix ms
	Staff    []standing      `json:"staff,omitempty"`  // who has been here as more than a viewer
	// Appointed are those whom the room itself made moderators, or viewers in spite of their tokens.
	Appointed []standing `json:"appointed,omitempty"`
	// Allowed are guests whom marks of bans do not bar.
	Allowed []string `json:"allowed,omitempty"`
	protocol.Speech
	Review *protocol.Review   `json:"review,omitempty"`
	Filter *protocol.WordList `json:"filter,omitempty"`
	Shield *protocol.Shield   `json:"shield,omitempty"` // nil: off
	Acts   uint64             `json:"acts,omitempty"`   // number of the last deed that these have
}

// Settings are what is changed of a room from outside.
type Settings = protocol.Settings

// set changes what is given.
func (s *stored) set(c Settings) {
	replace(&s.Title, c.Title)
	replace(&s.SlowMode, c.SlowModeMS)
	replace(&s.Closed, c.Closed)
	replace(&s.Speak, c.Speak)
	replace(&s.FollowMinutes, c.FollowMinutes)
	replace(&s.EmojiOnly, c.EmojiOnly)
	replace(&s.LinksOff, c.LinksOff)
	if c.Review != nil {
		s.Review = c.Review
	}
	if s.Filter = cmp.Or(c.Filter, s.Filter); s.Filter != nil && len(s.Filter.Words) == 0 {
		s.Filter = nil
	}
	if c.Shield != nil {
		s.Shield = &protocol.Shield{Mode: c.Shield.Mode, Raid: c.Shield.Raid}
	}
	if s.Shield != nil && s.Shield.Mode == protocol.ShieldOff {
		s.Shield = nil
	}
	if s.Speak == protocol.SpeakAll {
		s.Speak = "" // left out, as what is usual is
	}
}

// settings reads what set would replace.
func (s *stored) settings(of Settings) Settings {
	speak := cmp.Or(s.Speak, protocol.SpeakAll)
	return Settings{
		Title: same(of.Title, s.Title), SlowModeMS: same(of.SlowModeMS, s.SlowMode), Closed: same(of.Closed, s.Closed), Speak: same(of.Speak, speak),
		FollowMinutes: same(of.FollowMinutes, s.FollowMinutes), EmojiOnly: same(of.EmojiOnly, s.EmojiOnly), LinksOff: same(of.LinksOff, s.LinksOff),
		Review: same(of.Review, s.review()), Filter: same(of.Filter, s.filter()), Shield: same(of.Shield, s.shield()),
	}
}

// same returns a value where one was given.
func same[T any](given *T, is T) *T {
	if given == nil {
		return nil
	}
	return &is
}

func replace[T any](old, with *T) {
	if with != nil {
		*old = *with
	}
}

// Sanction is a mute or a ban of a room.
type Sanction struct {
	User   string `json:"user"`
	At     int64  `json:"at,omitempty"`    // when it was made, Unix ms
	Until  int64  `json:"until,omitempty"` // Unix ms; 0: for ever
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Role is that of who made it, above which it has no effect; "" of one that was made before roles were kept: host.
	Role protocol.Role `json:"role,omitempty"`
	// A ban of these also bars guests of the user's networks and devices: those named since, or with Wide all.
	Network bool `json:"network,omitempty"`
	Device  bool `json:"device,omitempty"`
	Wide    bool `json:"wide,omitempty"`
	// Marks are the keyed hashes of these.
	Marks []string `json:"marks,omitempty"`
}

// deletion keeps a message from coming back out of the recent ones.
type deletion struct {
	MID string `json:"mid"`
	At  int64  `json:"at"` // Unix ms, for people
	// Back says that the deletion was undone. It stays on the list, since what is only too old to be on it must not come back.
	Back bool `json:"back,omitempty"`
}

func (s Sanction) over(now int64) bool { return s.Until != 0 && s.Until <= now }

// rank is that of who made it.
func (s Sanction) rank() rank { return rankOf(cmp.Or(s.Role, protocol.RoleHost)) }

// clone returns a copy whose lists can be changed.
func (s stored) clone() stored {
	s.Mutes, s.Bans, s.Deleted, s.Staff = slices.Clone(s.Mutes), slices.Clone(s.Bans), slices.Clone(s.Deleted), slices.Clone(s.Staff)
	s.Appointed, s.Allowed = slices.Clone(s.Appointed), slices.Clone(s.Allowed)
	return s
}

// prune drops what is over, and of deletions all but the newest: these may be of a node whose clock is another one.
func (s *stored) prune(now int64) {
	over := func(x Sanction) bool { return x.over(now) }
	s.Mutes = slices.DeleteFunc(s.Mutes, over)
	s.Bans = slices.DeleteFunc(s.Bans, over)
	if extra := len(s.Deleted) - maxDeleted; extra > 0 {
		s.Deleted = slices.Delete(s.Deleted, 0, extra)
	}
}

// policy is a room's settings as its messages are held to. Immutable.
type policy struct {
	stored
	revision uint64
	log      deedLog
	words    *filter.Set // of Filter
	shielded *shielded   // nil: off
	muted    sanctions
	banned   sanctions
	deleted  map[string]bool // by mid; false: shown again
	// appointed are the room's own moderators, and who is none in spite of a token.
	appointed map[string]protocol.Role
	barred    map[string]bar // by mark; nil where no ban has any
	allowed   map[string]bool
}

// parsePolicy reads what the bus keeps.
func parsePolicy(value []byte, revision uint64) (*policy, error) {
	var s stored
	if len(value) > 0 {
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("settings of revision %d: %w", revision, err)
		}
	}
	p := newPolicy(s, revision)
	p.log.bytes = len(value)
	return p, nil
}

// amended is the policy with other settings of the same revision and the same words.
func (p *policy) amended(s stored) *policy {
	next := newPolicy(s, p.revision)
	next.words, next.log = p.words, p.log
	return next
}

func newPolicy(s stored, revision uint64) *policy {
	p := &policy{stored: s, revision: revision}
	if len(p.Pinned) == 0 || string(p.Pinned) == "null" {
		p.Pinned = nil
	}
	p.shielded = newShielded(p.Shield)
	p.muted, p.banned = byUser(p.Mutes), byUser(p.Bans)
	p.deleted = make(map[string]bool, len(p.Deleted))
	for _, d := range p.Deleted {
		p.deleted[d.MID] = !d.Back
	}
	p.barred = barMarks(p.Bans)
	for _, user := range p.Allowed {
		if p.allowed == nil {
			p.allowed = make(map[string]bool, len(p.Allowed))
		}
		p.allowed[user] = true
	}
	for _, a := range p.Appointed {
		if p.appointed == nil {
			p.appointed = make(map[string]protocol.Role, len(p.Appointed))
		}
		p.appointed[a.User] = a.Role
	}
	return p
}

// hides reports whether a message was deleted.
func (p *policy) hides(mid string) bool { return p.deleted[mid] }

// sanctions are mutes or bans by their user.
type sanctions map[string]term

// term is what a [Sanction] means to its user.
type term struct {
	until int64 // Unix ms, 0 for ever
	by    rank  // it has no effect on this rank and those above
}

func byUser(list []Sanction) sanctions {
	m := make(sanctions, len(list))
	for _, s := range list {
		m[s.User] = term{s.Until, s.rank()}
	}
	return m
}

// in reports whether somebody is sanctioned at an instant, and for how many ms yet; 0: for ever.
func (l sanctions) in(who *Identity, now int64) (left int64, yes bool) {
	if s, ok := l[who.User]; ok && rankOf(who.Role) < s.by {
		return s.left(now)
	}
	return 0, false
}

// left is how many ms the sanction lasts yet, 0 for ever, and whether it does.
func (s term) left(now int64) (left int64, lasts bool) {
	switch {
	case s.until == 0:
		return 0, true
	case s.until <= now:
		return 0, false
	}
	return s.until - now, true
}

// state is what viewers know of the room, without the counts.
func (p *policy) state(id string) protocol.RoomState {
	return protocol.RoomState{ID: id, Title: p.Title, SlowModeMS: p.SlowMode, Closed: p.Closed, Pinned: p.Pinned, Speech: p.Speech}
}

// shows reports whether viewers see the same of both.
func (p *policy) shows(q *policy) bool {
	return p.Title == q.Title && p.SlowMode == q.SlowMode && p.Closed == q.Closed && string(p.Pinned) == string(q.Pinned) && p.Speech == q.Speech
}

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
