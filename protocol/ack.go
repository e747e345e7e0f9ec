package protocol

import (
	"strconv"
	"time"
)

// Ack is the one answer to a request that had an id.
type Ack struct {
	ID        string
	Code      Code
	MID       string // of the admitted message
	TS        int64  // instant of admission, Unix milliseconds; 0: left out
	Seq       uint64 // of a gift, or of an act in the audit; 0: left out
	Duplicate bool   // a gift that was stored before
	Counted   int    // of a like counted in part (202)
	Err       *Error // what a code other than 200 means; its Reason decides the code
}

// Refuse makes the ack that carries err.
func Refuse(id string, err *Error) Ack { return Ack{ID: id, Code: err.Reason.Code(), Err: err} }

// AppendAck appends the event in the language of the session.
func AppendAck(dst []byte, a Ack, l Lang) []byte {
	dst = append(dst, `{"ev":"ack","id":`...)
	dst = appendString(dst, a.ID)
	return append(a.appendRest(dst, l), '}')
}

// AppendError appends what a client is told when its frame had no readable id.
func AppendError(dst []byte, err *Error, l Lang) []byte {
	dst = append(dst, `{"ev":"error"`...)
	return append(Refuse("", err).appendRest(dst, l), '}')
}

// AppendAnswer appends the ack as the body of an HTTP answer: the same fields without ev.
func AppendAnswer(dst []byte, a Ack, l Lang) []byte {
	dst = append(dst, '{')
	if a.ID != "" {
		dst = append(dst, `"id":`...)
		dst = appendString(dst, a.ID)
		dst = append(dst, ',')
	}
	return append(a.appendFields(dst, l), '}')
}

func (a Ack) appendRest(dst []byte, l Lang) []byte {
	return a.appendFields(append(dst, ','), l)
}

func (a Ack) appendFields(dst []byte, l Lang) []byte {
	dst = append(dst, `"code":`...)
	dst = strconv.AppendInt(dst, int64(a.Code), 10)
	if a.Err != nil {
		dst = a.Err.append(dst)
	}
	if a.MID != "" {
		dst = append(dst, `,"mid":`...)
		dst = appendString(dst, a.MID)
	}
	if a.Seq != 0 {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendUint(dst, a.Seq, 10)
	}
	if a.Duplicate {
		dst = append(dst, `,"duplicate":true`...)
	}
	if a.Code == Degraded && a.Err != nil && a.Err.Reason == ReasonFolded {
		dst = append(dst, `,"counted":`...)
		dst = strconv.AppendInt(dst, int64(a.Counted), 10)
	}
	if a.TS != 0 {
		dst = append(dst, `,"ts":`...)
		dst = strconv.AppendInt(dst, a.TS, 10)
	}
	if a.Err != nil {
		dst = append(dst, `,"msg":`...)
		dst = appendString(dst, Message(l, a.Err.Reason, a.Err.Detail))
	}
	return dst
}

// append appends the refusal's fields, each only when it says something.
func (e *Error) append(dst []byte) []byte {
	dst = append(dst, `,"reason":`...)
	dst = appendString(dst, string(e.Reason))
	if e.Scope != "" {
		dst = append(dst, `,"scope":`...)
		dst = appendString(dst, e.Scope)
	}
	if e.Rule != "" {
		dst = append(dst, `,"rule":`...)
		dst = appendString(dst, e.Rule)
	}
	if e.Outcome != "" {
		dst = append(dst, `,"outcome":`...)
		dst = appendString(dst, string(e.Outcome))
	}
	if e.RetryAfter > 0 {
		dst = append(dst, `,"retry_after_ms":`...)
		dst = strconv.AppendInt(dst, ceilMillis(e.RetryAfter), 10)
	}
	return dst
}

// ceilMillis rounds up, so that waiting the time told is always enough.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
