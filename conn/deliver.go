package conn

import (
	"liveroom/conn/socket"
	"liveroom/protocol"
)

// freeLocked reports whether a frame may go straight to the socket: nothing waits, and the socket has a descriptor.
func (s *Session) freeLocked() bool { return s.stage == open && s.wire.q == nil && s.wire.fd >= 0 }

// full is the form of a broadcast that this viewer gets when it keeps up.
func (s *Session) full(b *protocol.Broadcast) *protocol.Frame {
	if s.Deflates() {
		return b.FullDeflated()
	}
	return b.Full()
}

// essential is the form for a viewer who has fallen behind, nil when there is nothing in it.
func (s *Session) essential(b *protocol.Broadcast) *protocol.Frame {
	if s.Deflates() {
		return b.EssentialDeflated()
	}
	return b.Essential()
}

// Deliver sends a broadcast to the viewer, or what is left of it for a viewer who has fallen behind. It does not block
// and, on a healthy TCP socket, does not allocate. Before [Session.Open] it is held within the queue's bounds. On a closing
// session it does nothing.
func (s *Session) Deliver(b *protocol.Broadcast) {
	f := s.full(b) // may deflate, so not under the lock
	s.mu.Lock()
	if s.freeLocked() {
		if s.wire.held.Len() > 0 {
			s.deliverHeldLocked(b, f)
			s.mu.Unlock()
			return
		}
		n, err := socket.Write(s.wire.fd, f.Bytes())
		if n == f.Len() {
			s.mu.Unlock()
			s.wire.count.sentFull(b, n)
			return
		}
		s.leftOverLocked(entry{bytes: f.Bytes()[n:], b: b, size: f.Len(), kind: kindFull}, err)
		s.mu.Unlock()
		return
	}
	s.releaseLocked()
	ok := s.queueLocked(b, f, nil, false)
	s.mu.Unlock()
	if ok {
		return
	}
	// Built outside the lock; most ticks never need it.
	essential := s.essential(b)
	s.mu.Lock()
	s.queueLocked(b, f, essential, true)
	s.mu.Unlock()
}

// queueLocked queues what the policy gives the viewer of a broadcast. It returns false, without effect, when it needs the
// essential form to go on.
func (s *Session) queueLocked(b *protocol.Broadcast, f, essential *protocol.Frame, built bool) bool {
	if s.stage >= closing {
		return true
	}
	q, cfg := s.queueOfLocked(), &s.a.cfg
	if !q.lagging && q.room(f.Len(), cfg.QueueFrames, cfg.QueueBytes) {
		q.pushData(entry{bytes: f.Bytes(), b: b, size: f.Len(), kind: kindFull})
		s.startLocked()
		return true
	}
	if !built {
		return false
	}
	s.wire.missed += uint64(q.lag(b, s.wire.count))
	if essential == nil {
		s.startLocked()
		return true
	}
	e := entry{bytes: essential.Bytes(), b: b, size: essential.Len(), kind: kindEssential}
	if !q.room(e.size, cfg.HardFrames, cfg.HardBytes) {
		s.wire.count.drop(&e, dropClosed)
		s.overflowLocked()
		return true
	}
	q.pushData(e)
	s.startLocked()
	return true
}

// Control sends events, joined by commas, to this viewer alone: answers, moderation, gifts that it missed. They overtake
// queued broadcasts and are never left out; a session that can't take them is closed with 4001. It does not block. Before
// [Session.Open] they are held.
func (s *Session) Control(events []byte) {
	e := eventEntry(events)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage >= closing {
		return
	}
	if both, ok := s.heldLocked(events); ok {
		e = both
	}
	s.controlLocked(e)
}

// controlLocked sends a frame for this viewer alone.
func (s *Session) controlLocked(e entry) {
	if s.stage == open && s.wire.q == nil && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	if len(q.control) >= s.a.cfg.ControlFrames || q.controlBytes+e.size > s.a.cfg.ControlBytes {
		s.wire.count.drop(&e, dropClosed)
		s.overflowLocked()
		return
	}
	q.control = append(q.control, e)
	q.controlBytes += e.size
	s.startLocked()
}

// Open sends the first events, joined by commas: the welcome and the room's recent messages, and releases what was held
// since the room knew the session. Only the first call counts.
func (s *Session) Open(events []byte) {
	e := eventEntry(events)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage != greeting {
		return
	}
	s.reachLocked(open)
	if s.wire.q == nil && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	q.control = append([]entry{e}, q.control...)
	q.controlBytes += e.size
	s.startLocked()
}

// maxHeldBytes bounds what a session holds back; with more it is sent at once.
const maxHeldBytes = 4 << 10

// Hold keeps events, joined by commas, until the next thing that is sent to this viewer, and sends them with it in one
// write(2). Apart from that it is [Session.Control]. The caller sees to it that something is sent soon, or calls
// [Session.Release]. It does not block, and what can't be held is sent.
func (s *Session) Hold(events []byte) {
	s.mu.Lock()
	if !s.freeLocked() || s.wire.held.Len()+1+len(events) > maxHeldBytes {
		s.mu.Unlock()
		s.Control(events)
		return
	}
	s.wire.held.Add(events)
	s.mu.Unlock()
}

// Release sends what is held. It does not block.
func (s *Session) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

// releaseLocked sends what is held ahead of what the caller is about to send.
func (s *Session) releaseLocked() {
	if e, ok := s.heldLocked(nil); ok && s.stage < closing {
		s.controlLocked(e)
	}
}

// heldLocked takes what is held, with more behind it, as one frame; false when nothing is held.
func (s *Session) heldLocked(more []byte) (entry, bool) {
	held := &s.wire.held
	if held.Len() == 0 {
		return entry{}, false
	}
	if len(more) > 0 {
		held.Add(more)
	}
	f := held.Take()
	return entry{bytes: f, size: len(f), kind: kindControl}, true
}

// deliverHeldLocked writes what is held and a broadcast at once. The wire must be idle.
func (s *Session) deliverHeldLocked(b *protocol.Broadcast, f *protocol.Frame) {
	held, _ := s.heldLocked(nil)
	n, err := socket.WriteBoth(s.wire.fd, held.bytes, f.Bytes())
	switch rest := n - held.size; {
	case rest == f.Len():
		s.wire.count.sent(&held)
		s.wire.count.sentFull(b, f.Len())
	case rest >= 0:
		s.wire.count.sent(&held)
		s.leftOverLocked(entry{bytes: f.Bytes()[rest:], b: b, size: f.Len(), kind: kindFull}, err)
	default:
		held.bytes = held.bytes[n:]
		s.leftOverLocked(held, err)
		s.queueLocked(b, f, nil, false) // the queue is new, so that it has room
	}
}
