package conn

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"liveroom/conn/frame"
	"liveroom/conn/socket"
	"liveroom/protocol"
)

// reader is the part of a session that reads. It belongs to the goroutine that has the turn.
type reader struct {
	seat    Seat
	raw     syscall.RawConn // for reads that do not wait; nil when the session can't rest
	carrier *socket.Carrier // what TLS reads from then; nil on plain TCP
	through *socket.Reader  // which TLS reads with at this moment
	ahead   []byte          // what net/http had read of the client's frames
	msg     *scratch        // of the message or frame that has begun; nil between two
	kept    int             // bytes of it that count among the acceptor's
	thrown  int             // bytes that came behind the close frame
	watched bool            // the poller knows it

	asides *asides // nil: there were none

	lang  protocol.Lang // fixed once the hello is decoded
	ready atomic.Uint32 // input, hangup; set by anybody

	frames frame.Reader // last: what a delivery looks at lies side by side
}

// What is known of the socket's input.
const (
	input  uint32 = 1 << iota // there may be some
	hangup                    // the end of the stream was announced, or there is nobody to announce anything
)

// intake is what a reader reads with: a buffer that is empty whenever a session comes to rest. A danmaku fits in it.
type intake struct {
	buf      [1 << 10]byte
	from, to int // what was read and is not taken yet
	read     socket.Reader
}

var intakes = sync.Pool{New: func() any {
	in := new(intake)
	in.read.Init()
	return in
}}

func (in *intake) rest() []byte { return in.buf[in.from:in.to] }

// scratch is what one message needs while it is read and handled; a session between two messages holds none.
type scratch struct {
	frame.Message
	err *protocol.Error // what a fragment was refused with
	req protocol.Request
}

var scratches = sync.Pool{New: func() any { return &scratch{Message: frame.NewMessage()} }}

// release returns a scratch without the client's strings and without an overgrown buffer.
func (c *scratch) release() {
	if c.Reset() {
		c.err, c.req = nil, protocol.Request{}
		scratches.Put(c)
	}
}

// run reads for the session: from the upgrade, or from the end of a rest, to the next rest or to the end of the socket.
func (s *Session) run() {
	in := intakes.Get().(*intake)
	defer intakes.Put(in)
	in.from, in.to = 0, 0
	s.mu.Lock()
	seated := s.turn < leaving
	s.mu.Unlock()
	if seated {
		if s.serve(in) {
			return
		}
		s.leave()
		s.reader.msg = nil
		s.unkeep()
		s.reader.frames.Skip(in.rest())
		s.pass(parting)
	}
	if s.part(in) {
		return
	}
	s.abort()
	s.pass(ended)
	s.a.ended(s)
}

// serve reads until there is nothing to read, and the session rests (true), or until it is closing or the socket fails.
func (s *Session) serve(in *intake) (rests bool) {
	defer s.recovered("read")
	s.unkeep()
	for s.goesOn() {
		if in.from < in.to {
			if !s.take(in) {
				return false
			}
			continue
		}
		switch err := s.fill(in); {
		case err == nil:
		case err != socket.ErrWouldBlock:
			return false
		case !s.keep():
			s.Close(*s.a.sendAway(protocol.CloseOverloaded, 0))
		default:
			s.idle()
			if s.rest() {
				return true
			}
			s.unkeep()
		}
	}
	return false
}

// goesOn takes the turn back from the lobby or the seat. False: the session is about to end.
func (s *Session) goesOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == handling {
		s.passLocked(reading)
	}
	return s.stage < closing
}

// leave gives the seat up. A panic in it ends this session alone, as net/http would have it.
func (s *Session) leave() {
	defer s.recovered("leave")
	if a := s.reader.asides; a != nil {
		a.all.Wait()
	}
	s.pass(leaving)
	if s.reader.seat != nil {
		s.reader.seat.Leave()
	}
}

