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
	if !c.deflated {
		return true
	}
	message, err := inflate(c.buf, c.spare)
	c.buf, c.spare = message, c.buf
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
	defer func() {
		f.in.Reset(nil) // the input is the caller's
		inflaters.Put(f)
	}()
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
