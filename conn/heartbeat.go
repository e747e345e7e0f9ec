package conn

import (
	"math/rand/v2"
	"time"

	"liveroom/protocol"
)

// pingFrame is an unmasked ping without payload, the same for everybody.
var pingFrame = []byte{0x89, 0x00}

// visitAt does what is due for a session and returns when to come back. Only whole frames count as life: while a frame is
// unfinished a peer can't answer a ping, so that half a frame ends as half-open sockets do.
func (s *Session) visitAt(now time.Duration) (next time.Duration) {
	cfg := &s.a.cfg
	s.mu.Lock()
	closing, closed, until := s.closing, s.closed, s.until
	s.mu.Unlock()
	switch phase := s.phase.Load(); {
	case closed:
		return now + cfg.Heartbeat // it is about to be removed
	case closing && now >= s.a.lastVisit(until):
		s.abort()
		return now + cfg.Heartbeat
	case closing:
		return s.a.lastVisit(until)
	case phase == phaseGreeting && now-s.born < cfg.HelloTimeout:
		return min(s.born+cfg.HelloTimeout, now+cfg.Heartbeat)
	case phase == phaseGreeting:
		s.Close(protocol.Refusal{Code: protocol.CloseHelloTimeout})
		return now + cfg.CloseTimeout
	case phase == phaseHandling: // ours to answer, not the peer's
		s.seen.Store(int64(now))
		return now + cfg.Heartbeat
	default:
		return s.beatAt(now, phase)
	}
}

// beatAt keeps the heartbeat of a session whose turn is the peer's.
func (s *Session) beatAt(now time.Duration, phase uint32) (next time.Duration) {
	cfg := &s.a.cfg
	seen, begun := time.Duration(s.seen.Load()), time.Duration(s.begun.Load())
	switch {
	case phase == phaseMessage && now-begun >= cfg.MessageTimeout,
		s.pinged > seen && now-s.pinged >= cfg.PongTimeout:
		s.abort()
		return now + cfg.Heartbeat
	case s.pinged > seen:
		return s.pinged + cfg.PongTimeout
	case phase == phaseMessage:
		return begun + cfg.MessageTimeout
	case now-seen < cfg.Heartbeat && s.pinged != 0:
		return seen + cfg.Heartbeat
	case now-seen < cfg.Heartbeat && !s.armed:
		// The first ping comes early by a random part, so that sessions that came at once do not beat at once for ever.
		s.armed = true
		return now + rand.N(seen+cfg.Heartbeat-now)
	}
	s.pinged = now
	s.mu.Lock()
	s.urgentLocked(entry{bytes: pingFrame, size: len(pingFrame), kind: kindWire})
	s.mu.Unlock()
	return now + cfg.PongTimeout
}