func (s *Session) recovered(where string) {
	if v := recover(); v != nil {
		s.a.cfg.Logger.Error("session panicked", "session", s.id, "in", where, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
		s.Close(protocol.Refusal{Code: protocol.CloseInternal})
	}
}

// take reads one frame of what has come, or the part of it that is there. False: there can be no further one.
func (s *Session) take(in *intake) bool {
	r := &s.reader
	c := r.msg
	if c == nil {
		c = scratches.Get().(*scratch)
		r.msg = c
	}
	n, whole, fault := r.frames.Next(in.rest(), &c.Message)
	in.from += n
	if fault != 0 {
		s.Close(protocol.Refusal{Code: fault})
		return false
	}
	if !whole {
		return true
	}
	s.stamp()
	between := r.frames.Between()
	if between {
		s.pulse.begun.Store(0)
	}
	going := s.frame(c)
	if between {
		r.msg = nil
		c.release()
	}
	return going
}

// frame deals with a whole frame, which is spent whatever it is.
func (s *Session) frame(c *scratch) bool {
	frames := &s.reader.frames
	if frames.Op() == frame.OpClose {
		s.answerClose(c.Control)
		return false
	}
	var err *protocol.Error
	var refusal *protocol.Refusal
	if m := s.a.cfg.Meter; m != nil {
		err, refusal = m.Frame(s)
	}
	if !frames.Control() {
		if c.err == nil {
			c.err = err
		}
		if !frames.Unfinished() {
			s.pass(handling)
			s.handle(c, refusal)
			s.stamp()
			return true
		}
	}
	if refusal != nil {
		s.Close(*refusal)
		return false
	}
	if frames.Op() == frame.OpPing && err == nil { // one too many gets no pong
		s.urgent(wireEntry(frame.AppendControl(nil, frame.OpPong, c.Control)))
	}
	if frames.Control() {
		c.Control = c.Control[:0]
	}
	return true
}

// answerClose ends the session behind the peer's close frame. That counts as an ordinary leave, whatever code the peer chose,
// and repeats no reason, which could be a token.
func (s *Session) answerClose(payload []byte) {
	code, fault := frame.ParseClose(payload)
	if fault != 0 {
		s.Close(protocol.Refusal{Code: fault})
		return
	}
	answer := frame.Close(code, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(protocol.CloseNormal, answer)
}

// stamp notes that a whole frame has come.
func (s *Session) stamp() { s.pulse.seen.Store(int64(s.a.now())) }

// handle decodes a whole message and passes it on. One of whose frames is over its limit is refused.
func (s *Session) handle(c *scratch, refusal *protocol.Refusal) {
	switch fault := c.Unpack(); {
	case fault != 0:
		s.Close(protocol.Refusal{Code: fault})
		return
	case c.err != nil || refusal != nil:
		s.refuseFrame(c, refusal)
		return
	case !utf8.Valid(c.Text):
		s.Close(protocol.Refusal{Code: protocol.CloseInvalidUTF8})
		return
	}
	err := protocol.DecodeRequest(c.Text, &c.req)
	if s.reader.seat == nil {
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
		s.pulse.said.Store(s.pulse.seen.Load())
		s.reader.seat.Receive(&c.req)
	}
}

// refuseFrame answers a frame over its limit. Its id is worth the decoding, for each readable id is owed one answer; how
// often that can be asked for is what the closing refusal is about.
func (s *Session) refuseFrame(c *scratch, refusal *protocol.Refusal) {
	if c.err != nil {
		_ = protocol.DecodeRequest(c.Text, &c.req)
		s.refuse(c.req.ID, c.err)
	}
	if refusal != nil {
		s.Close(*refusal)
	}
}

// refuse answers a frame: with an ack when it had an id, else with an error.
func (s *Session) refuse(id string, err *protocol.Error) {
	events := s.refusal(id, err)
	if s.reader.seat != nil {
		s.Control(events)
		return
	}
	s.urgent(eventEntry(events)) // ahead of everything that waits for Open
}

func (s *Session) refusal(id string, err *protocol.Error) []byte {
	if id == "" {
		return protocol.AppendError(nil, err, s.reader.lang)
	}
	return protocol.AppendAck(nil, protocol.Refuse(id, err), s.reader.lang)
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
		s.reader.lang = protocol.ParseLang(r.Lang)
	}
	ctx, cancel := context.WithTimeout(s.a.ctx, s.a.cfg.HelloTimeout)
	defer cancel()
	var seat Seat
	refusal := s.a.sendAway(protocol.CloseOverloaded, 0)
	s.Await(func() { seat, refusal = s.a.lobby.Hello(ctx, s, r) }) // a join waits for what is stored of its room
	s.reader.seat = seat
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
