package protocol

import (
	"encoding/json"
	"strconv"
)

// Event is what the server tells a client.
type Event string

// Events; those of messages are called after their kinds.
const (
	EvWelcome  Event = "welcome"
	EvAck      Event = "ack"
	EvDanmaku  Event = "danmaku"
	EvGift     Event = "gift"
	EvLike     Event = "like"
	EvOnline   Event = "online"
	EvRoom     Event = "room"
	EvDeleted  Event = "deleted"
	EvRestored Event = "restored"
	EvErased   Event = "erased"
	EvMuted    Event = "muted"
	EvRole     Event = "role"
	EvAnnounce Event = "announce"
	EvMissed   Event = "missed"
	EvCustom   Event = "custom"
	EvHeld     Event = "held"
	EvGifts    Event = "gifts"
	EvError    Event = "error"
	EvPong     Event = "pong"
)

// Events lists every event; those of messages are called after their kinds.
func Events() []Event {
	events := []Event{EvWelcome, EvAck, EvOnline, EvRoom, EvDeleted, EvRestored, EvErased, EvMuted, EvRole, EvAnnounce, EvMissed, EvCustom, EvGifts, EvHeld, EvError, EvPong}
	for _, k := range kinds {
		if k.shape != nil {
			events = append(events, Event(k.Name))
		}
	}
	return events
}

// User is a user as other viewers see one.
type User struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"` // left out when it equals ID
	Role  Role   `json:"role,omitempty"` // left out for a viewer
	Attrs Attrs  `json:"attrs,omitempty"`
}

// Danmaku is the content of a danmaku event.
type Danmaku struct {
	MID   string `json:"mid"`
	User  User   `json:"user"`
	Text  string `json:"text"`
	Color string `json:"color,omitempty"` // left out when white
	Mode  Mode   `json:"mode,omitempty"`  // left out when scroll
	TS    int64  `json:"ts"`              // instant of admission, Unix milliseconds
	// Hidden says that only its sender is shown it: no position to come back to.
	Hidden bool `json:"hidden,omitempty"`
	// New says that its sender is a newcomer: came into the room lately, or has a young account.
	New bool `json:"new,omitempty"`
	// Released says that staff held it back: it comes later than TS says.
	Released bool `json:"released,omitempty"`
	// Reply is the mid of the danmaku that this one answers, ReplyTo who said that one. Its text is not quoted: what is deleted is gone.
	Reply   string `json:"reply,omitempty"`
	ReplyTo *User  `json:"reply_to,omitempty"`
}

// White is the default colour of a danmaku, left out on the wire.
const White = "#ffffff"

// AppendDanmaku appends the event of an admitted danmaku; its bytes are what travels through NATS and to every viewer.
func AppendDanmaku(dst []byte, d Danmaku) []byte {
	dst = append(dst, `{"ev":"danmaku","mid":`...)
	dst = appendString(dst, d.MID)
	dst = append(dst, ',')
	dst = appendUser(dst, d.User)
	dst = append(dst, `,"text":`...)
	dst = appendString(dst, d.Text)
	if d.Color != "" && d.Color != White {
		dst = append(dst, `,"color":`...)
		dst = appendString(dst, d.Color)
	}
	if d.Mode != "" && d.Mode != ModeScroll {
		dst = append(dst, `,"mode":`...)
		dst = appendString(dst, string(d.Mode))
	}
	if d.New {
		dst = append(dst, `,"new":true`...)
	}
	if d.Hidden {
		dst = append(dst, `,"hidden":true`...)
	}
	if d.Reply != "" {
		dst = append(dst, `,"reply":`...)
		dst = appendString(dst, d.Reply)
	}
	if d.ReplyTo != nil {
		dst = append(dst, `,"reply_to":`...)
		dst = appendUserObject(dst, *d.ReplyTo)
	}
	if d.Released {
		dst = append(dst, releasedTail...)
	}
	return appendTS(dst, d.TS)
}

// EventTS reads the instant of admission (Unix milliseconds) from the end of a danmaku or gift event, where
// [AppendDanmaku] and [AppendGift] put it, without decoding the rest; 0 when it is not there.
func EventTS(event []byte) int64 {
	end := len(event) - 1
	if end < 0 || event[end] != '}' {
		return 0
	}
	start := end
	for start > 0 && event[start-1] >= '0' && event[start-1] <= '9' {
		start--
	}
	if start < len(`"ts":`) || string(event[start-len(`"ts":`):start]) != `"ts":` {
		return 0
	}
	ts, err := strconv.ParseInt(string(event[start:end]), 10, 64)
	if err != nil {
		return 0
	}
	return ts
}

const danmakuHead = `{"ev":"danmaku","mid":"`

// EventMID reads the mid from the head of a danmaku event, where [AppendDanmaku] puts it; "" when it is not there.
func EventMID(event []byte) string {
	if len(event) < len(danmakuHead) || string(event[:len(danmakuHead)]) != danmakuHead {
		return ""
	}
	for i := len(danmakuHead); i < len(event) && i <= len(danmakuHead)+MaxIdentifier; i++ {
		if event[i] == '"' {
			return string(event[len(danmakuHead):i])
		}
	}
	return ""
}

