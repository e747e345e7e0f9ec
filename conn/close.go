package conn

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"liveroom/conn/frame"
	"liveroom/conn/socket"
	"liveroom/protocol"
)

// end is how a session ends, guarded by its mutex. Both are of the first call that ends it.
type end struct {
	code  protocol.CloseCode // what it counts as; 0: no close frame was seen
	until time.Duration      // the end of the closing handshake, on the acceptor's clock
}

// Close ends the session with a close frame behind the answers that are queued; queued broadcasts are given up. It does
// not block: the closing handshake and [Seat.Leave] are the session's own goroutine's business, the socket is gone after
// [Config.CloseTimeout] at the latest. Only the first call counts.
func (s *Session) Close(r protocol.Refusal) {
	f := frame.Close(r.Code, r.Reason())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(r.Code, f)
}

// slowLinger is what a slow but living viewer gets to read the rest of a frame and the code.
const slowLinger = time.Second

// slowClose is the close frame of a slow viewer, the same for all.
var slowClose = frame.Close(protocol.CloseSlowConsumer, protocol.Refusal{Code: protocol.CloseSlowConsumer}.Reason())

// overflowLocked ends a session whose queue is over its hard bound. The queue is given up at once; the frame that was
// begun and the close frame are all that remains.
func (s *Session) overflowLocked() {
	if s.wire.q != nil {
		s.wire.q.dropControl(s.wire.count)
	}
	if e, ok := s.heldLocked(nil); ok {
		s.wire.count.drop(&e, dropClosed)
	}
	s.closeLocked(protocol.CloseSlowConsumer, slowClose)
	s.end.until = min(s.end.until, s.a.now()+slowLinger)
}

// closeLocked sends the close frame behind what must still be sent. code is what the end counts as.
func (s *Session) closeLocked(code protocol.CloseCode, f []byte) {
	if s.stage >= closing {
		return
	}
	s.releaseLocked()
	opened := s.stage == open
	if !s.reachLocked(closing) { // what was held did not go
		return
	}
	if q := s.wire.q; q != nil {
		q.dropData(s.wire.count)
		if !opened {
			q.dropControl(s.wire.count)
		}
		if !q.writing { // it was held for Open
			s.wire.q = nil
		}
	}
	s.end = end{code: code, until: s.a.now() + s.a.cfg.CloseTimeout}
	e := wireEntry(f)
	if s.wire.q == nil && s.directLocked(e) {
		if s.wire.q == nil && s.stage == closing {
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
	s.reachLocked(broken)
	s.wakeLocked()
}

// partLocked half-closes the socket behind the close frame, so that a peer that waits for us to end the connection (RFC
// 6455, section 7.1.1) does so now, and nothing of ours is lost to a reset. It returns true when that is left to the
// caller, who must not hold the lock.
func (s *Session) partLocked() bool {
	if s.wire.fd < 0 {
		return s.stage != broken
	}
	socket.CloseWrite(s.wire.fd)
	return false
}

// maxThrown is how much of what a peer still sends is thrown away, in bytes: about what its kernel and ours may hold of it. Who
// sends more is not reading, and would keep a reader busy.
const maxThrown = 8 << 20

// part waits for the peer to end the connection too, or for its close frame behind ours, until the close timeout, and
// throws away what else it sends: a socket closed with unread input would be reset, and the close frame lost. True: the
// session rests meanwhile.
func (s *Session) part(in *intake) (rests bool) {
	for {
		s.mu.Lock()
		left, over := s.end.until-s.a.now(), s.partedLocked()
		s.mu.Unlock()
		if over || left <= 0 || s.reader.thrown > maxThrown {
			return false
		}
		n, err := s.partRead(in, left)
		s.reader.frames.Skip(in.buf[:n])
		s.reader.thrown += n
		switch {
		case err == socket.ErrWouldBlock:
			s.a.wheel.move(s, s.a.lastVisit(s.a.now()+left))
			if s.rest() {
				return true
			}
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		}
	}
}

// partRead reads what is thrown away. The deadline is set anew each time, since whoever closes or fails the session sets
// one in the past.
func (s *Session) partRead(in *intake, left time.Duration) (int, error) {
	if s.reader.raw == nil {
		_ = s.nc.SetReadDeadline(time.Now().Add(left))
		return s.nc.Read(in.buf[:])
	}
	n, err := s.readNow(in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = s.nc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// partedLocked reports whether there is nothing to wait for any more: the peer can get no close frame, or both ends have
// sent theirs, after which the server ends the connection (RFC 6455, section 7.1.1).
func (s *Session) partedLocked() bool {
	return s.stage != closing || s.reader.frames.Closed() && s.wire.q == nil
}

// abort closes the socket at once. It does not block, also on TLS, where a polite end could.
func (s *Session) abort() {
	s.mu.Lock()
	if !s.reachLocked(closed) {
		s.mu.Unlock()
		return
	}
	// From here on nobody writes to the descriptor, so that its number is free for the next one.
	s.wire.fd = -1
	q := s.wire.q
	reset := q != nil
	if e, ok := s.heldLocked(nil); ok {
		s.wire.count.drop(&e, dropClosed)
	}
	if q != nil {
		q.dropControl(s.wire.count)
		q.dropData(s.wire.count)
		if !q.writing {
			q.dropInflight(s.wire.count)
		}
		s.wire.q = nil
	}
	s.wakeLocked()
	s.mu.Unlock()
	nc, _ := socket.Beneath(s.nc)
	if t, ok := nc.(*net.TCPConn); ok && reset {
		// The peer does not take what is under way; without this the kernel would keep it for minutes.
		_ = t.SetLinger(0)
	}
	_ = nc.Close()
}

// Shutdown sends every client away with 1001 and a time to come back, the closes spread evenly over the window, so that they do
// not come back at one instant: who was silent for the longest time goes first, in random order among those who never said
// anything, and who is in a conversation last. New sockets are turned away meanwhile. It returns after the
// last goroutine has ended; when ctx ends before that, the sockets that are left are cut, and ctx's error is returned. A
// seat that does not return from Receive keeps Shutdown waiting. The acceptor can't be used afterwards.
func (a *Acceptor) Shutdown(ctx context.Context, window time.Duration) error {
	a.draining.Store(true)
	sessions := a.wheel.all()
	rand.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	slices.SortStableFunc(sessions, func(s, t *Session) int { return cmp.Compare(s.pulse.said.Load(), t.pulse.said.Load()) })
	a.closeSpread(ctx, sessions, window)

	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	err := a.await(ctx)
	a.cancel()
	a.running.Wait()
	a.readers.stop()
	if a.poller != nil {
		a.poller.Close()
	}
	a.sweeper.Wait()
	a.readers.live.Wait()
	return err
}

// closeSpread closes the sessions one after the other over the window.
func (a *Acceptor) closeSpread(ctx context.Context, sessions []*Session, window time.Duration) {
	t := time.NewTimer(0)
	defer t.Stop()
	start := time.Now()
	for i, s := range sessions {
		due := time.Duration(float64(window) * float64(i) / float64(len(sessions)))
		if wait := due - time.Since(start); wait > 0 {
			t.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		s.Close(*a.sendAway(protocol.CloseGoingAway, 0))
	}
}

// await waits for the sessions to end, and cuts what is left when ctx ends.
func (a *Acceptor) await(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		a.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	a.cancel()
	for _, s := range a.wheel.all() {
		s.abort()
	}
	<-done
	return ctx.Err()
}
