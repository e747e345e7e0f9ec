package conn

import "liveroom/protocol"

// maxHeldBytes bounds what a session holds back; with more it is sent at once.
const maxHeldBytes = 4 << 10

// Hold keeps events, joined by commas, until the next thing that is sent to this viewer, and sends them with it in one
// write(2). Apart from that it is [Session.Control]. The caller sees to it that something is sent soon, or calls
// [Session.Release]. It does not block, and what can't be held is sent.
func (s *Session) Hold(events []byte) {
	s.mu.Lock()
	free := s.q == nil && s.opened && s.fd >= 0 && !s.closing && !s.writing
	if !free || len(s.held)+1+len(events) > maxHeldBytes {
		s.mu.Unlock()
		s.Control(events)
		return
	}
	s.held = joinEvents(s.held, events)
	s.mu.Unlock()
}

func joinEvents(to, events []byte) []byte {
	if len(to) > 0 {
		to = append(to, ',')
	}
	return append(to, events...)
}

// Release sends what is held. It does not block.
func (s *Session) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
}

// releaseLocked sends what is held ahead of what the caller is about to send.
func (s *Session) releaseLocked() {
	if e, ok := s.heldLocked(nil); ok && !s.closing && !s.closed {
		s.controlLocked(e)
	}
}

// heldLocked takes what is held, with more behind it, as one frame; false when nothing is held.
func (s *Session) heldLocked(more []byte) (entry, bool) {
	if len(s.held) == 0 {
		return entry{}, false
	}
	events := s.held
	s.held = nil
	if len(more) > 0 {
		events = joinEvents(events, more)
	}
	f := protocol.NewEventFrame(events)
	return entry{bytes: f.Bytes(), size: f.Len(), kind: kindControl}, true
}

// deliverHeldLocked writes what is held and a broadcast at once. The wire must be idle.
func (s *Session) deliverHeldLocked(b *protocol.Broadcast, f *protocol.Frame) {
	held, _ := s.heldLocked(nil)
	n, err := writeBothFD(s.fd, held.bytes, f.Bytes())
	switch rest := n - held.size; {
	case rest == f.Len():
		s.count.sent(&held)
		s.count.sentFull(b, f.Len())
	case rest >= 0:
		s.count.sent(&held)
		s.leftOverLocked(entry{bytes: f.Bytes()[rest:], b: b, size: f.Len(), kind: kindFull}, err)
	default:
		held.bytes = held.bytes[n:]
		s.leftOverLocked(held, err)
		s.queueLocked(b, f, nil, false) // the queue is new, so that it has room
	}
}