// EventUser reads who said a danmaku event; false when event is none.
func EventUser(event []byte) (User, bool) {
	var e struct {
		User User `json:"user"`
	}
	if EventMID(event) == "" || json.Unmarshal(event, &e) != nil {
		return User{}, false
	}
	if e.User.Role == "" {
		e.User.Role = RoleViewer
	}
	return e.User, true
}

// EventHasMID reports whether [EventMID] would return mid, without allocating.
func EventHasMID(event []byte, mid string) bool {
	end := len(danmakuHead) + len(mid)
	return mid != "" && len(event) > end && string(event[:len(danmakuHead)]) == danmakuHead &&
		string(event[len(danmakuHead):end]) == mid && event[end] == '"'
}

// AppendLike appends the event of a room's folded likes: delta since the last one shown, total of the room.
func AppendLike(dst []byte, delta, total int64) []byte {
	dst = append(dst, `{"ev":"like","delta":`...)
	dst = strconv.AppendInt(dst, delta, 10)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, total, 10)
	return append(dst, '}')
}

// AppendOnline appends the event of a room's audience: its sessions, and the persons who have them.
func AppendOnline(dst []byte, count, people int) []byte {
	dst = append(dst, `{"ev":"online","count":`...)
	dst = strconv.AppendInt(dst, int64(count), 10)
	dst = append(dst, `,"people":`...)
	dst = strconv.AppendInt(dst, int64(people), 10)
	return append(dst, '}')
}

// AppendMissed appends the announcement of danmaku that a slow viewer did not get.
func AppendMissed(dst []byte, danmaku int) []byte {
	dst = append(dst, `{"ev":"missed","danmaku":`...)
	dst = strconv.AppendInt(dst, int64(danmaku), 10)
	return append(dst, '}')
}

// AppendDeleted appends the removal of a message.
func AppendDeleted(dst []byte, mid string) []byte {
	dst = append(dst, `{"ev":"deleted","mid":`...)
	dst = appendString(dst, mid)
	return append(dst, '}')
}

// AppendRestored appends a message that was deleted and is shown again.
func AppendRestored(dst, message []byte) []byte {
	dst = append(dst, `{"ev":"restored","message":`...)
	dst = append(dst, message...)
	return append(dst, '}')
}

// AppendRole appends what somebody is told who was appointed or dismissed.
func AppendRole(dst []byte, role Role) []byte {
	dst = append(dst, `{"ev":"role","role":`...)
	dst = appendString(dst, string(role))
	return append(dst, '}')
}

// AppendErased appends the removal of all that a user said from one instant to another, in Unix ms.
func AppendErased(dst []byte, user string, from, until int64) []byte {
	dst = append(dst, `{"ev":"erased",`...)
	dst = appendUser(dst, User{ID: user})
	dst = strconv.AppendInt(append(dst, `,"from":`...), from, 10)
	dst = strconv.AppendInt(append(dst, `,"until":`...), until, 10)
	return append(dst, '}')
}

// AppendMuted appends what a muted user is told; seconds 0 means that the mute has ended.
func AppendMuted(dst []byte, seconds int) []byte {
	dst = append(dst, `{"ev":"muted","seconds":`...)
	dst = strconv.AppendInt(dst, int64(seconds), 10)
	return append(dst, '}')
}

// AppendAnnounce appends a host's announcement.
func AppendAnnounce(dst []byte, text string) []byte {
	dst = append(dst, `{"ev":"announce","text":`...)
	dst = appendString(dst, text)
	return append(dst, '}')
}

// AppendPong answers a ping; now is Unix milliseconds.
func AppendPong(dst []byte, id string, now int64) []byte {
	dst = append(dst, `{"ev":"pong"`...)
	if id != "" {
		dst = append(dst, `,"id":`...)
		dst = appendString(dst, id)
	}
	dst = append(dst, `,"time":`...)
	dst = strconv.AppendInt(dst, now, 10)
	return append(dst, '}')
}

// AppendRoom appends the event of a room's state.
func AppendRoom(dst []byte, s RoomState) []byte {
	return appendJSON(dst, struct {
		Ev       Event           `json:"ev"`
		Title    string          `json:"title"`
		SlowMode int64           `json:"slow_mode_ms"`
		Closed   bool            `json:"closed"`
		Pinned   json.RawMessage `json:"pinned"`
		Speech
	}{EvRoom, s.Title, s.SlowModeMS, s.Closed, s.Pinned, s.Speech})
}

func appendUser(dst []byte, u User) []byte {
	return appendUserObject(append(dst, `"user":`...), u)
}

func appendUserObject(dst []byte, u User) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, u.ID)
	if u.Name != "" && u.Name != u.ID {
		dst = append(dst, `,"name":`...)
		dst = appendString(dst, u.Name)
	}
	if u.Role != "" && u.Role != RoleViewer {
		dst = append(dst, `,"role":`...)
		dst = appendString(dst, string(u.Role))
	}
	if u.Attrs != "" {
		dst = append(dst, `,"attrs":`...)
		dst = append(dst, u.Attrs...)
	}
	return append(dst, '}')
}

// appendTS ends an event with its instant, so that [EventTS] finds it.
func appendTS(dst []byte, ts int64) []byte {
	dst = append(dst, `,"ts":`...)
	dst = strconv.AppendInt(dst, ts, 10)
	return append(dst, '}')
}
