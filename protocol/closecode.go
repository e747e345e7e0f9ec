package protocol

import (
	"strconv"
	"time"
)

// CloseCode is the status of a WebSocket close frame (RFC 6455, section 7.4). 4000 to 4099 invite the client to come
// back; 4400 to 4499 say "not as you are".
type CloseCode uint16

// Close codes the server sends.
const (
	CloseNormal       CloseCode = 1000 // the client left
	CloseGoingAway    CloseCode = 1001 // drain; reason carries reconnect_in_ms
	CloseProtocol     CloseCode = 1002 // the client does not speak WebSocket (RFC 6455, section 7.4.1)
	CloseInvalidUTF8  CloseCode = 1007
	CloseNotText      CloseCode = 1008
	CloseTooBig       CloseCode = 1009
	CloseInternal     CloseCode = 1011
	CloseSlowConsumer CloseCode = 4001 // best effort: the socket may be too full to carry it
	CloseHelloTimeout CloseCode = 4002 // no hello in time, or a bad one
	CloseOverloaded   CloseCode = 4003 // reason carries reconnect_in_ms
	CloseKicked       CloseCode = 4004
	CloseAbuse        CloseCode = 4005 // reason carries reconnect_in_ms
	CloseToken        CloseCode = 4401 // token invalid, expired or revoked
	CloseForbidden    CloseCode = 4403 // banned or forbidden
	CloseNoRoom       CloseCode = 4404 // no such room
)

// CloseCodes lists every code the server sends, with the word that stands in its reason.
func CloseCodes() []CloseCode {
	return []CloseCode{
		CloseNormal, CloseGoingAway, CloseProtocol, CloseInvalidUTF8, CloseNotText, CloseTooBig, CloseInternal,
		CloseSlowConsumer, CloseHelloTimeout, CloseOverloaded, CloseKicked, CloseAbuse,
		CloseToken, CloseForbidden, CloseNoRoom,
	}
}

var closeWords = map[CloseCode]string{
	CloseNormal: "bye", CloseGoingAway: "drain", CloseProtocol: "protocol_error", CloseInvalidUTF8: "invalid_utf8", CloseNotText: "not_text",
	CloseTooBig: "too_big", CloseInternal: "internal", CloseSlowConsumer: "slow_consumer",
	CloseHelloTimeout: "hello", CloseOverloaded: "overloaded", CloseKicked: "kicked", CloseAbuse: "abuse",
	CloseToken: "token", CloseForbidden: "forbidden", CloseNoRoom: "no_such_room",
}

// String returns the word for the code, as it stands in the close reason and in metrics.
func (c CloseCode) String() string {
	if w, ok := closeWords[c]; ok {
		return w
	}
	return strconv.Itoa(int(c))
}

// ComeBack reports whether a client should reconnect after this code.
func (c CloseCode) ComeBack() bool {
	return c == CloseGoingAway || c == CloseInternal || c >= 4000 && c <= 4099
}

// Refusal ends a session: the code and, where the client should wait before it comes back, for how long.
type Refusal struct {
	Code      CloseCode
	Reconnect time.Duration // 0: nothing said
	// Scope and Rule name the limit that refused a hello; "" for none.
	Scope, Rule string
	Detail      string // one ASCII word that explains the code further, at most 40 bytes; "" for none
	Words       string // of the platform, of whoever it does not let in, for the ack alone; "" for none
}

// Reason renders the close reason: compact ASCII JSON of at most 123 bytes, the most a close frame can carry.
func (r Refusal) Reason() string {
	b := make([]byte, 0, 96)
	b = append(b, `{"reason":"`...)
	b = append(b, r.Code.String()...)
	b = append(b, '"')
	if r.Detail != "" {
		b = append(b, `,"detail":`...)
		b = appendString(b, asciiWord(r.Detail))
	}
	if r.Reconnect > 0 {
		b = append(b, `,"reconnect_in_ms":`...)
		b = strconv.AppendInt(b, r.Reconnect.Milliseconds(), 10)
	}
	return string(append(b, '}'))
}

// Answer is what the ack of a refused hello says: the same as the close code, and a sentence for people.
func (r Refusal) Answer() *Error {
	switch {
	case r.Code == CloseToken:
		return &Error{Reason: ReasonUnauthenticated, Detail: r.Detail}
	case r.Code == CloseForbidden && (r.Detail == string(ReasonBanned) || r.Detail == string(ReasonNetworkBanned)):
		return &Error{Reason: Reason(r.Detail)}
	case r.Code == CloseForbidden && r.Detail == string(ReasonRejected):
		return &Error{Reason: ReasonRejected, Detail: r.Words}
	case r.Code == CloseForbidden:
		return &Error{Reason: ReasonForbidden, Detail: r.Detail}
	case r.Code == CloseNoRoom:
		return &Error{Reason: ReasonNotFound, Detail: "room"}
	case r.Rule != "":
		return &Error{Reason: ReasonRateLimited, Scope: r.Scope, Rule: r.Rule, RetryAfter: r.Reconnect}
	case r.Reconnect > 0:
		return &Error{Reason: ReasonUnavailable, RetryAfter: r.Reconnect}
	}
	return &Error{Reason: ReasonInternal}
}

// asciiWord keeps the first 40 bytes that need no JSON escape.
func asciiWord(s string) string {
	b := make([]byte, 0, 40)
	for i := 0; i < len(s) && len(b) < cap(b); i++ {
		if c := s[i]; c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			b = append(b, c)
		}
	}
	return string(b)
}
