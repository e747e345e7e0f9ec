package conn

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"liveroom/conn/frame"
	"liveroom/conn/socket"
	"liveroom/protocol"
)

// maxUrgent bounds the pongs that wait for a socket; the peer may be answered less often than it asks (RFC 6455, section
// 5.5.3).
const maxUrgent = 16

// wire is the part of a session that writes, guarded by its mutex.
type wire struct {
	fd     int          // for write(2); -1 when the conn has none, or not any more
	count  *counters    // of what is sent; fixed
	q      *queue       // nil: nothing waits, and what is sent goes straight to fd
	held   frame.Events // that go with whatever is sent next
	missed uint64       // danmaku left out so far
}

// queueOfLocked returns the session's queue and makes it if need be.
func (s *Session) queueOfLocked() *queue {
	if s.wire.q == nil {
		s.wire.q = new(queue)
	}
	return s.wire.q
}

// directLocked tries to write a whole frame at once. It returns false when the socket has no descriptor; otherwise nothing
// is left to do for the caller, since what the kernel did not take is queued. The wire must be idle.
func (s *Session) directLocked(e entry) bool {
	if s.wire.fd < 0 {
		return false
	}
	n, err := socket.Write(s.wire.fd, e.bytes)
	if n == e.size {
		s.wire.count.sent(&e)
		return true
	}
	e.bytes = e.bytes[n:]
	s.leftOverLocked(e, err)
	return true
}

// leftOverLocked keeps what the kernel did not take of a frame; it goes before anything else.
func (s *Session) leftOverLocked(rest entry, err error) {
	if err != nil && !errors.Is(err, syscall.EAGAIN) {
		s.wire.count.drop(&rest, dropClosed)
		s.failLocked()
		return
	}
	s.queueOfLocked().resume(rest)
	s.startLocked()
}

// urgent sends a frame ahead of everything that is not begun.
func (s *Session) urgent(e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urgentLocked(e)
}

func (s *Session) urgentLocked(e entry) {
	if s.stage >= closing {
		return
	}
	if !s.writingLocked() && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	if len(q.urgent) < maxUrgent {
		q.urgent = append(q.urgent, e)
		s.startLocked()
	}
}

// writingLocked reports whether a writer goroutine owns the wire.
func (s *Session) writingLocked() bool { return s.wire.q != nil && s.wire.q.writing }

// startLocked starts the writer when there is something that it may write.
func (s *Session) startLocked() {
	q := s.wire.q
	if s.stage == closed || q.writing || !q.waiting(s.stage != greeting) {
		return
	}
	q.writing = true
	s.a.running.Go(func() { s.write(q) })
}

// write is the writer goroutine: it owns the wire and what is in flight until the queue is empty.
func (s *Session) write(q *queue) {
	var bufs [][]byte
	for s.step(q) {
		bufs = bufs[:0]
		for i := range q.inflight {
			bufs = append(bufs, q.inflight[i].bytes)
		}
		// Fails only on a closed socket, which the write reports as well.
		_ = s.nc.SetWriteDeadline(time.Now().Add(s.a.cfg.WriteTimeout))
		left := net.Buffers(bufs)
		n, err := left.WriteTo(s.nc)
		if s.settle(q, n, err); err != nil {
			s.abort()
			return
		}
	}
}

// step puts the next frames in flight. It returns false when the writer is to end, which it notes.
func (s *Session) step(q *queue) bool {
	s.mu.Lock()
	if s.stage == closed {
		return s.endWriter(q)
	}
	if len(q.inflight) == 0 { // else: the rest of a frame that was begun
		q.take(s.stage != greeting)
	}
	if len(q.inflight) == 0 && q.lagging && s.stage == open {
		s.catchUpLocked(q)
	}
	if s.stage == closed || len(q.inflight) == 0 {
		return s.endWriter(q)
	}
	s.mu.Unlock()
	return true
}

// catchUpLocked puts in flight what a viewer is told who has caught up. It lets go of the lock to encode it; meanwhile the
// wire stays the writer's.
func (s *Session) catchUpLocked(q *queue) {
	missed, newest, ok := q.catchUp()
	if !ok {
		return
	}
	s.mu.Unlock()
	e := catchUpEntry(missed, newest)
	s.mu.Lock()
	q.inflight = append(q.inflight, e)
}

// endWriter ends the writer and unlocks mu.
func (s *Session) endWriter(q *queue) bool {
	q.writing = false
	halfClose := false
	switch s.stage {
	case closed:
		q.dropInflight(s.wire.count)
	case closing, broken:
		s.wire.q = nil
		halfClose = s.partLocked()
		s.wakeLocked()
	case open:
		s.wire.q = nil
	}
	s.mu.Unlock()
	if c, ok := s.nc.(interface{ CloseWrite() error }); ok && halfClose {
		_ = c.CloseWrite() // at worst the peer waits for the close timeout
	}
	return false
}

// settle counts what the kernel took of the step, n bytes, and keeps what it did not.
func (s *Session) settle(q *queue, n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.landed(n, s.wire.count)
	if err == nil {
		return
	}
	q.writing = false
	if errors.Is(err, os.ErrDeadlineExceeded) && s.stage < closing {
		s.end.code = protocol.CloseSlowConsumer
	}
	q.dropInflight(s.wire.count)
	s.failLocked() // a frame may be cut off on the wire: nobody may begin another one before the abort
}
