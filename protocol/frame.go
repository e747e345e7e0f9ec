package protocol

import "encoding/binary"

// Frame is one complete, unmasked WebSocket text frame (RFC 6455, section 5.2): header and payload in one immutable
// slice that any number of sockets write as it is. A server's frames carry no mask, so they are the same for everybody.
type Frame struct {
	bytes  []byte
	header int
}

// maxHeader is the longest header of an unmasked frame.
const maxHeader = 10

// NewFrame copies payload behind a header. The payload must be valid UTF-8.
func NewFrame(payload []byte) *Frame {
	b := AppendFrameHeader(make([]byte, 0, maxHeader+len(payload)), len(payload))
	h := len(b)
	return &Frame{bytes: append(b, payload...), header: h}
}

// NewEventFrame wraps one or several events, already joined by commas, into the array that a frame carries.
func NewEventFrame(events []byte) *Frame {
	b := AppendFrameHeader(make([]byte, 0, maxHeader+len(events)+2), len(events)+2)
	h := len(b)
	b = append(b, '[')
	b = append(b, events...)
	return &Frame{bytes: append(b, ']'), header: h}
}

// Bytes returns header and payload. The caller must not change them.
func (f *Frame) Bytes() []byte { return f.bytes }

// Payload returns the payload alone. The caller must not change it.
func (f *Frame) Payload() []byte { return f.bytes[f.header:] }

// Len is the frame's size on the wire, in bytes.
func (f *Frame) Len() int { return len(f.bytes) }

// AppendFrameHeader appends the header of an unmasked text frame with a payload of so many bytes.
func AppendFrameHeader(dst []byte, payload int) []byte {
	const finText = 0x80 | 0x1
	switch {
	case payload < 126:
		return append(dst, finText, byte(payload))
	case payload < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, finText, 126), uint16(payload))
	default:
		return binary.BigEndian.AppendUint64(append(dst, finText, 127), uint64(payload))
	}
}
