package frame

import (
	"encoding/binary"

	"liveroom/protocol"
)

// Reader reads what a client sends, frame by frame (RFC 6455, section 5; RFC 7692, section 6). It can stop behind any byte:
// what it must remember of a frame that has begun is here and in the [Message].
type Reader struct {
	left    uint64  // of the payload; while the header is read, its length as far as it is known
	mask    [4]byte // turned so that its first byte is the next one to use
	part    uint8   // which part of a frame comes next
	wanted  uint8   // bytes of that part still to come
	first   byte    // of the frame's header
	masked  bool
	open    bool // a message has begun and its last frame has not come
	closed  bool // a close frame has come
	Deflate bool // permessage-deflate was negotiated; fixed before use
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

// Opcodes, RFC 6455, section 5.2. From OpClose on they are of control frames.
const (
	OpContinuation = 0x0
	OpText         = 0x1
	OpBinary       = 0x2
	OpClose        = 0x8
	OpPing         = 0x9
	OpPong         = 0xa
)

// maxControlPayload bounds a control frame (RFC 6455, section 5.5).
const maxControlPayload = 125

// Op is the opcode of the frame that is being read, or has just ended.
func (f *Reader) Op() byte { return f.first & bitsOpcode }

// Control reports whether that is a control frame.
func (f *Reader) Control() bool { return f.Op() >= OpClose }

// Between reports whether what comes next is the head of a message, or of a control frame between two messages.
func (f *Reader) Between() bool { return f.part == partFirst && !f.open }

// Unfinished reports whether a message has begun whose last frame has not come.
func (f *Reader) Unfinished() bool { return f.open }

// Closed reports whether a close frame has come.
func (f *Reader) Closed() bool { return f.closed }

// Next takes from p what belongs to one frame, and returns how many bytes that was and whether the frame is whole. Payload goes
// to m, unmasked; without m it is thrown away and nothing is judged. A fault is the code to close with; nothing can be
// read behind it.
func (f *Reader) Next(p []byte, m *Message) (n int, whole bool, fault protocol.CloseCode) {
	for n < len(p) {
		if f.part == partPayload {
			k := int(min(f.left, uint64(len(p)-n)))
			if m != nil {
				f.payload(p[n:n+k], m)
			}
			f.left -= uint64(k)
			n += k
		} else {
			f.header(p[n])
			n++
			if f.part == partPayload && m != nil {
				if fault = f.judge(m); fault != 0 {
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

// Skip follows p without keeping any of it.
func (f *Reader) Skip(p []byte) {
	for len(p) > 0 {
		n, _, _ := f.Next(p, nil)
		p = p[n:]
	}
}

// header takes one byte of a header.
func (f *Reader) header(b byte) {
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
func (f *Reader) judge(m *Message) protocol.CloseCode {
	begins := f.Op() == OpText || f.Op() == OpBinary
	switch {
	case f.first&bitsRSV23 != 0, f.first&bitRSV1 != 0 && !(f.Deflate && begins), !f.masked, f.left>>63 != 0:
		return protocol.CloseProtocol
	case f.Op() > OpPong, f.Op() > OpBinary && f.Op() < OpClose:
		return protocol.CloseProtocol
	case f.Control():
		if f.left > maxControlPayload || f.first&bitFin == 0 {
			return protocol.CloseProtocol
		}
		return 0
	case begins == f.open: // one message within another, or the continuation of none
		return protocol.CloseProtocol
	case f.Op() == OpBinary:
		return protocol.CloseNotText
	}
	limit := uint64(protocol.MaxRequestBytes)
	if begins {
		m.deflated = f.first&bitRSV1 != 0
	}
	if m.deflated {
		limit += deflateSlack
	}
	if uint64(len(m.Text))+f.left > limit {
		return protocol.CloseTooBig
	}
	f.open = true
	return 0
}

// payload unmasks p, the next bytes, behind what there is. The buffers grow only with what really comes.
func (f *Reader) payload(p []byte, m *Message) {
	to := &m.Text
	if f.Control() {
		to = &m.Control
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
	mask, by := f.mask, len(p)
	for i := range f.mask {
		f.mask[i] = mask[(i+by)&3]
	}
}

// end ends a frame whose payload has passed.
func (f *Reader) end() {
	f.part = partFirst
	switch {
	case f.Op() == OpClose:
		f.closed = true
	case !f.Control():
		f.open = f.first&bitFin == 0
	}
}
