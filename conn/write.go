package conn

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"liveroom/protocol"
)

// maxUrgent bounds the pongs that wait for a socket; the peer may be answered less often than it asks (RFC 6455, section
// 5.5.3).
const maxUrgent = 16

// queueOfLocked returns the session's queue and makes it if need be.
func (s *Session) queueOfLocked() *queue {
	if s.q == nil {
		s.q = new(queue)
	}
	return s.q
}

// directLocked tries to write a whole frame at once. It returns false when the socket has no descriptor; otherwise nothing
// is left to do for the caller, since what the kernel did not take is queued. The wire must be idle.
func (s *Session) directLocked(e entry) bool {
	if s.fd < 0 {
		return false
	}
	n, err := writeFD(s.fd, e.bytes)
	if n == e.size {
		s.count.sent(&e)
		return true
	}
	e.bytes = e.bytes[n:]
	s.leftOverLocked(e, err)
	return true
}

// leftOverLocked keeps what the kernel did not take of a frame; it goes before anything else.
func (s *Session) leftOverLocked(rest entry, err error) {
	if err != nil && !errors.Is(err, syscall.EAGAIN) {
		s.count.drop(&rest, dropClosed)
		s.failLocked()
		return
	}
	s.queueOfLocked().resume(rest)
	s.startLocked()
}

// urgentLocked sends a frame ahead of everything that is not begun.
func (s *Session) urgentLocked(e entry) {
	if s.closing || s.closed {
		return
	}
	if !s.writing && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	if len(q.urgent) < maxUrgent {
		q.urgent = append(q.urgent, e)
		s.startLocked()
	}
}

// startLocked starts the writer when there is something that it may write.
func (s *Session) startLocked() {
	if s.writing || s.closed || !s.q.waiting(s.opened || s.closing) {
		return
	}
	s.writing = true
	q := s.q
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
	if s.closed {
		return s.endWriter(q)
	}
	if len(q.inflight) == 0 { // else: the rest of a frame that was begun
		q.take(s.opened || s.closing)
	}
	if len(q.inflight) == 0 && q.lagging && s.opened {
		s.catchUpLocked(q)
	}
	if s.closed || len(q.inflight) == 0 {
		return s.endWriter(q)
	}
	s.mu.Unlock()
	return true
}

// catchUpLocked puts in flight what a viewer is told who has caught up. It lets go of the lock to encode it; meanwhile the
// wire stays the writer's.
func (s *Session) catchUpLocked(q *queue) {
	missed, like, ok := q.catchUp()
	if !ok {
		return
	}
	s.mu.Unlock()
	e := catchUpEntry(missed, like)
	s.mu.Lock()
	q.inflight = append(q.inflight, e)
}

// endWriter ends the writer's turn and unlocks mu.
func (s *Session) endWriter(q *queue) bool {
	s.writing = false
	halfClose := false
	switch {
	case s.closed:
		q.dropInflight(s.count)
	case s.closing:
		s.q = nil
		halfClose = s.partLocked()
		s.wakeLocked()
	case s.opened:
		s.q = nil
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
	q.landed(n, s.count)
	if err == nil {
		return
	}
	s.writing = false
	if errors.Is(err, os.ErrDeadlineExceeded) && !s.closing {
		s.code = protocol.CloseSlowConsumer
	}
	q.dropInflight(s.count)
	s.failLocked() // a frame may be cut off on the wire: nobody may begin another one before the abort
}

// checkLocked holds the flags to one another and to the queue.
func (s *Session) checkLocked() error {
	switch {
	case s.closed:
		return nil
	case len(s.held) > maxHeldBytes:
		return fmt.Errorf("holds %d bytes", len(s.held))
	case len(s.held) > 0 && s.closing && !s.failed:
		return errors.New("holds events behind a close frame")
	case s.q == nil && s.writing:
		return errors.New("a writer without a queue")
	case s.q == nil:
		return nil
	}
	if err := s.q.check(); err != nil {
		return err
	}
	switch {
	case s.q.waiting(s.opened || s.closing) && !s.writing:
		return fmt.Errorf("frames wait and nobody writes them (opened %v, closing %v)", s.opened, s.closing)
	case s.opened && s.q.lagging && !s.writing:
		return errors.New("a lagging viewer without a writer")
	case s.closing && len(s.q.data) > s.q.head:
		return errors.New("broadcasts behind a close frame")
	}
	return nil
}
