package room

import (
	"cmp"

	"liveroom/protocol"
	"liveroom/room/raid"
)

// shieldShown is how many of the messages that a shield would have held are told.
const shieldShown = 50

// ShieldPreview is what a shield that looks for raids would have made of the last minutes.
type ShieldPreview struct {
	Looked    int             `json:"looked"`    // at so many danmaku, as they were shown
	Newcomers int             `json:"newcomers"` // so many of these are newcomers'
	Raids     []protocol.Raid `json:"raids"`
	Held      int             `json:"held"`
	TakenBack int             `json:"taken_back"`
	Newest    []Caught        `json:"newest"` // of both, the newest first
}

// Caught is a danmaku that a shield would have held.
type Caught struct {
	MID       string        `json:"mid"`
	User      protocol.User `json:"user"`
	Text      string        `json:"text"`
	TS        int64         `json:"ts"`
	TakenBack bool          `json:"taken_back,omitempty"` // it was shown before the raid was seen
}

// PlayShield looks for raids in danmaku of a room, the oldest first. What a shield held and nobody released is not among them.
func PlayShield(events [][]byte) ShieldPreview {
	out := ShieldPreview{Raids: []protocol.Raid{}, Newest: []Caught{}}
	said, all := make([]sample, 0, len(events)), make([]raid.Message, 0, len(events))
	for _, event := range events {
		s, ok := sampled(event)
		if !ok {
			continue
		}
		said = append(said, s)
		all = append(all, raid.Message{At: s.TS, Sketch: s.sketch, User: s.user(), Young: s.New, Staff: mayModerate(cmp.Or(s.User.Role, protocol.RoleViewer))})
		if s.New {
			out.Newcomers++
		}
	}
	out.Looked = len(said)
	fates, seen := raid.Play(all)
	for _, i := range seen {
		out.Raids = append(out.Raids, protocol.Raid{At: said[i].TS, Until: said[i].TS + raid.Lasts.Milliseconds(), Sample: said[i].Text})
	}
	for i := len(said) - 1; i >= 0; i-- {
		switch fates[i] {
		case raid.Held:
			out.Held++
		case raid.TakenBack:
			out.TakenBack++
		default:
			continue
		}
		if s := &said[i]; len(out.Newest) < shieldShown {
			out.Newest = append(out.Newest, Caught{s.MID, s.User, s.Text, s.TS, fates[i] == raid.TakenBack})
		}
	}
	return out
}
