package client

import (
	"encoding/binary"
	"errors"
)

// maxFrameBytes bounds what one server frame may make a session hold.
const maxFrameBytes = 8 << 20

var (
	errMaskedFrame = errors.New("the server masked a frame")
	errReservedBit = errors.New("the server set a reserved bit though no extension was agreed")
	errFrameTooBig = errors.New("the server sent a frame above 8 MiB")
)

// frameHeader is the head of one frame from the server (RFC 6455, section 5.2).
type frameHeader struct {
	fin     bool
	opcode  byte // with opDeflated
	size    int  // of the header, in bytes
	payload int  // bytes
}

// readHeader reads the head of b. ok is false while b is too short for it. deflates tells that permessage-deflate was agreed.
func readHeader(b []byte, deflates bool) (h frameHeader, ok bool, err error) {
	if len(b) < 2 {
		return h, false, nil
	}
	switch {
	case b[0]&0x30 != 0, b[0]&opDeflated != 0 && !deflates:
		return h, false, errReservedBit
	case b[0]&opDeflated != 0 && b[0]&^opDeflated != 0x80|OpText:
		return h, false, errDeflatedFragment
	case b[1]&0x80 != 0:
		return h, false, errMaskedFrame
	}
	h = frameHeader{fin: b[0]&0x80 != 0, opcode: b[0] & (0x0f | opDeflated), size: 2, payload: int(b[1])}
	switch h.payload {
	case 126:
		if len(b) < 4 {
			return h, false, nil
		}
		h.size, h.payload = 4, int(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if len(b) < 10 {
			return h, false, nil
		}
		n := binary.BigEndian.Uint64(b[2:])
		if n > maxFrameBytes {
			return h, false, errFrameTooBig
		}
		h.size, h.payload = 10, int(n)
	}
	return h, true, nil
}

// inbound is one session's half-read frames. What arrives whole is handed on without a copy.
type inbound struct {
	deflates bool   // permessage-deflate was agreed; fixed
	partial  []byte // the beginning of a frame whose rest has not come
	message  []byte // the fragments of a message whose last has not come
}

// frameHandler takes a session's complete messages and control frames. The payload is only valid during the call.
type frameHandler interface {
	frame(opcode byte, payload []byte)
}

// feed takes the next bytes of the stream and calls h for each frame that is now complete.
func (in *inbound) feed(data []byte, h frameHandler) error {
	joined := len(in.partial) > 0
	if joined {
		in.partial = append(in.partial, data...)
		data = in.partial
	}
	rest, err := in.drain(data, h)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		in.partial = in.partial[:0]
	case joined:
		in.partial = in.partial[:copy(in.partial, rest)]
	default:
		in.partial = append(in.partial, rest...)
	}
	return nil
}

// drain handles whole frames from the head of data and returns what is left.
func (in *inbound) drain(data []byte, h frameHandler) (rest []byte, err error) {
	for {
		head, ok, err := readHeader(data, in.deflates)
		if err != nil {
			return nil, err
		}
		end := head.size + head.payload
		if !ok || len(data) < end {
			return data, nil
		}
		if err := in.one(head, data[head.size:end], h); err != nil {
			return nil, err
		}
		data = data[end:]
	}
}

func (in *inbound) one(head frameHeader, payload []byte, h frameHandler) error {
	switch {
	case head.opcode >= OpClose, head.fin && head.opcode != opContinuation:
		h.frame(head.opcode, payload)
	case len(in.message)+len(payload) > maxFrameBytes:
		return errFrameTooBig
	default:
		in.message = append(in.message, payload...)
		if head.fin {
			h.frame(OpText, in.message)
			in.message = in.message[:0]
		}
	}
	return nil
}

// opDeflated marks the opcode of a deflated message for a [frameHandler]; it is RSV1 where the header has it.
const opDeflated = 0x40

var errDeflatedFragment = errors.New("the server deflated a message that it cut up, or a control frame")
