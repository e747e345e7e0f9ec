package conn

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"liveroom/conn/frame"
	"liveroom/internal/lock"
	"liveroom/protocol"
)

// wheelSlots is how many steps the wheel looks ahead. What is due later is looked at once more on the way.
const wheelSlots = 256

// wheel is a timer wheel over all sessions of an acceptor (Varghese and Lauck, 1987): two pointers per session in place of
// a runtime timer, and one goroutine for all. It is also the register of sessions.
type wheel struct {
	step time.Duration // fixed after construction

	mu    lock.Mutex[lock.Leaf]
	slots [wheelSlots + 1]*Session
	at    int64 // steps done
}

// The last list holds sessions that are being visited; outside any list is slot -1.
const visiting = wheelSlots

func newWheel(step time.Duration) *wheel { return &wheel{step: step} }

// timer is a session's place in the wheel, guarded by wheel.mu.
type timer struct {
	next, prev *Session
	slot       int32
}

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
		for ; s != nil; s = s.timer.next {
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
		// A session that goes back into this very list is due a whole round later, so take the list as it is now.
		last := w.slots[slot]
		w.slots[slot] = nil
		for s := last; s != nil; {
			next := s.timer.next
			s.timer.next, s.timer.prev = nil, nil
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
		if s.timer.slot != visiting { // removed meanwhile
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
	s.timer.slot, s.timer.prev, s.timer.next = slot, nil, w.slots[slot]
	if s.timer.next != nil {
		s.timer.next.timer.prev = s
	}
	w.slots[slot] = s
}

func (w *wheel) unlinkLocked(s *Session) {
	if s.timer.slot < 0 {
		return
	}
	if s.timer.prev != nil {
		s.timer.prev.timer.next = s.timer.next
	} else {
		w.slots[s.timer.slot] = s.timer.next
	}
	if s.timer.next != nil {
		s.timer.next.timer.prev = s.timer.prev
	}
	s.timer.next, s.timer.prev, s.timer.slot = nil, nil, -1
}

// pulse is what the sweeper knows of a session. All times are on the acceptor's clock.
type pulse struct {
	born  time.Duration // fixed after construction
	seen  atomic.Int64  // when the last whole frame came
	said  atomic.Int64  // when the last one for the seat came; 0: none
	begun atomic.Int64  // when the message was first waited for whose rest is to come; 0: there is none

	pinged time.Duration // when the last ping was sent, none or armed; owned by the sweeper
}

// Of pulse.pinged.
const (
	unpinged time.Duration = 0  // no ping was sent
	armed    time.Duration = -1 // nor now, but the next visit is to send the first
)

// pingFrame has no payload and is the same for everybody.
var pingFrame = frame.AppendControl(nil, frame.OpPing, nil)

// visitAt does what is due for a session and returns when to come back. Only whole frames count as life: while a frame is
// unfinished a peer can't answer a ping, so that half a frame ends as half-open sockets do.
func (s *Session) visitAt(now time.Duration) (next time.Duration) {
	cfg := &s.a.cfg
	s.mu.Lock()
	stage, turn, until := s.stage, s.turn, s.end.until
	s.mu.Unlock()
	switch greeted := s.pulse.born + cfg.HelloTimeout; {
	case stage == closed:
		return now + cfg.Heartbeat // it is about to be removed
	case stage >= closing && now >= s.a.lastVisit(until):
		s.abort()
		return now + cfg.Heartbeat
	case stage >= closing:
		return s.a.lastVisit(until)
	case turn.ours():
		s.pulse.seen.Store(int64(now))
		return now + cfg.Heartbeat
	case stage == greeting && now < greeted:
		return min(greeted, now+cfg.Heartbeat)
	case stage == greeting:
		s.Close(protocol.Refusal{Code: protocol.CloseHelloTimeout})
		return now + cfg.CloseTimeout
	default:
		return s.beatAt(now)
	}
}

// beatAt keeps the heartbeat of a session whose turn is the peer's.
func (s *Session) beatAt(now time.Duration) (next time.Duration) {
	cfg, p := &s.a.cfg, &s.pulse
	seen, begun := time.Duration(p.seen.Load()), time.Duration(p.begun.Load())
	switch {
	case begun != 0 && now-begun >= cfg.MessageTimeout,
		p.pinged > seen && now-p.pinged >= cfg.PongTimeout:
		s.abort()
		return now + cfg.Heartbeat
	case p.pinged > seen:
		return p.pinged + cfg.PongTimeout
	case begun != 0:
		return begun + cfg.MessageTimeout
	case now-seen < cfg.Heartbeat && p.pinged > unpinged:
		return seen + cfg.Heartbeat
	case now-seen < cfg.Heartbeat && p.pinged == unpinged:
		// The first ping comes early by a random part, so that sessions that came at once do not beat at once for ever.
		p.pinged = armed
		return now + rand.N(seen+cfg.Heartbeat-now)
	}
	p.pinged = now
	s.urgent(wireEntry(pingFrame))
	return now + cfg.PongTimeout
}

// lastVisit is when the sweeper looks at a closing session so that it is gone by an instant: rather a step early than late,
// since whoever drains a node waits no longer.
func (a *Acceptor) lastVisit(until time.Duration) time.Duration { return until - a.wheel.step + 1 }

// sweepStep is how exact the sweeper's deadlines are: a small part of the shortest. The wheel still spans the longest of usual
// settings in one round.
func (c *Config) sweepStep() time.Duration {
	return max(min(c.HelloTimeout, c.Heartbeat, c.PongTimeout, c.MessageTimeout, c.CloseTimeout)/32, time.Millisecond)
}

// sweep turns the wheel until the acceptor is stopped.
func (a *Acceptor) sweep() {
	t := time.NewTicker(a.wheel.step)
	defer t.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-t.C:
			a.wheel.advance(a.now())
		}
	}
}
