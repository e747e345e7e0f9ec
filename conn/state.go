package conn

import (
	"errors"
	"fmt"
)

// stage is how far a session's life has come: what may be sent. It goes forward only, whoever moves it.
//
//	stage      what may be sent                                         moves to
//	greeting   control frames and refusals; the rest waits for Open     open, closing, broken, closed
//	open       everything                                               closing, broken, closed
//	closing    nothing more: a close frame is queued or sent            broken, closed
//	broken     nothing: the wire has failed and no close frame passes   closed
//	closed     nothing: the socket is closed, its descriptor another's
type stage uint8

const (
	greeting stage = iota
	open
	closing
	broken
	closed
)

func (s stage) String() string {
	return [...]string{"greeting", "open", "closing", "broken", "closed"}[s]
}

// reachLocked moves the session's life forward. False: it is as far already, and the caller comes too late.
func (s *Session) reachLocked(to stage) bool {
	if to <= s.stage {
		return false
	}
	s.stage = to
	return true
}

// turn is whose turn it is: who is to act next, and whether a goroutine reads for the session. What the reader owns belongs to
// the goroutine that has the turn; while it rests, to whoever ends the rest.
//
//	turn            who is to act                                       moves to
//	reading         the peer, and a goroutine reads                     handling, resting, leaving
//	handling        the lobby or the seat, with what was read           reading, awaiting, leaving
//	awaiting        the same; its reader is another's meanwhile         handling
//	resting         the peer, and nobody reads                          reading
//	leaving         the seat, which gives itself up                     parting
//	parting         the peer, to end the connection; a goroutine reads  partingAtRest, ended
//	partingAtRest   the same, and nobody reads                          parting
//	ended           nobody
type turn uint8

const (
	reading turn = iota
	handling
	awaiting
	resting
	leaving
	parting
	partingAtRest
	ended
)

// turnMoves is the table, a bit for each turn that may follow.
var turnMoves = [...]uint8{
	reading:       1<<handling | 1<<resting | 1<<leaving,
	handling:      1<<reading | 1<<awaiting | 1<<leaving,
	awaiting:      1 << handling,
	resting:       1 << reading,
	leaving:       1 << parting,
	parting:       1<<partingAtRest | 1<<ended,
	partingAtRest: 1 << parting,
	ended:         0,
}

func (t turn) String() string {
	return [...]string{"reading", "handling", "awaiting", "resting", "leaving", "parting", "partingAtRest", "ended"}[t]
}

// rests reports whether nobody reads.
func (t turn) rests() bool { return t == resting || t == partingAtRest }

// ours reports whether the peer may be silent, since we owe it something or have nothing more to ask of it.
func (t turn) ours() bool { return t != reading && t != resting }

// passLocked moves the turn on. It panics on a move that is not in the table: two goroutines would read for one session.
func (s *Session) passLocked(to turn) {
	if turnMoves[s.turn]&(1<<to) == 0 {
		panic(fmt.Sprintf("conn: a session's turn goes from %v to %v", s.turn, to))
	}
	s.turn = to
}

func (s *Session) pass(to turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked(to)
}

// check holds the states to one another, and to the queue.
func (s *Session) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkTurnLocked(); err != nil {
		return fmt.Errorf("%v, %v: %w", s.stage, s.turn, err)
	}
	if err := s.checkWireLocked(); err != nil {
		return fmt.Errorf("%v, %v: %w", s.stage, s.turn, err)
	}
	return nil
}

func (s *Session) checkTurnLocked() error {
	r := &s.reader
	switch {
	case s.turn == ended && s.stage != closed:
		return errors.New("the last reader is gone and the socket is not closed")
	case s.turn.rests() && s.a.poller != nil && s.overLocked():
		return errors.New("it rests although there is an end to come to")
	case s.turn.rests() && r.raw == nil:
		return errors.New("it rests and nothing can wake it")
	case s.turn == resting && s.stage < closing && (r.seat == nil) != (s.stage == greeting):
		return errors.New("seated and not opened, or the other way round")
	case s.turn == resting && r.msg == nil && !r.frames.Between():
		return errors.New("inside a message without what there is of it")
	case s.turn == partingAtRest && (r.msg != nil || r.kept != 0):
		return errors.New("keeps a message that nobody will read")
	}
	return nil
}

func (s *Session) checkWireLocked() error {
	w := &s.wire
	switch {
	case s.stage == closed && (w.fd >= 0 || w.q != nil || w.held.Len() > 0):
		return errors.New("the socket is closed and there is something to send")
	case w.held.Len() > maxHeldBytes:
		return fmt.Errorf("holds %d bytes", w.held.Len())
	case w.held.Len() > 0 && s.stage == closing:
		return errors.New("holds events behind a close frame")
	case w.q == nil || s.stage == broken:
		return nil
	}
	if err := w.q.check(); err != nil {
		return err
	}
	switch {
	case w.q.waiting(s.stage != greeting) && !w.q.writing:
		return errors.New("frames wait and nobody writes them")
	case s.stage == open && !w.q.writing:
		return errors.New("a queue without a writer")
	case s.stage == closing && len(w.q.data) > w.q.head:
		return errors.New("broadcasts behind a close frame")
	}
	return nil
}
