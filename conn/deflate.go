package conn

import (
	"net/http"
	"strings"

	"liveroom/protocol"
)

// deflateExtension is the one extension that is negotiated (RFC 7692).
const deflateExtension = "permessage-deflate"

// acceptDeflate answers the offers of permessage-deflate in a handshake: with the value of Sec-WebSocket-Extensions for the
// first one that can be met, "" when there is none. No context is ever taken over, in neither direction: one deflated frame
// serves everybody, and no session keeps a window. coder's own negotiation is left off, since it would bring coder's own
// compression with it.
//
// Safari offers permessage-deflate without parameters, Chromium with client_max_window_bits, Firefox without. The
// x-webkit-deflate-frame of Safari before 13 is another extension and goes unanswered.
func acceptDeflate(h http.Header) string {
	for _, v := range h.Values("Sec-WebSocket-Extensions") {
		for offer := range strings.SplitSeq(v, ",") {
			if answer := meetOffer(offer); answer != "" {
				return answer
			}
		}
	}
	return ""
}

// meetOffer answers one offer; "" declines it. An offer is declined whole for anything that RFC 7692, section 7, does not
// know, so a client can list another one behind it.
func meetOffer(offer string) string {
	name, rest, more := strings.Cut(offer, ";")
	if strings.TrimSpace(name) != deflateExtension {
		return ""
	}
	answer := deflateExtension + "; server_no_context_takeover; client_no_context_takeover"
	seen := make(map[string]bool, 4)
	for more {
		var param string
		param, rest, more = strings.Cut(rest, ";")
		key, value, hasValue := strings.Cut(strings.TrimSpace(param), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		if seen[key] {
			return ""
		}
		seen[key] = true
		switch key {
		case "server_no_context_takeover", "client_no_context_takeover":
			if hasValue {
				return ""
			}
		case "client_max_window_bits":
			// A smaller window than ours is ours to read as well, so there is nothing to ask for.
			if hasValue && !windowBits(value) {
				return ""
			}
		case "server_max_window_bits":
			// The shared frames have a window of 15 bits and no other.
			if value != "15" {
				return ""
			}
			answer += "; server_max_window_bits=15"
		default:
			return ""
		}
	}
	return answer
}

// windowBits reports whether v is 8 to 15, without leading zeros (RFC 7692, section 7.1.2).
func windowBits(v string) bool {
	switch v {
	case "8", "9", "10", "11", "12", "13", "14", "15":
		return true
	}
	return false
}

// Deflates reports whether the client has negotiated permessage-deflate. It never changes.
func (s *Session) Deflates() bool { return s.deflate }

// deflating counts the session among those that deflate, 1 or 0.
func (s *Session) deflating() int64 {
	if s.Deflates() {
		return 1
	}
	return 0
}

// full is the form of a broadcast that this viewer gets when it keeps up.
func (s *Session) full(b *protocol.Broadcast) *protocol.Frame {
	if s.deflate {
		return b.FullDeflated()
	}
	return b.Full()
}

// essential is the form for a viewer who has fallen behind, nil when there is nothing in it.
func (s *Session) essential(b *protocol.Broadcast) *protocol.Frame {
	if s.deflate {
		return b.EssentialDeflated()
	}
	return b.Essential()
}
