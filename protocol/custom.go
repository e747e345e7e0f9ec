package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// MaxCustomBytes bounds the data of a custom event, as it goes to clients: without spaces.
const MaxCustomBytes = 4 << 10

// To is who of a room gets a custom event.
type To string

// Who gets it; the empty To of a request means [ToRoom].
const (
	ToRoom  To = "room"
	ToUser  To = "user"  // all sessions of Custom.User
	ToHosts To = "hosts" // all sessions with the role host
)

// Custom is an event of a platform's own making: clients are handed it, and the server does not look into it.
type Custom struct {
	ID    string          `json:"id"` // the platform's own: the same one again shows nothing again
	Type  string          `json:"type"`
	Data  json.RawMessage `json:"data"`
	To    To              `json:"to"`
	User  string          `json:"user"`
	Class string          `json:"class"` // control or danmaku: what a viewer gets of it who has fallen behind
}

// Check fills in what was left out, writes the data as short as it can be, and says what is wrong. Types are those that there are.
func (c *Custom) Check(types []string) *Error {
	if err := CheckID("id", c.ID); err != nil {
		return err
	}
	if err := c.checkType(types); err != nil {
		return err
	}
	if err := c.checkData(); err != nil {
		return err
	}
	if c.To == "" {
		c.To = ToRoom
	}
	if c.Class == "" {
		c.Class = ClassControl.String()
	}
	switch {
	case c.Class != ClassControl.String() && c.Class != ClassDanmaku.String():
		return BadField("class", "control or danmaku", c.Class)
	case c.To == ToUser:
		if err := CheckUser("user", c.User); err != nil {
			return err
		}
	case c.To != ToRoom && c.To != ToHosts:
		return BadField("to", "room, user or hosts", string(c.To))
	case c.User != "":
		return BadField("user", "nothing, unless to is user", c.User)
	}
	if c.To != ToRoom && c.Class != ClassControl.String() {
		return BadField("class", "control, since to is "+string(c.To), c.Class)
	}
	return nil
}

func (c *Custom) checkType(types []string) *Error {
	for _, t := range types {
		if t == c.Type {
			return nil
		}
	}
	if len(types) == 0 {
		return BadField("type", "a type of events.types in the configuration, which has none", c.Type)
	}
	return BadField("type", "one of "+joinWords(types), c.Type)
}

func (c *Custom) checkData() *Error {
	if len(c.Data) == 0 {
		c.Data = json.RawMessage("null")
	}
	var short bytes.Buffer
	switch err := json.Compact(&short, c.Data); {
	case err != nil || !utf8.Valid(c.Data):
		return &Error{Reason: ReasonBadRequest, Detail: "data: allowed is JSON in UTF-8"}
	case short.Len() > MaxCustomBytes:
		return &Error{Reason: ReasonTooLong, Detail: "data: allowed are " + strconv.Itoa(MaxCustomBytes) + " bytes of JSON without spaces; received " + strconv.Itoa(short.Len())}
	}
	c.Data = short.Bytes()
	return nil
}

// MID is the message id of an event that somebody sends to a room, or to all ("*"). It follows from who sends it, where to, and its
// id, so that a repeated one has the same on every node.
func (c *Custom) MID(by, room string) string {
	sum := digest(by, room, c.ID)
	return "e" + base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Content condenses what is said to whom, the same way on every node. See [Request.Content].
func (c *Custom) Content() uint64 {
	sum := digest(c.Type, string(c.Data), string(c.To), c.User, c.Class)
	return binary.BigEndian.Uint64(sum[:])
}

// digest tells lists of texts apart.
func digest(parts ...string) [sha256.Size]byte {
	var all []byte
	for _, p := range parts {
		all = binary.BigEndian.AppendUint32(all, uint32(len(p)))
		all = append(all, p...)
	}
	return sha256.Sum256(all)
}

// AppendCustom appends the event. The data has been checked.
func AppendCustom(dst []byte, mid string, c *Custom, ts int64) []byte {
	dst = append(dst, `{"ev":"custom","mid":`...)
	dst = appendString(dst, mid)
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, c.Type)
	dst = append(dst, `,"data":`...)
	dst = append(dst, c.Data...)
	return appendTS(dst, ts)
}
