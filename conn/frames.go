package conn

import (
	"encoding/binary"
	"unicode/utf8"

	"liveroom/protocol"
)

// inflow reads what a client sends, frame by frame (RFC 6455, section 5; RFC 7692, section 6). It can stop behind any byte:
// what it must remember of a frame that has begun is here and in the scratch, so that a session rests inside a frame just
// as between two. Owned by the read loop.
type inflow struct {
	left     uint64  // of the payload; while the header is read, its length as far as it is known
	mask     [4]byte // turned so that its first byte is the next one to use
	part     uint8   // which part of a frame comes next
	wanted   uint8   // bytes of that part still to come
	first    byte    // of the frame's header
	masked   bool
	open     bool // a message has begun and its last frame has not come
	deflated bool // that message is
	deflate  bool // permessage-deflate was negotiated; fixed
	closed   bool // a close frame has come
}

// Parts of a frame.
const (
	partFirst   uint8 = iota // FIN, RSV, opcode
	partSecond               // mask bit, short length
	partLength               // long length
	partMask                 //
	partPayload              //
)

// Bits of a frame's first byte.
const (
	bitFin     = 0x80
	bitRSV1    = 0x40
	bitsRSV23  = 0x30
	bitsOpcode = 0x0f
)

// Opcodes, RFC 6455, section 5.2. From opClose on they are of control frames.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

// maxControlPayload bounds a control frame (RFC 6455, section 5.5).
const maxControlPayload = 125

// op is the opcode of the frame that is being read, or has just ended.
func (f *inflow) op() byte { return f.first & bitsOpcode }

func (f *inflow) control() bool { return f.op() >= opClose }

// between reports whether what comes next is the head of a message, or of a control frame between two messages.
func (f *inflow) between() bool { return f.part == partFirst && !f.open }

// next takes from p what belongs to one frame, and returns how many bytes that was and whether the frame is whole. Payload goes
// to c, unmasked; without c it is thrown away and nothing is judged. A fault is the code to close with; nothing can be
// read behind it.
func (f *inflow) next(p []byte, c *scratch) (n int, whole bool, fault protocol.CloseCode) {
	for n < len(p) {
		if f.part == partPayload {
			k := int(min(f.left, uint64(len(p)-n)))
			if c != nil {
				f.payload(p[n:n+k], c)
			}
			f.left -= uint64(k)
			n += k
		} else {
			f.header(p[n])
			n++
			if f.part == partPayload && c != nil {
				if fault = f.judge(c); fault != 0 {
					return n, false, fault
				}
			}
		}
		if f.part == partPayload && f.left == 0 {
			f.end()
			return n, true, 0
		}
	}
	return n, false, 0
}

// skip follows p without keeping any of it.
func (f *inflow) skip(p []byte) {
	for len(p) > 0 {
		n, _, _ := f.next(p, nil)
		p = p[n:]
	}
}

// header takes one byte of a header.
func (f *inflow) header(b byte) {
	switch f.part {
	case partFirst:
		f.first, f.part = b, partSecond
		return
	case partSecond:
		f.masked = b&0x80 != 0
		f.left, f.wanted, f.part = uint64(b&0x7f), 0, partLength
		switch f.left {
		case 126:
			f.left, f.wanted = 0, 2
		case 127:
			f.left, f.wanted = 0, 8
		}
	case partLength:
		f.left = f.left<<8 | uint64(b)
		f.wanted--
	case partMask:
		f.mask[4-f.wanted] = b
		f.wanted--
	}
	if f.part == partLength && f.wanted == 0 {
		f.part = partMask
		if f.masked {
			f.wanted = 4
		}
	}
	if f.part == partMask && f.wanted == 0 {
		f.part = partPayload
	}
}

// judge holds a whole header to the rules, and begins a message.
func (f *inflow) judge(c *scratch) protocol.CloseCode {
	begins := f.op() == opText || f.op() == opBinary
	switch {
	case f.first&bitsRSV23 != 0, f.first&bitRSV1 != 0 && !(f.deflate && begins), !f.masked, f.left>>63 != 0:
		return protocol.CloseProtocol
	case f.op() > opPong, f.op() > opBinary && f.op() < opClose:
		return protocol.CloseProtocol
	case f.control():
		if f.left > maxControlPayload || f.first&bitFin == 0 {
			return protocol.CloseProtocol
		}
		return 0
	case begins == f.open: // one message within another, or the continuation of none
		return protocol.CloseProtocol
	case f.op() == opBinary:
		return protocol.CloseNotText
	}
	limit := uint64(protocol.MaxRequestBytes)
	if begins {
		f.deflated = f.first&bitRSV1 != 0
	}
	if f.deflated {
		limit += deflateSlack
	}
	if uint64(len(c.buf))+f.left > limit {
		return protocol.CloseTooBig
	}
	f.open = true
	return 0
}

// payload unmasks p, the next bytes, behind what there is. The buffers grow only with what really comes.
func (f *inflow) payload(p []byte, c *scratch) {
	to := &c.buf
	if f.control() {
		to = &c.control
	}
	at := len(*to)
	*to = append(*to, p...)
	fresh := (*to)[at:]
	key := uint64(binary.LittleEndian.Uint32(f.mask[:]))
	key |= key << 32
	for ; len(fresh) >= 8; fresh = fresh[8:] {
		binary.LittleEndian.PutUint64(fresh, binary.LittleEndian.Uint64(fresh)^key)
	}
	for i := range fresh {
		fresh[i] ^= f.mask[i&3]
	}
	m, turn := f.mask, len(p)
	for i := range f.mask {
		f.mask[i] = m[(i+turn)&3]
	}
}

// end ends a frame whose payload has passed.
func (f *inflow) end() {
	f.part = partFirst
	switch {
	case f.op() == opClose:
		f.closed = true
	case !f.control():
		f.open = f.first&bitFin == 0
	}
}

// closeFault judges the payload of a close frame (RFC 6455, section 7.4); 0: it is well.
func closeFault(payload []byte) protocol.CloseCode {
	if len(payload) == 0 {
		return 0
	}
	if len(payload) == 1 {
		return protocol.CloseProtocol
	}
	switch code := binary.BigEndian.Uint16(payload); {
	case code < 1000, code > 1014 && code < 3000, code > 4999, code >= 1004 && code <= 1006: // 1004 to 1006 are never on the wire
		return protocol.CloseProtocol
	case !utf8.Valid(payload[2:]):
		return protocol.CloseInvalidUTF8
	}
	return 0
}
