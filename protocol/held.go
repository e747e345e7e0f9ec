package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// HeldState is what became of a held danmaku.
type HeldState string

// States of a held danmaku.
const (
	HeldWaiting  HeldState = "waiting"
	HeldReleased HeldState = "released"
	HeldDropped  HeldState = "dropped"
)

// Review is what becomes of a room's held messages that nobody decides on.
type Review struct {
	Seconds int    `json:"seconds"` // 10 to 86,400
	Then    Action `json:"then"`    // release or drop
}

// UsualReview is that of a room that says nothing else.
var UsualReview = Review{Seconds: 600, Then: ActionDrop}

// String tells it, for people.
func (v Review) String() string { return fmt.Sprintf("%s after %d s", v.Then, v.Seconds) }

func (v Review) check() *Error {
	if v.Seconds < 10 || v.Seconds > 86_400 {
		return BadField("review.seconds", "10 to 86400", fmt.Sprint(v.Seconds))
	}
	if v.Then != ActionRelease && v.Then != ActionDrop {
		return BadField("review.then", "release or drop", string(v.Then))
	}
	return nil
}

// Held is a danmaku that waits for staff, or what became of it: what is stored, what staff is told, and an entry of the journal.
type Held struct {
	Ev      Event     `json:"ev"` // EvHeld
	MID     string    `json:"mid"`
	State   HeldState `json:"state"`
	Cause   string    `json:"cause"`            // who held it: filter, hook
	Detail  string    `json:"detail,omitempty"` // what it was held for, for staff
	User    User      `json:"user"`
	Text    string    `json:"text"`
	Color   string    `json:"color,omitempty"`
	Mode    Mode      `json:"mode,omitempty"`
	Reply   string    `json:"reply,omitempty"`
	ReplyTo *User     `json:"reply_to,omitempty"`
	Until   int64     `json:"until"` // then it is decided by itself, Unix ms
	Then    Action    `json:"then"`  // how: release or drop
	// By is who has decided; "" of one that waits, and of what its time limit decided.
	By    string `json:"by,omitempty"`
	At    int64  `json:"at,omitempty"`    // when it was decided, Unix ms
	Shown bool   `json:"shown,omitempty"` // it was released, and is on its way to the viewers
	TS    int64  `json:"ts"`              // instant of admission, Unix ms
}

// Danmaku is what viewers see of it once it is released.
func (h *Held) Danmaku() Danmaku {
	return Danmaku{MID: h.MID, User: h.User, Text: h.Text, Color: h.Color, Mode: h.Mode, Reply: h.Reply, ReplyTo: h.ReplyTo, Released: true, TS: h.TS}
}

// Encode returns the event.
func (h *Held) Encode() ([]byte, error) {
	h.Ev = EvHeld
	return json.Marshal(h)
}

// ParseHeld reads what [Held.Encode] made.
func ParseHeld(event []byte) (*Held, error) {
	h := &Held{}
	if err := json.Unmarshal(event, h); err != nil {
		return nil, fmt.Errorf("held message: %w", err)
	}
	if h.Ev != EvHeld || h.MID == "" {
		return nil, fmt.Errorf("held message: ev %q, mid %q", h.Ev, h.MID)
	}
	return h, nil
}

// AppendHeld appends what its sender is told of a held danmaku.
func AppendHeld(dst []byte, mid string, s HeldState) []byte {
	dst = append(dst, `{"ev":"held","mid":`...)
	dst = appendString(dst, mid)
	dst = append(dst, `,"state":`...)
	dst = appendString(dst, string(s))
	return append(dst, '}')
}

const releasedTail = `,"released":true`

// EventReleased reports whether a danmaku event was held, and so comes later than its instant says.
func EventReleased(event []byte) bool {
	end := bytes.LastIndexByte(event, ',') // before "ts", which ends it
	return end > 0 && bytes.HasSuffix(event[:end], []byte(releasedTail))
}
