package conn

import (
	"errors"
	"syscall"
	"time"
)

// errWouldBlock says that nothing has come and that the session may rest.
var errWouldBlock = errors.New("nothing to read yet")

// socketRead is one non-blocking read, in a form that allocates nothing. RawConn holds the descriptor against a close from
// elsewhere meanwhile, and fails when the read deadline is past.
type socketRead struct {
	p   []byte
	n   int
	err error
	f   func(fd uintptr) bool
}

func (r *socketRead) init() {
	r.f = func(fd uintptr) bool {
		r.n, r.err = readFD(int(fd), r.p)
		return true
	}
}

func (r *socketRead) from(raw syscall.RawConn, p []byte) (int, error) {
	r.p, r.n, r.err = p, 0, nil
	err := raw.Read(r.f)
	r.p = nil
	if err != nil {
		return 0, err
	}
	return r.n, r.err
}

// readNow reads what has come of a socket that can rest. It fails with errWouldBlock when there is nothing.
func (s *Session) readNow(r *socketRead, p []byte) (int, error) {
	if s.dry {
		return 0, errWouldBlock
	}
	n, err := r.from(s.raw, p)
	if errors.Is(err, syscall.EAGAIN) {
		return 0, errWouldBlock
	}
	// Less than was asked for is all there was, and what comes later makes a new event (epoll(7), edge-triggered); only the
	// end of the stream behind it may have been announced together with it.
	s.dry = n > 0 && n < len(p) && !s.hangup
	return n, err
}

// park lets the session rest without a goroutine until there is input, or something to end it for. True: it rests, and
// nothing that the read loop owns is the caller's any more. False: there is something to do.
func (s *Session) park() bool {
	if !s.watch() {
		return false
	}
	s.mu.Lock()
	if s.input || s.overLocked() {
		s.input, s.dry = false, false
		s.hangup = s.hup
		s.mu.Unlock()
		return false
	}
	raw := s.raw
	s.parked = true
	s.mu.Unlock()
	if s.a.poller == nil {
		go s.await(raw)
	}
	return true
}

// overLocked reports whether the read loop is to go on to the next stage of the session's end.
func (s *Session) overLocked() bool {
	if s.left {
		return s.partedLocked()
	}
	return s.closing || s.closed
}

// watch has the session's input reported. False: it can't be, so that the session keeps its goroutine.
func (s *Session) watch() bool {
	if s.watched || s.a.poller == nil {
		return true
	}
	if err := s.a.poller.add(s); err != nil {
		s.a.cfg.Logger.Warn("a session can't rest", "session", s.id, "err", err)
		s.raw = nil
		return false
	}
	s.watched = true
	return true
}

// arrived is called by the poller: there is input, or the end of it (hup).
func (s *Session) arrived(hup bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hup = s.hup || hup
	if s.parked {
		s.resumeLocked()
		return
	}
	s.input = true
}

// resumeLocked gives a session that rests a goroutine again. It may start without asking, since the session itself is
// counted among what the acceptor waits for.
func (s *Session) resumeLocked() {
	s.parked, s.input, s.dry = false, false, false
	s.hangup = s.hup
	s.a.readers.read(s)
}

// await is how a session rests where there is no poller: in a goroutine with the smallest of stacks, which ends with the rest.
// It alone ends it, since it holds Go's lock for reading; whoever else wants to sets a deadline.
func (s *Session) await(raw syscall.RawConn) {
	_ = raw.Read(readable) // what goes wrong shows when the session reads
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumeLocked()
}

// past is a deadline that has gone by.
var past = time.Unix(1, 0)

// wakeLocked brings the read loop back from where it waits, so that it sees what has become of the session. It can't
// block; setting the deadline fails only when the socket is closed, which wakes the reader as well.
func (s *Session) wakeLocked() {
	if s.parked && s.a.poller != nil {
		s.resumeLocked()
		return
	}
	_ = s.nc.SetReadDeadline(past)
}
