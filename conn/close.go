package conn

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"liveroom/protocol"
)

// Close ends the session with a close frame behind the answers that are queued; queued broadcasts are given up. It does
// not block: the closing handshake and [Seat.Leave] are the session's own goroutine's business, the socket is gone after
// [Config.CloseTimeout] at the latest. Only the first call counts.
func (s *Session) Close(r protocol.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(r.Code, closeFrame(r.Code, r.Reason()))
}

// slowLinger is what a slow but living viewer gets to read the rest of a frame and the code.
const slowLinger = time.Second

// overflowLocked ends a session whose queue is over its hard bound. The queue is given up at once; the frame that was
// begun and the close frame are all that remains.
func (s *Session) overflowLocked() {
	if s.q != nil {
		s.q.dropControl(s.count)
	}
	if e, ok := s.heldLocked(nil); ok {
		s.count.drop(&e, dropClosed)
	}
	r := protocol.Refusal{Code: protocol.CloseSlowConsumer}
	s.closeLocked(r.Code, closeFrame(r.Code, r.Reason()))
	s.until = min(s.until, s.a.now()+slowLinger)
}

// closeLocked sends the close frame behind what must still be sent. code is what the end counts as.
func (s *Session) closeLocked(code protocol.CloseCode, frame []byte) {
	if s.closing || s.closed {
		return
	}
	s.releaseLocked()
	if s.closing { // it did not go
		return
	}
	if s.q != nil {
		s.q.dropData(s.count)
		if !s.opened {
			s.q.dropControl(s.count)
		}
		if !s.writing { // it was held for Open
			s.q = nil
		}
	}
	s.code, s.closing = code, true
	s.until = s.a.now() + s.a.cfg.CloseTimeout
	e := entry{bytes: frame, size: len(frame), kind: kindWire}
	if !s.writing && s.directLocked(e) {
		if s.q == nil && !s.failed {
			s.partLocked()
		}
	} else {
		q := s.queueOfLocked()
		q.control = append(q.control, e)
		q.controlBytes += e.size
		s.startLocked()
	}
	s.wakeLocked()
}

// failLocked notes that the wire is broken.
func (s *Session) failLocked() {
	s.closing, s.failed = true, true
	s.wakeLocked()
}

// partLocked half-closes the socket behind the close frame, so that a peer that waits for us to end the connection (RFC
// 6455, section 7.1.1) does so now, and nothing of ours is lost to a reset. It returns true when that is left to the
// caller, who must not hold the lock.
func (s *Session) partLocked() bool {
	if s.fd < 0 {
		return !s.failed
	}
	shutdownFD(s.fd)
	return false
}

// closeFrame is an unmasked close frame (RFC 6455, section 5.5.1).
func closeFrame(code protocol.CloseCode, reason string) []byte {
	if len(reason) > 123 {
		reason = reason[:123]
	}
	f := append(make([]byte, 0, 4+len(reason)), 0x88, byte(2+len(reason)))
	f = binary.BigEndian.AppendUint16(f, uint16(code))
	return append(f, reason...)
}

// maxThrown is how much of what a peer still sends is thrown away, in bytes: about what its kernel and ours may hold of it. Who
// sends more is not reading, and would keep a reader busy.
const maxThrown = 8 << 20

// part waits for the peer to end the connection too, or for its close frame behind ours, until the close timeout, and
// throws away what else it sends: a socket closed with unread input would be reset, and the close frame lost. True: the
// session rests meanwhile.
func (s *Session) part(in *intake) (parked bool) {
	for {
		s.mu.Lock()
		left, over := s.until-s.a.now(), s.partedLocked()
		s.mu.Unlock()
		if over || left <= 0 || s.thrown > maxThrown {
			return false
		}
		n, err := s.partRead(in, left)
		s.at.skip(in.buf[:n])
		s.thrown += n
		switch {
		case err == errWouldBlock:
			s.a.wheel.move(s, s.a.lastVisit(s.a.now()+left))
			if s.park() {
				return true
			}
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		}
	}
}

// lastVisit is when the sweeper looks at a closing session so that it is gone by an instant: rather a step early than late,
// since whoever drains a node waits no longer.
func (a *Acceptor) lastVisit(until time.Duration) time.Duration { return until - a.wheel.step + 1 }

// partRead reads what is thrown away. The deadline is set anew each time, since whoever closes or fails the session sets
// one in the past.
func (s *Session) partRead(in *intake, left time.Duration) (int, error) {
	if s.raw == nil {
		_ = s.nc.SetReadDeadline(time.Now().Add(left))
		return s.nc.Read(in.buf[:])
	}
	n, err := s.readNow(&in.read, in.buf[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.nc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// partedLocked reports whether there is nothing to wait for any more: the peer can get no close frame, or both ends have
// sent theirs, after which the server ends the connection (RFC 6455, section 7.1.1).
func (s *Session) partedLocked() bool {
	sent := s.q == nil && !s.writing
	return s.failed || s.closed || !s.closing || s.at.closed && sent
}

// abort closes the socket at once. It does not block, also on TLS, where a polite end could.
func (s *Session) abort() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	// From here on nobody writes to the descriptor, so that its number is free for the next one.
	s.closed, s.closing, s.fd = true, true, -1
	reset := s.q != nil
	if e, ok := s.heldLocked(nil); ok {
		s.count.drop(&e, dropClosed)
	}
	if s.q != nil {
		s.q.dropControl(s.count)
		s.q.dropData(s.count)
		if !s.writing {
			s.q.dropInflight(s.count)
		}
		s.q = nil
	}
	s.wakeLocked()
	s.mu.Unlock()
	nc := s.nc
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if t, ok := nc.(*net.TCPConn); ok && reset {
		// The peer does not take what is under way; without this the kernel would keep it for minutes.
		_ = t.SetLinger(0)
	}
	_ = nc.Close()
}
