package conn

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"liveroom/protocol"
)

// wire is the session as coder/websocket sees it: a net.Conn whose writes are control frames, each whole and at most 127
// bytes (the write buffer that [upgrade] hands out makes one flush of one frame). Its writes never block, so none of
// coder's five-second write time-outs can strike.
type wire Session

var _ net.Conn = (*wire)(nil)

// Read serves what net/http had read ahead, then the socket.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.prefix) > 0 {
		n := copy(p, w.prefix)
		if w.prefix = w.prefix[n:]; len(w.prefix) == 0 {
			w.prefix = nil
		}
		return w.follow(p[:n])
	}
	n, err := w.nc.Read(p)
	if err != nil {
		w.readFail = true
		return n, err
	}
	return w.follow(p[:n])
}

// follow passes on what the socket gave.
func (w *wire) follow(p []byte) (int, error) {
	if w.inflow == nil {
		return len(p), nil
	}
	return w.inflow.pass(p)
}

// Write sends a control frame of coder's: a pong, the echo of a close, or a close of its own.
func (w *wire) Write(p []byte) (int, error) {
	const opMask, opClose = 0x0f, 0x8
	s := (*Session)(w)
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

// Close is called by coder when it has done with the connection. The session ends by itself; this only makes sure that
// its reader notices.
func (w *wire) Close() error {
	s := (*Session)(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked()
	return nil
}

func (w *wire) LocalAddr() net.Addr                { return w.nc.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr               { return w.nc.RemoteAddr() }
func (w *wire) SetDeadline(t time.Time) error      { return w.nc.SetDeadline(t) }
func (w *wire) SetReadDeadline(t time.Time) error  { return w.nc.SetReadDeadline(t) }
func (w *wire) SetWriteDeadline(t time.Time) error { return w.nc.SetWriteDeadline(t) }

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
