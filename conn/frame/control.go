package frame

import (
	"encoding/binary"
	"unicode/utf8"

	"liveroom/protocol"
)

// maxReason is how much of a reason fits in a close frame, in bytes.
const maxReason = maxControlPayload - 2

// AppendControl appends an unmasked control frame. The payload is of 125 bytes at most (RFC 6455, section 5.5).
func AppendControl(to []byte, op byte, payload []byte) []byte {
	return append(append(to, bitFin|op, byte(len(payload))), payload...)
}

// Close is an unmasked close frame (RFC 6455, section 5.5.1). What does not fit of the reason is cut off.
func Close(code protocol.CloseCode, reason string) []byte {
	reason = reason[:min(len(reason), maxReason)]
	f := append(make([]byte, 0, 4+len(reason)), bitFin|OpClose, byte(2+len(reason)))
	f = binary.BigEndian.AppendUint16(f, uint16(code))
	return append(f, reason...)
}

// ParseClose reads the payload of a close frame (RFC 6455, section 7.4): its code, 1000 when it has none. A fault is the code
// to close with.
func ParseClose(payload []byte) (code, fault protocol.CloseCode) {
	if len(payload) == 0 {
		return protocol.CloseNormal, 0
	}
	if len(payload) == 1 {
		return 0, protocol.CloseProtocol
	}
	switch code := binary.BigEndian.Uint16(payload); {
	case code < 1000, code > 1014 && code < 3000, code > 4999, code >= 1004 && code <= 1006: // 1004 to 1006 are never on the wire
		return 0, protocol.CloseProtocol
	case !utf8.Valid(payload[2:]):
		return 0, protocol.CloseInvalidUTF8
	default:
		return protocol.CloseCode(code), 0
	}
}
