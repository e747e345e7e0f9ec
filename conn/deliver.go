package conn

import "liveroom/protocol"

// Deliver sends a broadcast to the viewer, or what is left of it for a viewer who has fallen behind. It does not block
// and, on a healthy TCP socket, does not allocate. Before [Session.Open] it is held within the queue's bounds. On a closing
// session it does nothing.
func (s *Session) Deliver(b *protocol.Broadcast) {
	f := s.full(b) // may deflate, so not under the lock
	s.mu.Lock()
	if s.q == nil && s.opened && s.fd >= 0 && !s.closing && !s.writing {
		if len(s.held) > 0 {
			s.deliverHeldLocked(b, f)
			s.mu.Unlock()
			return
		}
		n, err := writeFD(s.fd, f.Bytes())
		if n == f.Len() {
			s.mu.Unlock()
			s.count.sentFull(b, n)
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
	if s.closing || s.closed {
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
	q.lag(b, s.count)
	s.missed += uint64(b.Count(protocol.ClassDanmaku))
	if essential == nil {
		s.startLocked()
		return true
	}
	e := entry{bytes: essential.Bytes(), b: b, size: essential.Len(), kind: kindEssential}
	if !q.room(e.size, cfg.HardFrames, cfg.HardBytes) {
		s.count.drop(&e, dropClosed)
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
	f := protocol.NewEventFrame(events)
	e := entry{bytes: f.Bytes(), size: f.Len(), kind: kindControl}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.closed {
		return
	}
	if both, ok := s.heldLocked(events); ok {
		e = both
	}
	s.controlLocked(e)
}

// controlLocked sends a frame for this viewer alone.
func (s *Session) controlLocked(e entry) {
	if s.q == nil && s.opened && !s.writing && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	if len(q.control) >= s.a.cfg.ControlFrames || q.controlBytes+e.size > s.a.cfg.ControlBytes {
		s.count.drop(&e, dropClosed)
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
	f := protocol.NewEventFrame(events)
	e := entry{bytes: f.Bytes(), size: f.Len(), kind: kindControl}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened || s.closing || s.closed {
		return
	}
	s.opened = true
	if s.q == nil && !s.writing && s.directLocked(e) {
		return
	}
	q := s.queueOfLocked()
	q.control = append([]entry{e}, q.control...)
	q.controlBytes += e.size
	s.startLocked()
}

// answerLocked sends an event before the session is open, ahead of everything that is held.
func (s *Session) answerLocked(events []byte) {
	f := protocol.NewEventFrame(events)
	s.urgentLocked(entry{bytes: f.Bytes(), size: f.Len(), kind: kindControl})
}
