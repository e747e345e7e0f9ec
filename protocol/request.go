package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a request's numbers.
const (
	MaxRequestBytes = 16 << 10 // one frame from a client
	MaxLikeCount    = 20       // taps in one request
	MaxGiftCount    = 9999     // of one gift in one request
	MaxMuteSeconds  = 30 * 24 * 3600
	MaxSlowMode     = 10 * time.Minute
)

// Cursor is where a client left off: positions, which need no clock. Chat is for clients that know no Last.
type Cursor struct {
	Gift   uint64 `json:"gift"`             // sequence of the last gift seen
	Chat   int64  `json:"chat"`             // instant of the last danmaku seen, Unix milliseconds; 0: none
	Last   string `json:"last,omitempty"`   // mid of the last danmaku seen; "": none is known
	Ledger string `json:"ledger,omitempty"` // of which ledger Gift is a sequence; "": not known
}

// DecodeRequest reads one frame into r and checks the shape of what its Op needs. On an error r.ID is set whenever the
// frame had a valid id, so that the answer can be an ack; it is "" otherwise. Unknown fields are ignored, so that newer
// clients can talk to older servers.
func DecodeRequest(frame []byte, r *Request) *Error {
	*r = Request{Count: 1}
	if err := json.Unmarshal(frame, r); err != nil {
		if !ValidID(r.ID) {
			r.ID = ""
		}
		return decodeError(err)
	}
	if r.ID != "" && !ValidID(r.ID) {
		bad := r.ID
		r.ID = ""
		return CheckID("id", bad)
	}
	return r.check()
}

func decodeError(err error) *Error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) && t.Field != "" {
		return &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("%s: allowed is %s; received %s", t.Field, wordOf(t.Type.Kind().String()), t.Value)}
	}
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("frame: allowed is one JSON object; received a fault at byte %d", s.Offset)}
	}
	return &Error{Reason: ReasonBadRequest, Detail: "frame: allowed is one JSON object"}
}

// wordOf turns Go's word for a type into the client's.
func wordOf(k string) string {
	switch {
	case strings.HasPrefix(k, "uint"):
		return "a whole number from 0"
	case strings.HasPrefix(k, "int"):
		return "a whole number"
	case k == "struct", k == "ptr":
		return "an object"
	}
	return "a " + k
}

// check holds the request to the shape its Op needs. Text is checked by [CleanText], the gift's id against the
// catalogue, both by the room.
func (r *Request) check() *Error {
	if r.ID == "" && r.Op != OpPing {
		return CheckID("id", r.ID)
	}
	if c, ok := ClassOf(r.Op); ok {
		return kinds[c].shape(r)
	}
	switch r.Op {
	case OpHello:
		return r.checkHello()
	case OpRefresh:
		if r.Token == "" {
			return BadField("token", "a signed token", "")
		}
	case OpModerate:
		return r.checkModerate()
	case OpPing:
	default:
		return BadField("op", "one of "+joinWords(Ops()), string(r.Op))
	}
	return nil
}

func (r *Request) checkHello() *Error {
	if err := CheckRoom("room", r.Room); err != nil {
		return err
	}
	if r.Note != "" && !ValidID(r.Note) {
		return CheckID("note", r.Note)
	}
	if r.Resume == nil {
		return nil
	}
	return r.Resume.check()
}

func (c *Cursor) check() *Error {
	allowed := "at most " + strconv.Itoa(MaxIdentifier) + " bytes"
	switch {
	case c.Chat < 0:
		return BadField("resume.chat", "a time in Unix milliseconds", strconv.FormatInt(c.Chat, 10))
	case len(c.Last) > MaxIdentifier:
		return BadField("resume.last", allowed, c.Last)
	case len(c.Ledger) > MaxIdentifier:
		return BadField("resume.ledger", allowed, c.Ledger)
	}
	return nil
}

func joinWords[S ~string](words []S) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}
