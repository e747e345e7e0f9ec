package room

import (
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"

	"liveroom/internal/filter"
	"liveroom/limit"
	"liveroom/protocol"
)

// takes is why a room can't be given settings here; nil: it can.
func (r *Room) takes(s Settings) *protocol.Error {
	if _, err := filter.Compile(s.Filter, filter.RoomWords, filter.RoomBytes); err != nil {
		err.Detail = "settings.filter." + err.Detail
		return err
	}
	if s.Speak != nil && *s.Speak == protocol.SpeakFollowers && r.hub.cfg.Followed == "" {
		return protocol.BadField("settings.speak", "all, members or staff, since rooms.followed_attribute names no attribute here", string(*s.Speak))
	}
	return nil
}

// maySpeak is why somebody is not of those who may speak in the room now; nil: they are.
func (r *Room) maySpeak(p *policy, who *Identity) *protocol.Error {
	if p.Speak == "" || rankOf(who.Role) > rankViewer {
		return nil
	}
	switch {
	case p.Speak == protocol.SpeakStaff:
		return &protocol.Error{Reason: protocol.ReasonStaffOnly}
	case who.Guest() && p.Speak == protocol.SpeakMembers:
		return &protocol.Error{Reason: protocol.ReasonMembersOnly}
	case p.Speak == protocol.SpeakFollowers:
		since, follows := who.instant(r.hub.cfg.Followed)
		left := since.Add(time.Duration(p.FollowMinutes) * time.Minute).Sub(r.hub.cfg.Now())
		switch {
		case !follows:
			return &protocol.Error{Reason: protocol.ReasonFollowersOnly}
		case left > 0:
			return &protocol.Error{Reason: protocol.ReasonFollowersOnly, RetryAfter: limit.Jitter(left)}
		}
	}
	return nil
}

// instant reads an attribute in Unix seconds.
func (i *Identity) instant(attribute string) (since time.Time, yes bool) {
	seconds := i.Traits.Whole(attribute)
	return time.Unix(seconds, 0), seconds > 0
}

// spoken holds a danmaku's clean text to what the room lets viewers say, and finds whom it answers.
func (r *Room) spoken(p *policy, who *Identity, req *protocol.Request) *protocol.Error {
	if rankOf(who.Role) == rankViewer {
		switch {
		case p.EmojiOnly && !onlyEmoji(req.Text):
			return &protocol.Error{Reason: protocol.ReasonEmojiOnly}
		case p.LinksOff && hasLink(req.Text):
			return &protocol.Error{Reason: protocol.ReasonLinksOff}
		}
	}
	if req.Reply == "" {
		return nil
	}
	user, known := protocol.EventUser(r.audience.Find(req.Reply))
	if !known {
		return &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "reply: only a message of the last minutes can be answered"}
	}
	req.ReplyTo = &protocol.User{ID: user.ID, Name: user.Name}
	return nil
}

// pictures are the characters that show as pictures (Emoji of UTS #51, but for digits, # and *, as far as they are told by blocks).
var pictures = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00A9, 0x00AE, 5}, {0x203C, 0x2049, 13}, {0x2122, 0x2139, 23}, {0x2194, 0x21AA, 1}, {0x231A, 0x23FF, 1}, {0x24C2, 0x24C2, 1},
		{0x25AA, 0x25FE, 1}, {0x2600, 0x27BF, 1}, {0x2934, 0x2935, 1}, {0x2B05, 0x2B55, 1}, {0x3030, 0x303D, 13}, {0x3297, 0x3299, 2},
	},
	R32: []unicode.Range32{{0x1F000, 0x1FAFF, 1}},
}

// onlyEmoji reports whether a clean text is pictures and spaces and nothing else: each may be joined, coloured, a flag or a keycap.
func onlyEmoji(text string) bool {
	key := false // a digit, # or * that a keycap must follow
	for _, r := range text {
		switch {
		case key && r == 0xFE0F: // as a picture
		case key:
			if r != 0x20E3 {
				return false
			}
			key = false
		case r >= '0' && r <= '9', r == '#', r == '*':
			key = true
		case r == ' ', r == 0x200D, r == 0xFE0F, r >= 0xE0020 && r <= 0xE007F, unicode.Is(pictures, r):
		default:
			return false
		}
	}
	return !key
}

// hasLink reports whether a text has what a reader would take for an address: something with ://, or a name under a domain that exists.
func hasLink(text string) bool {
	text = strings.ToLower(strings.NewReplacer("。", ".", "｡", ".").Replace(norm.NFKC.String(text)))
	if strings.Contains(text, "://") {
		return true
	}
	names := strings.FieldsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
	for _, name := range names {
		name = strings.Trim(name, ".-")
		if !strings.Contains(name, ".") || strings.Contains(name, "..") {
			continue
		}
		if suffix, known := publicsuffix.PublicSuffix(name); (known || strings.Contains(suffix, ".")) && suffix != name {
			return true
		}
	}
	return false
}
