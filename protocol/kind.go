package protocol

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"
)

// Class is the promise that a message carries; see ARCHITECTURE.md for what each class may expect under load. What viewers send is
// of a class for each kind.
type Class uint8

// Classes, from the one that is never dropped on. A new one goes before NumClasses.
const (
	ClassControl Class = iota
	ClassGift
	ClassDanmaku
	ClassLike
	ClassEvent // custom events, and those of class danmaku in a tick
	NumClasses
)

// Kind is all that differs between the kinds of messages and is no business of one package alone.
type Kind struct {
	// Name is the class's in metrics. Of what viewers send it is also the operation's, the event's, that of package limit's action,
	// and the last token of its subject on the bus.
	Name string
	// Behind is what a viewer who has fallen behind gets of it.
	Behind Behind
	// Yields is when a node that is behind refuses it.
	Yields Yields
	// Live says that it goes over the bus as it is, at most once, and is shown when it comes back.
	Live bool
	// Talk says that who is muted may not send it.
	Talk bool
	// shape holds a request to what the operation needs; nil: viewers send none of the class.
	shape func(*Request) *Error
	// Append encodes the event of one that is shown as soon as the gate has let it pass; nil: package room has a way of its own.
	Append func(dst []byte, s Said) []byte
}

// Behind is what a viewer who has fallen behind gets of a kind.
type Behind uint8

// What such a viewer gets. Newest is for one kind alone, whose events each replace the one before.
const (
	Kept    Behind = iota // all of it; a viewer who can't take it is closed and comes back
	Missed                // none; how many is announced once it has caught up
	LeftOut               // none
	Newest                // the newest, once it has caught up
)

// Yields is when a node that is behind refuses a kind.
type Yields uint8

// From the last to the first.
const (
	Never Yields = iota
	ByHalves
	First
)

// Said is one message as it was admitted.
type Said struct {
	MID     string
	User    User
	TS      int64 // instant of admission, Unix milliseconds
	Hidden  bool  // only its sender is shown it
	New     bool  // its sender came into the room lately
	Request *Request
}

var kinds = [NumClasses]Kind{
	ClassControl: {Name: "control", Live: true},
	ClassGift:    {Name: "gift", shape: (*Request).checkGift},
	ClassDanmaku: {Name: "danmaku", Behind: Missed, Yields: ByHalves, Live: true, Talk: true, shape: (*Request).checkDanmaku, Append: appendSaid},
	ClassEvent:   {Name: "event", Behind: Missed, Live: true},
	ClassLike:    {Name: "like", Behind: Newest, Yields: First, shape: func(r *Request) *Error { return r.checkCount(MaxLikeCount) }},
}

// Kind returns what is particular to the class.
func (c Class) Kind() *Kind { return &kinds[c] }

// String returns the class as it stands in metrics.
func (c Class) String() string {
	if c < NumClasses {
		return kinds[c].Name
	}
	return "class-" + strconv.Itoa(int(c))
}

// Essential reports whether a viewer who has fallen behind still gets this class.
func (c Class) Essential() bool { return kinds[c].Behind == Kept }

// ClassOf returns the class of what an operation sends to all; false for operations that send nothing of the kind.
func ClassOf(op Op) (Class, bool) {
	for c := range NumClasses {
		if kinds[c].shape != nil && kinds[c].Name == string(op) {
			return c, true
		}
	}
	return 0, false
}

// LiveClass returns the class that goes over the bus under a name.
func LiveClass(name string) (Class, bool) {
	for c := range NumClasses {
		if kinds[c].Live && kinds[c].Name == name {
			return c, true
		}
	}
	return 0, false
}

// Op is what a client asks for.
type Op string

// Operations. Those of messages are called after their kinds.
const (
	OpHello    Op = "hello"
	OpDanmaku  Op = "danmaku"
	OpGift     Op = "gift"
	OpLike     Op = "like"
	OpRefresh  Op = "refresh"
	OpPing     Op = "ping"
	OpModerate Op = "moderate"
)

// Ops lists every operation.
func Ops() []Op {
	ops := []Op{OpHello}
	for _, k := range kinds {
		if k.shape != nil {
			ops = append(ops, Op(k.Name))
		}
	}
	return append(ops, OpRefresh, OpPing, OpModerate)
}

