package conn

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"liveroom/protocol"
)

// deflateSlack is what a deflated message may be longer on the wire than the message itself, so that one of exactly the
// limit passes which does not compress. Stored blocks cost five bytes each.
const deflateSlack = 512

// inflow follows the frame headers in what a client sends that has negotiated permessage-deflate. It hands a deflated
// message to coder as a binary one without RSV1, and ends the stream at a message that is binary itself. So coder need not
// know the extension: its own inflating keeps a buffer of 4 KiB for each session that has ever sent a deflated message,
// and a window of 40 KiB while the rest of one is waited for.
//
// Owned by the read loop.
type inflow struct {
	left    uint64 // of the payload; while the header is read, its length as far as it is known
	header  uint8  // which part of a header comes next
	wanted  uint8  // bytes of that part still to come
	masked  bool
	notText bool // a binary message comes next
}

// Parts of a header (RFC 6455, section 5.2).
const (
	headFirst  uint8 = iota // FIN, RSV, opcode
	headSecond              // mask bit, short length
	headLength              // long length
	headMask
	headDone // the payload
)

// errNotText ends the reading where a binary message begins.
var errNotText = errors.New("a binary message")

// pass follows p, the next bytes of the stream, and returns how many of them may be passed on.
func (in *inflow) pass(p []byte) (int, error) {
	const opcodes, opText, opBinary, rsv1 = 0x0f, 0x1, 0x2, 0x40
	for i := 0; i < len(p); {
		if in.header == headDone {
			n := min(in.left, uint64(len(p)-i))
			i += int(n)
			if in.left -= n; in.left == 0 {
				in.header = headFirst
			}
			continue
		}
		if in.header == headFirst {
			switch {
			case p[i]&opcodes == opBinary:
				in.notText = true
				return i, errNotText
			case p[i]&opcodes == opText && p[i]&rsv1 != 0:
				p[i] ^= rsv1 | opText | opBinary
			}
		}
		in.step(p[i])
		i++
	}
	return len(p), nil
}

// step takes one byte of a header.
func (in *inflow) step(b byte) {
	switch in.header {
	case headFirst:
		in.header = headSecond
		return
	case headSecond:
		in.masked = b&0x80 != 0
		in.left, in.wanted = uint64(b&0x7f), 0
		switch in.left {
		case 126:
			in.left, in.wanted = 0, 2
		case 127:
			in.left, in.wanted = 0, 8
		}
		in.header = headLength
	case headLength:
		in.left = in.left<<8 | uint64(b)
		in.wanted--
	case headMask:
		in.wanted--
	}
	if in.header == headLength && in.wanted == 0 {
		in.header = headMask
		if in.masked {
			in.wanted = 4
		}
	}
	if in.header == headMask && in.wanted == 0 {
		in.header = headDone
		if in.left == 0 {
			in.header = headFirst
		}
	}
}

// inflater is a decompressor, which weighs 40 KiB, with its input. There are as many as messages are handled at a time: none
// waits for the network.
type inflater struct {
	in bytes.Reader
	r  io.ReadCloser
}

var inflaters = sync.Pool{New: func() any {
	f := new(inflater)
	f.r = flate.NewReader(&f.in)
	return f
}}

// inflateTail ends the message for the decompressor: what every message leaves out, and a final empty block.
const inflateTail = protocol.DeflateTail + "\x01\x00\x00\xff\xff"

// errTooBig says that a message is larger than any request may be.
var errTooBig = errors.New("larger than the limit")

// unpack inflates a message that came deflated. False: it can't be read, and the session is closed.
func (s *Session) unpack(c *scratch) bool {
	var err error
	switch {
	case c.deflated:
		var message []byte
		message, err = inflate(c.buf, c.spare)
		c.buf, c.spare = message, c.buf
	case len(c.buf) > protocol.MaxRequestBytes: // within the slack
		err = errTooBig
	}
	switch err {
	case nil:
		return true
	case errTooBig:
		s.Close(protocol.Refusal{Code: protocol.CloseTooBig})
	default:
		s.Close(protocol.Refusal{Code: protocol.CloseProtocol})
	}
	return false
}

// inflate returns the message of which deflated is the compressed form, in out's array if it fits. It stops at the limit,
// whatever else there may be.
func inflate(deflated, out []byte) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	f.in.Reset(append(deflated, inflateTail...))
	if err := f.r.(flate.Resetter).Reset(&f.in, nil); err != nil {
		return nil, err
	}
	if out = out[:0]; cap(out) == 0 {
		out = make([]byte, 0, scratchBytes)
	}
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := f.r.Read(out[len(out):min(cap(out), protocol.MaxRequestBytes+1)])
		out = out[:len(out)+n]
		switch {
		case len(out) > protocol.MaxRequestBytes:
			return out, errTooBig
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
	}
}
