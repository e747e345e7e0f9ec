package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"time"
	"unicode/utf8"

	"liveroom/protocol"
)

// run is a turn of the session: from the upgrade, or from the end of a rest, to the next rest or to the end of the socket.
func (s *Session) run() {
	in := intakes.Get().(*intake)
	defer intakes.Put(in)
	in.from, in.to = 0, 0
	if !s.left {
		if s.serve(in) {
			return
		}
		s.leave()
		s.left, s.msg = true, nil
		s.unkeep()
		s.at.skip(in.rest())
	}
	if s.part(in) {
		return
	}
	s.abort()
	s.a.ended(s)
}

// serve reads until there is nothing to read, and the session rests (true), or until it is closing or the socket fails.
func (s *Session) serve(in *intake) (parked bool) {
	defer s.recovered("read")
	s.unkeep()
	for !s.isClosing() {
		if in.from < in.to {
			if !s.take(in) {
				return false
			}
			continue
		}
		switch err := s.fill(in); {
		case err == nil:
		case err != errWouldBlock:
			return false
		case !s.keep():
			s.Close(*s.a.sendAway(protocol.CloseOverloaded, 0))
		default:
			s.idle()
			if s.park() {
				return true
			}
			s.unkeep()
		}
	}
	return false
}

// leave gives the seat up. A panic in it ends this session alone, as net/http would have it.
func (s *Session) leave() {
	defer s.recovered("leave")
	if s.seat != nil {
		s.phase.Store(phaseHandling)
		s.seat.Leave()
	}
}

func (s *Session) recovered(where string) {
	if v := recover(); v != nil {
		s.a.cfg.Logger.Error("session panicked", "session", s.id, "in", where, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
		s.Close(protocol.Refusal{Code: protocol.CloseInternal})
	}
}

func (s *Session) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// take reads one frame of what has come, or the part of it that is there. False: there can be no further one.
func (s *Session) take(in *intake) bool {
	c := s.msg
	if c == nil {
		c = scratches.Get().(*scratch)
		s.msg = c
	}
	n, whole, fault := s.at.next(in.rest(), c)
	in.from += n
	if fault != 0 {
		s.Close(protocol.Refusal{Code: fault})
		return false
	}
	if !whole {
		return true
	}
	s.stamp()
	going := s.frame(c)
	if s.at.between() {
		s.msg = nil
		c.release()
		if s.seat != nil {
			s.phase.Store(phaseWaiting)
		}
	}
	return going
}

// frame deals with a whole frame, which is spent whatever it is.
func (s *Session) frame(c *scratch) bool {
	if s.at.op() == opClose {
		s.answerClose(c.control)
		return false
	}
	var err *protocol.Error
	var refusal *protocol.Refusal
	if m := s.a.cfg.Meter; m != nil {
		err, refusal = m.Frame(s)
	}
	if !s.at.control() {
		if c.err == nil {
			c.err = err
		}
		if !s.at.open {
			c.deflated = s.at.deflated
			s.phase.Store(phaseHandling)
			s.handle(c, refusal)
			s.stamp()
			return true
		}
	}
	if refusal != nil {
		s.Close(*refusal)
		return false
	}
	if s.at.op() == opPing && err == nil { // one too many gets no pong
		s.mu.Lock()
		s.urgentLocked(frameWire(opPong, c.control))
		s.mu.Unlock()
	}
	if s.at.control() {
		c.control = c.control[:0]
	}
	return true
}

// answerClose ends the session behind the peer's close frame. That counts as an ordinary leave, whatever code the peer chose,
// and repeats no reason, which could be a token.
func (s *Session) answerClose(payload []byte) {
	if fault := closeFault(payload); fault != 0 {
		s.Close(protocol.Refusal{Code: fault})
		return
	}
	code := protocol.CloseNormal
	if len(payload) >= 2 {
		code = protocol.CloseCode(binary.BigEndian.Uint16(payload))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(protocol.CloseNormal, closeFrame(code, ""))
}

// stamp notes that a whole frame has come.
func (s *Session) stamp() { s.seen.Store(int64(s.a.now())) }

// handle decodes a whole message and passes it on. One of whose frames is over its limit is refused.
func (s *Session) handle(c *scratch, refusal *protocol.Refusal) {
	switch {
	case !s.unpack(c):
		return
	case c.err != nil || refusal != nil:
		s.refuseFrame(c, refusal)
		return
	case !utf8.Valid(c.buf):
		s.Close(protocol.Refusal{Code: protocol.CloseInvalidUTF8})
		return
	}
	err := protocol.DecodeRequest(c.buf, &c.req)
	if s.seat == nil {
		s.greet(&c.req, err)
		return
	}
	switch {
	case err != nil:
		s.refuse(c.req.ID, err)
	case c.req.Op == protocol.OpPing:
		s.Control(protocol.AppendPong(nil, c.req.ID, time.Now().UnixMilli()))
	case c.req.Op == protocol.OpHello:
		s.refuse(c.req.ID, &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "op: hello comes once, as the first frame"})
	default:
		s.seat.Receive(&c.req)
	}
}

// refuseFrame answers a frame over its limit. Its id is worth the decoding, for each readable id is owed one answer; how
// often that can be asked for is what the closing refusal is about.
func (s *Session) refuseFrame(c *scratch, refusal *protocol.Refusal) {
	if c.err != nil {
		_ = protocol.DecodeRequest(c.buf, &c.req)
		s.refuse(c.req.ID, c.err)
	}
	if refusal != nil {
		s.Close(*refusal)
	}
}

// refuse answers a frame: with an ack when it had an id, else with an error.
func (s *Session) refuse(id string, err *protocol.Error) {
	events := s.refusal(id, err)
	if s.seat != nil {
		s.Control(events)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answerLocked(events)
}

func (s *Session) refusal(id string, err *protocol.Error) []byte {
	if id == "" {
		return protocol.AppendError(nil, err, s.lang)
	}
	return protocol.AppendAck(nil, protocol.Refuse(id, err), s.lang)
}

// greet handles the first frame, which must be a hello.
func (s *Session) greet(r *protocol.Request, err *protocol.Error) {
	if err == nil && r.Op != protocol.OpHello {
		err = protocol.BadField("op", "hello as the first one", string(r.Op))
	}
	if err != nil {
		s.refuse(r.ID, err)
		s.Close(protocol.Refusal{Code: protocol.CloseHelloTimeout, Detail: "bad hello"})
		return
	}
	if r.Lang != "" {
		s.lang = protocol.ParseLang(r.Lang)
	}
	ctx, cancel := context.WithTimeout(s.a.ctx, s.a.cfg.HelloTimeout)
	defer cancel()
	var seat Seat
	refusal := s.a.sendAway(protocol.CloseOverloaded, 0)
	s.Await(func() { seat, refusal = s.a.lobby.Hello(ctx, s, r) }) // a join waits for what is stored of its room
	s.seat = seat
	if seat != nil && refusal == nil {
		return
	}
	if refusal == nil {
		refusal = &protocol.Refusal{Code: protocol.CloseInternal}
	}
	if seat == nil { // else the welcome was the answer
		s.refuse(r.ID, refusal.Answer())
	}
	s.Close(*refusal)
}