// Request is one decoded frame from a client, or the body of an HTTP call that speaks for a user. Which fields matter
// depends on Op.
type Request struct {
	Op Op     `json:"op"`
	ID string `json:"id"` // the client's own; with user and room, a gift's idempotency key

	Room   string  `json:"room"`
	Token  string  `json:"token"`
	Lang   string  `json:"lang"`
	Resume *Cursor `json:"resume"`
	Note   string  `json:"note"` // an opaque id of the device, of the page's making

	Text  string `json:"text"`
	Color string `json:"color"`
	Mode  Mode   `json:"mode"`
	Reply string `json:"reply"` // mid of the danmaku that this one answers

	Gift  string `json:"gift"`
	Count int    `json:"count"` // of a gift or a like; 1 when the frame has none

	Action  Action `json:"action"`
	User    string `json:"user"`
	Seconds int    `json:"seconds"`
	Reason  string `json:"reason"`
	MID     string `json:"mid"`

	Settings *Settings `json:"settings"`
	Network  *bool     `json:"network"` // of a ban: whether guests of the user's networks are barred too; nil: new ones, if the user is a guest
	Device   *bool     `json:"device"`  // the same of devices
	Seq      uint64    `json:"seq"`     // of an entry of the audit

	ReplyTo *User `json:"-"` // who said what Reply names; the room finds out
}

var contentSeed = maphash.MakeSeed()

// Content condenses what a request asks for. Two requests with one id and different content differ in it but for one
// case in 2^64.
func (r *Request) Content() uint64 {
	var h maphash.Hash
	h.SetSeed(contentSeed)
	for _, field := range [...]string{
		string(r.Op), r.Text, r.Color, string(r.Mode), r.Gift, string(r.Action), r.User, r.Reason, r.MID, r.Reply, r.actText(),
	} {
		h.WriteString(field)
		h.WriteByte(0)
	}
	var numbers [24]byte
	binary.LittleEndian.PutUint64(numbers[:8], uint64(r.Count))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(r.Seconds))
	binary.LittleEndian.PutUint64(numbers[16:], r.Seq)
	h.Write(numbers[:])
	return h.Sum64()
}

func (r *Request) actText() (text string) {
	for _, flag := range []*bool{r.Network, r.Device} {
		if flag != nil {
			text += strconv.FormatBool(*flag)
		}
		text += ","
	}
	if r.Settings != nil {
		text += r.Settings.String()
	}
	return text
}

func (r *Request) checkDanmaku() *Error {
	if len(r.Reply) > MaxIdentifier {
		return BadField("reply", "the id of a message", r.Reply)
	}
	switch r.Mode {
	case "":
		r.Mode = ModeScroll
	case ModeScroll, ModeTop, ModeBottom:
	default:
		return BadField("mode", "scroll, top or bottom", string(r.Mode))
	}
	if r.Color != "" && !validColor(r.Color) {
		return BadField("color", "# and six hexadecimal digits", r.Color)
	}
	r.Color = strings.ToLower(r.Color)
	return nil
}

func validColor(s string) bool {
	if len(s) != 7 || s[0] != '#' {
		return false
	}
	_, err := strconv.ParseUint(s[1:], 16, 32)
	return err == nil
}

func (r *Request) checkGift() *Error {
	if err := CheckRoom("gift", r.Gift); err != nil {
		return err
	}
	return r.checkCount(MaxGiftCount)
}

// checkCount refuses a count of 0 that was really sent: nobody who asks for nothing is to pay for one.
func (r *Request) checkCount(most int) *Error {
	if r.Count < 1 || r.Count > most {
		return BadField("count", "1 to "+strconv.Itoa(most), strconv.Itoa(r.Count))
	}
	return nil
}

// appendSaid is [AppendDanmaku] of what was said. The text has been cleaned.
func appendSaid(dst []byte, s Said) []byte {
	return AppendDanmaku(dst, Danmaku{
		MID: s.MID, User: s.User, Text: s.Request.Text, Color: s.Request.Color, Mode: s.Request.Mode, TS: s.TS, Hidden: s.Hidden, New: s.New,
		Reply: s.Request.Reply, ReplyTo: s.Request.ReplyTo,
	})
}
