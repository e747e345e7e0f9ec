package protocol

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Error is a refusal on its way to the client. It is a Go error, so that it can pass through ordinary returns; the
// unknown Go error becomes [ReasonInternal] on the wire and full detail in the log.
type Error struct {
	Reason     Reason
	Scope      string        // of a limit: conn, user, user_room, room, ip, net, net_room, global, key
	Rule       string        // of a limit: the rule's name
	RetryAfter time.Duration // 0: no time is known
	Outcome    Outcome       // of a gift
	Detail     string        // which field, what is allowed, what was received; in English
}

// Error implements error.
func (e *Error) Error() string {
	s := strconv.Itoa(int(e.Reason.Code())) + " " + string(e.Reason)
	if e.Rule != "" {
		s += " by " + e.Scope + " rule " + e.Rule
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// BadField is a bad_request that says which field, what is allowed and what was received.
func BadField(field, allowed, received string) *Error {
	return &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("%s: allowed is %s; received %s", field, allowed, clip(received))}
}

// clip quotes at most 40 bytes of what a stranger sent.
func clip(s string) string {
	const most = 40
	if s == "" {
		return "nothing"
	}
	if len(s) <= most {
		return strconv.QuoteToGraphic(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.QuoteToGraphic(s[:cut]) + "…"
}
