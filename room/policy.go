package room

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"liveroom/internal/filter"
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
