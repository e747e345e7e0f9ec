package conn

import (
	"syscall"
	"time"

	"liveroom/conn/socket"
)

// fill reads what has come. It fails with [socket.ErrWouldBlock] rather than wait when the session can rest.
func (s *Session) fill(in *intake) error {
	r := &s.reader
	in.from, in.to = 0, 0
	if len(r.ahead) > 0 {
		in.to = copy(in.buf[:], r.ahead)
		if r.ahead = r.ahead[in.to:]; len(r.ahead) == 0 {
			r.ahead = nil
		}
		return nil
	}
	var err error
	if r.raw != nil {
		in.to, err = s.readNow(in)
	} else {
		s.idle()
		in.to, err = s.nc.Read(in.buf[:])
	}
	if in.to > 0 {
		return nil
	}
	return err
}

// idle tells the sweeper whose turn it is while nothing comes. A message has its deadline from the first time that it is
// waited for, whatever comes between its fragments.
func (s *Session) idle() {
	if s.reader.seat == nil || s.reader.frames.Between() || s.pulse.begun.Load() != 0 {
		return // the time for the hello runs, or nothing has begun, or it was waited for before
	}
	now := s.a.now()
	s.pulse.begun.Store(int64(now))
	s.a.wheel.move(s, now+s.a.cfg.MessageTimeout)
}

// maxKept bounds what all half messages beyond their first buffer take together, in bytes; one that comes on top of it ends
// its session. 64 MiB are 4,000 messages of the largest size, all of them half.
const maxKept = 64 << 20

// keep counts what a session that is about to rest inside a message keeps of it. False: that is too much.
func (s *Session) keep() bool {
	if s.reader.msg == nil {
		return true
	}
	s.reader.kept = s.reader.msg.Overgrown()
	return s.a.kept.Add(int64(s.reader.kept)) <= maxKept
}

func (s *Session) unkeep() {
	s.a.kept.Add(-int64(s.reader.kept))
	s.reader.kept = 0
}

// readNow reads what has come of a socket that can rest, into in. It fails with [socket.ErrWouldBlock] when there is nothing.
func (s *Session) readNow(in *intake) (int, error) {
	r := &s.reader
	if r.carrier == nil {
		return r.pull(&in.read, in.buf[:])
	}
	s.mu.Lock()
	slow := s.writingLocked()
	s.mu.Unlock()
	// TLS answers a new key (RFC 8446, section 4.6.3) while it reads, and behind a peer that does not read that waits for the
	// write's time-out. Such a session holds no place of a reader.
	if slow && s.a.readers.leave() {
		defer s.a.readers.back()
	}
	r.through = &in.read
	defer func() { r.through = nil }()
	return s.nc.Read(in.buf[:])
}

// beneath is a reader as TLS reads from it.
type beneath reader

// Read implements [io.Reader]; it does not wait.
func (b *beneath) Read(p []byte) (int, error) { return (*reader)(b).pull(b.through, p) }

// pull is one read of the socket itself.
func (r *reader) pull(from *socket.Reader, p []byte) (int, error) {
	// The bit goes before the read: what comes behind it makes a new event (epoll(7), edge-triggered) that sets it again.
	if r.ready.And(^input) == 0 {
		return 0, socket.ErrWouldBlock
	}
	n, err := from.Read(r.raw, p)
	// Less than was asked for is all there was; only the end of the stream behind it may have been announced with it.
	if n == len(p) || err != nil && err != socket.ErrWouldBlock {
		r.ready.Or(input)
	}
	return n, err
}

// rest lets the session rest without a goroutine until there is input, or something to end it for. True: it rests, and
// nothing that the reader owns is the caller's any more. False: there is something to do.
func (s *Session) rest() bool {
	if !s.watch() {
		return false
	}
	raw := s.reader.raw
	s.mu.Lock()
	rests := s.reader.ready.Load()&input == 0 && !s.overLocked()
	switch {
	case rests && s.turn == parting:
		s.passLocked(partingAtRest)
	case rests:
		s.passLocked(resting)
	}
	s.mu.Unlock()
	if rests && s.a.poller == nil {
		go s.await(raw)
	}
	return rests
}

// overLocked reports whether the read loop is to go on to the next stage of the session's end.
func (s *Session) overLocked() bool {
	if s.turn >= leaving {
		return s.partedLocked()
	}
	return s.stage >= closing
}

// watch has the session's input reported. False: it can't be, so that the session keeps its goroutine.
func (s *Session) watch() bool {
	if s.reader.watched || s.a.poller == nil {
		return true
	}
	if err := s.a.poller.Add(s.reader.raw, s); err != nil {
		s.a.cfg.Logger.Warn("a session can't rest", "session", s.id, "err", err)
		if s.reader.raw = nil; s.reader.carrier != nil {
			s.reader.carrier.From = nil
		}
		return false
	}
	s.reader.watched = true
	return true
}

// arrived is called by the poller: there is input, or the end of it (over).
func (s *Session) arrived(over bool) {
	news := input
	if over {
		news |= hangup
	}
	s.reader.ready.Or(news)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn.rests() {
		s.resumeLocked()
	}
}

// resumeLocked gives a session that rests a goroutine again. It may start without asking, since the session itself is
// counted among what the acceptor waits for.
func (s *Session) resumeLocked() {
	if s.turn == resting {
		s.passLocked(reading)
	} else {
		s.passLocked(parting)
	}
	s.a.readers.read(s)
}

// await is how a session rests where there is no poller: in a goroutine with the smallest of stacks, which ends with the rest.
// It alone ends it, since it holds Go's lock for reading; whoever else wants to sets a deadline.
func (s *Session) await(raw syscall.RawConn) {
	_ = raw.Read(socket.Readable) // what goes wrong shows when the session reads
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumeLocked()
}

// past is a deadline that has gone by.
var past = time.Unix(1, 0)

// wakeLocked brings the read loop back from where it waits, so that it sees what has become of the session. It can't
// block; setting the deadline fails only when the socket is closed, which wakes the reader as well.
func (s *Session) wakeLocked() {
	if s.turn.rests() && s.a.poller != nil {
		s.resumeLocked()
		return
	}
	_ = s.nc.SetReadDeadline(past)
}
