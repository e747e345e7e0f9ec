package protocol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OnUser reports whether an action is on somebody, and held to their rank.
func (a Action) OnUser() bool {
	switch a {
	case ActionMute, ActionUnmute, ActionBan, ActionUnban, ActionKick, ActionAppoint, ActionDismiss, ActionAllow, ActionDisallow, ActionCleanup:
		return true
	}
	return false
}

// Speakers are whom a room lets speak; staff always may. "" is all.
type Speakers string

// Speakers, from the most to the fewest.
const (
	SpeakAll       Speakers = "all"
	SpeakMembers   Speakers = "members"   // no guests
	SpeakFollowers Speakers = "followers" // members who have followed for follow_minutes
	SpeakStaff     Speakers = "staff"
)

// MaxFollowMinutes is a year.
const MaxFollowMinutes = 365 * 24 * 60

// Speech is who may speak in a room, and how. The zero value lets everybody say everything.
type Speech struct {
	Speak         Speakers `json:"speak,omitempty"`
	FollowMinutes int      `json:"follow_minutes,omitempty"` // of SpeakFollowers
	EmojiOnly     bool     `json:"emoji_only,omitempty"`
	LinksOff      bool     `json:"links_off,omitempty"`
}

// Settings are what is changed of a room; what is nil stays as it is.
type Settings struct {
	Title         *string   `json:"title,omitempty"`        // cleaned like a danmaku; "" removes it
	SlowModeMS    *int64    `json:"slow_mode_ms,omitempty"` // least time between two danmaku of one viewer, up to MaxSlowMode
	Closed        *bool     `json:"closed,omitempty"`       // the room takes no messages
	Speak         *Speakers `json:"speak,omitempty"`
	FollowMinutes *int      `json:"follow_minutes,omitempty"`
	EmojiOnly     *bool     `json:"emoji_only,omitempty"`
	LinksOff      *bool     `json:"links_off,omitempty"`
	Review        *Review   `json:"review,omitempty"`
	Filter        *WordList `json:"filter,omitempty"`
	Shield        *Shield   `json:"shield,omitempty"`
}

// Clean returns the settings with a title as viewers will see it, or what is wrong with them.
func (s Settings) Clean() (Settings, *Error) {
	if s.Title != nil && *s.Title != "" {
		clean, err := clean("title", *s.Title, MaxTextGraphemes, MaxTextBytes)
		if err != nil {
			return s, err
		}
		s.Title = &clean
	}
	if most := MaxSlowMode.Milliseconds(); s.SlowModeMS != nil && (*s.SlowModeMS < 0 || *s.SlowModeMS > most) {
		return s, BadField("slow_mode_ms", fmt.Sprint("0 to ", most), fmt.Sprint(*s.SlowModeMS))
	}
	who := []Speakers{SpeakAll, SpeakMembers, SpeakFollowers, SpeakStaff}
	if s.Speak != nil && !slices.Contains(who, *s.Speak) {
		return s, BadField("speak", "one of "+joinWords(who), string(*s.Speak))
	}
	if s.FollowMinutes != nil && (*s.FollowMinutes < 0 || *s.FollowMinutes > MaxFollowMinutes) {
		return s, BadField("follow_minutes", fmt.Sprint("0 to ", MaxFollowMinutes), fmt.Sprint(*s.FollowMinutes))
	}
	if s.Review != nil {
		if err := s.Review.check(); err != nil {
			return s, err
		}
	}
	if s.Shield != nil {
		if err := s.Shield.check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// String tells what is set, for people.
func (s Settings) String() string {
	var said []string
	say := func(given bool, format string, value func() any) {
		if given {
			said = append(said, fmt.Sprintf(format, value()))
		}
	}
	say(s.Title != nil, "title %q", func() any { return *s.Title })
	say(s.SlowModeMS != nil, "slow_mode_ms %d", func() any { return *s.SlowModeMS })
	say(s.Closed != nil, "closed %t", func() any { return *s.Closed })
	say(s.Speak != nil, "speak %s", func() any { return *s.Speak })
	say(s.FollowMinutes != nil, "follow_minutes %d", func() any { return *s.FollowMinutes })
	say(s.EmojiOnly != nil, "emoji_only %t", func() any { return *s.EmojiOnly })
	say(s.LinksOff != nil, "links_off %t", func() any { return *s.LinksOff })
	say(s.Filter != nil, "filter of %d words", func() any { return len(s.Filter.Words) })
	say(s.Shield != nil, "shield %s", func() any { return *s.Shield })
	say(s.Review != nil, "review %s", func() any { return *s.Review })
	return strings.Join(said, ", ")
}

// Setting returns what the shorter actions set, and what ActionSettings does; false for all other actions.
func (r *Request) Setting() (Settings, bool) {
	closed, slow := r.Action == ActionClose, int64(r.Seconds)*1000
	switch r.Action {
	case ActionSettings:
		return *r.Settings, true
	case ActionSlowMode:
		return Settings{SlowModeMS: &slow}, true
	case ActionClose, ActionOpen:
		return Settings{Closed: &closed}, true
	}
	return Settings{}, false
}

// checkModerate holds an act to the shape that its action needs.
func (r *Request) checkModerate() *Error {
	if r.Action.OnUser() {
		if err := CheckUser("user", r.User); err != nil {
			return err
		}
	}
	switch r.Action {
	case ActionAllow:
		if !strings.HasPrefix(r.User, GuestPrefix) {
			return BadField("user", "a guest, since bans bar guests alone by their networks and devices", r.User)
		}
	case ActionMute:
		return r.checkSeconds(1, MaxMuteSeconds, "1")
	case ActionBan:
		return r.checkSeconds(0, MaxMuteSeconds, "0 (for ever)")
	case ActionSlowMode:
		return r.checkSeconds(0, int(MaxSlowMode/time.Second), "0")
	case ActionDelete, ActionPin, ActionRelease, ActionDrop:
		if r.MID == "" || len(r.MID) > MaxIdentifier {
			return BadField("mid", "the id of a message", r.MID)
		}
	case ActionSettings:
		if r.Settings == nil {
			return BadField("settings", "an object", "")
		}
		clean, err := r.Settings.Clean()
		if err != nil {
			err.Detail = "settings." + err.Detail
			return err
		}
		r.Settings = &clean
	case ActionUndo:
		if r.Seq == 0 {
			return BadField("seq", "the number of an entry of the audit", "0")
		}
	default:
		if !slices.Contains(Actions(), r.Action) {
			return BadField("action", "one of "+joinWords(Actions()), string(r.Action))
		}
	}
	return nil
}

func (r *Request) checkSeconds(least, most int, told string) *Error {
	if r.Seconds < least || r.Seconds > most {
		return BadField("seconds", told+" to "+strconv.Itoa(most), strconv.Itoa(r.Seconds))
	}
	return nil
}

// StoredAct is what a moderator did to a room, as its nodes keep it until it is part of the room's settings.
type StoredAct struct {
	Seq   uint64 // grows
	Value []byte // as the room gave it
}
