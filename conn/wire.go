package conn

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"liveroom/protocol"
)

// wire is a session's socket as coder/websocket sees it: a net.Conn whose writes are control frames, each whole and at most
// 127 bytes (the write buffer of [decoder] makes one flush of one frame). Its writes never block, so none of coder's
// five-second write time-outs can strike. Its reads wait only inside a message.
type wire struct {
	s       atomic.Pointer[Session] // whose socket it is now; nil: nobody's
	waiting atomic.Bool             // a read waits

	// owned by the read loop
	read   socketRead
	waited bool // inside a frame, at least once
}

var _ net.Conn = (*wire)(nil)

func (w *wire) init() { w.read.init() }

// Read serves what net/http had read ahead, then the socket. Between two messages of a session that can rest it fails with
// errWouldBlock rather than wait. coder passes that on and keeps the connection; at that point its buffer is empty, or it
// would not have asked.
func (w *wire) Read(p []byte) (int, error) {
	s := w.s.Load()
	n, err := w.take(s, p)
	if n == 0 {
		return 0, err
	}
	return s.at.pass(p[:n])
}

func (w *wire) take(s *Session, p []byte) (int, error) {
	if len(s.prefix) > 0 {
		n := copy(p, s.prefix)
		if s.prefix = s.prefix[n:]; len(s.prefix) == 0 {
			s.prefix = nil
		}
		return n, nil
	}
	n, err := 0, errWouldBlock
	if s.raw != nil {
		n, err = s.readNow(&w.read, p)
	}
	if err == errWouldBlock {
		if s.raw != nil && s.at.between() {
			return 0, err
		}
		n, err = w.wait(s, p)
	}
	s.readFail = err != nil
	return n, err
}

// wait reads when there is something to read.
func (w *wire) wait(s *Session, p []byte) (int, error) {
	s.dry = false
	w.waited = true
	w.waiting.Store(true)
	defer w.waiting.Store(false)
	return s.nc.Read(p)
}

// Write sends a control frame of coder's: a pong, the echo of a close, or a close of its own.
func (w *wire) Write(p []byte) (int, error) {
	const opMask, opClose = 0x0f, 0x8
	s := w.s.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	if p[0]&opMask == opClose {
		s.closeForLocked(closeStatus(p))
		return len(p), nil
	}
	e := entry{bytes: append([]byte(nil), p...), size: len(p), kind: kindWire}
	s.urgentLocked(e)
	return len(p), nil
}

// closeStatus reads the code of a close frame.
func closeStatus(frame []byte) protocol.CloseCode {
	if len(frame) < 4 {
		return protocol.CloseNormal
	}
	return protocol.CloseCode(binary.BigEndian.Uint16(frame[2:]))
}

// closeForLocked passes on a close frame of coder's. Its own ones get the reason that the contract has for them, in place
// of an English sentence. Any other is the echo of the peer's: it counts as an ordinary leave, whatever code the peer chose,
// and repeats no reason, which could be a token.
func (s *Session) closeForLocked(code protocol.CloseCode) {
	switch code {
	case protocol.CloseProtocol, protocol.CloseTooBig:
		s.closeLocked(code, closeFrame(code, protocol.Refusal{Code: code}.Reason()))
	default:
		s.closeLocked(protocol.CloseNormal, closeFrame(code, ""))
	}
}

// Close is called by coder when it has done with the connection. The session ends by itself; this only brings back a read
// that waits, which coder's timers want to end.
func (w *wire) Close() error {
	s := w.s.Load()
	if s == nil || !w.waiting.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked()
	return nil
}

// What follows makes a net.Conn of it; coder asks for none of that.

func (w *wire) LocalAddr() net.Addr              { return w.s.Load().nc.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr             { return w.s.Load().nc.RemoteAddr() }
func (w *wire) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (w *wire) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (w *wire) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// readLimit is what the buffer may grow to: coder lets one byte over the limit through before it refuses, and needs room
// to be asked for one more.
const readLimit = protocol.MaxRequestBytes + deflateSlack + 2

// readAll reads one message into buf[:0], which grows only with what really comes.
func readAll(r io.Reader, buf []byte) ([]byte, error) {
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(4*cap(buf), readLimit))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
