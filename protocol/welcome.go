package protocol

import "encoding/json"

// RoomState is what a viewer knows of a room.
type RoomState struct {
	ID         string          `json:"id"`
	Title      string          `json:"title"`
	Online     int             `json:"online"` // sessions
	People     int             `json:"people"` // who have them
	Likes      int64           `json:"likes"`
	SlowModeMS int64           `json:"slow_mode_ms"`
	Closed     bool            `json:"closed"`
	Pinned     json.RawMessage `json:"pinned"` // a danmaku event, or null
	Speech
}

// Recovered tells a resuming client what came back whole.
type Recovered struct {
	Gift bool `json:"gift"`
	Chat bool `json:"chat"`
}

// Allowance is a limit as a page needs it to explain itself.
type Allowance struct {
	PerSecond float64 `json:"per_second"`
	Burst     int64   `json:"burst"`
}

// Self is the session's own user.
type Self struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Role  Role   `json:"role"`
	Attrs Attrs  `json:"attrs,omitempty"`
}

// GiftAuthority says who pays for gifts.
type GiftAuthority string

// Who pays.
const (
	GiftsByBackend GiftAuthority = "backend" // the platform, whose back end sends them: a socket's are refused
	GiftsByHook    GiftAuthority = "hook"    // the platform, which is asked before a socket's is stored
	GiftsOpen      GiftAuthority = "open"    // nobody: a demonstration
)

// Welcome answers a hello.
type Welcome struct {
	ID         string               `json:"id"`
	Session    string               `json:"session"`
	Node       string               `json:"node"`
	User       Self                 `json:"user"`
	GuestToken string               `json:"guest_token,omitempty"`
	Room       RoomState            `json:"room"`
	Cursor     Cursor               `json:"cursor"`
	Recovered  Recovered            `json:"recovered"`
	Limits     map[string]Allowance `json:"limits"`
	Catalogue
	GiftsBy     GiftAuthority `json:"gift_authority"`
	GiftRetryMS int64         `json:"gift_retry_ms"`
	HeartbeatMS int64         `json:"heartbeat_ms"`
	Time        int64         `json:"time"`
}

// AppendWelcome appends the welcome event.
func AppendWelcome(dst []byte, w Welcome) []byte {
	return appendJSON(dst, struct {
		Ev Event `json:"ev"`
		Welcome
	}{EvWelcome, w})
}

// appendJSON is for events so rare that reflection does not matter.
func appendJSON(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("protocol: an event does not encode: " + err.Error()) // only a fault in this package can do it
	}
	return append(dst, b...)
}
