package conn

import (
	"sync"
	"time"
)

// wheelSlots is how many steps the wheel looks ahead. What is due later is looked at once more on the way.
const wheelSlots = 256

// wheel is a timer wheel over all sessions of an acceptor (Varghese and Lauck, 1987): two pointers per session in place of
// a runtime timer, and one goroutine for all. It is also the register of sessions.
type wheel struct {
	step time.Duration // fixed after construction

	mu    sync.Mutex // a leaf: nothing else is locked while it is held
	slots [wheelSlots + 1]*Session
	at    int64 // steps done
}

// The last list holds sessions that are being visited; outside any list is slot -1.
const visiting = wheelSlots

func newWheel(step time.Duration) *wheel { return &wheel{step: step} }

// add registers a session that is due at an instant of the acceptor's clock.
func (w *wheel) add(s *Session, due time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushLocked(s, w.slotLocked(due))
}

// remove forgets a session.
func (w *wheel) remove(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlinkLocked(s)
}

// move changes the instant at which a session is due.
func (w *wheel) move(s *Session, due time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlinkLocked(s)
	w.pushLocked(s, w.slotLocked(due))
}

// all returns the sessions of this moment.
func (w *wheel) all() []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*Session
	for _, s := range w.slots {
		for ; s != nil; s = s.next {
			out = append(out, s)
		}
	}
	return out
}

// advance visits what has become due until now.
func (w *wheel) advance(now time.Duration) {
	for {
		w.mu.Lock()
		if time.Duration(w.at+1)*w.step > now {
			w.mu.Unlock()
			return
		}
		w.at++
		slot := int32(w.at % wheelSlots)
		// A session that goes back into this very list is due a whole turn later, so take the list as it is now.
		last := w.slots[slot]
		w.slots[slot] = nil
		for s := last; s != nil; {
			next := s.next
			s.next, s.prev = nil, nil
			w.pushLocked(s, visiting)
			s = next
		}
		w.mu.Unlock()
		w.visitAll(now)
	}
}

// visitAll visits the sessions in the last list one by one, each without the lock.
func (w *wheel) visitAll(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := w.slots[visiting]; s != nil; s = w.slots[visiting] {
		w.mu.Unlock()
		due := s.visitAt(now)
		w.mu.Lock()
		if s.slot != visiting { // removed meanwhile
			continue
		}
		w.unlinkLocked(s)
		w.pushLocked(s, w.slotLocked(due))
	}
}

// slotLocked is the list for an instant: the first step that is not before it, within the wheel.
func (w *wheel) slotLocked(due time.Duration) int32 {
	steps := min(max(int64((due+w.step-1)/w.step)-w.at, 1), wheelSlots-1)
	return int32((w.at + steps) % wheelSlots)
}

func (w *wheel) pushLocked(s *Session, slot int32) {
	s.slot, s.prev, s.next = slot, nil, w.slots[slot]
	if s.next != nil {
		s.next.prev = s
	}
	w.slots[slot] = s
}

func (w *wheel) unlinkLocked(s *Session) {
	if s.slot < 0 {
		return
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		w.slots[s.slot] = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.next, s.prev, s.slot = nil, nil, -1
}
