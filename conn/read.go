package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

// run is a turn of the session's own goroutine: from the upgrade, or from the end of a rest, to the next rest or to the end of
// the socket.
func (s *Session) run() {
	if !s.left {
		if s.serve() {
			return
		}
		s.leave()
		s.left, s.at.deflate = true, false
		s.dismiss()
	}
	if s.part() {
		return
	}
	s.abort()
	s.a.ended(s)
}

// serve reads until there is nothing to read, and the session rests (true), or until it is closing or the socket fails.
func (s *Session) serve() (parked bool) {
	defer s.recovered("read")
	for !s.isClosing() {
		if s.seat != nil {
			s.phase.Store(phaseWaiting)
		}
		switch s.readMessage() {
		case readNothing:
			if s.park() {
				return true
			}
		case readEnd:
			return false
		}
	}
	return false
}

// dismiss gives the decoder up, at the end of the reading.
func (s *Session) dismiss() {
	if s.dec != nil {
		s.dec.dismiss()
		s.dec = nil
	}
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

// scratch is what one message needs while it is read and handled; an idle session holds none.
type scratch struct {
	buf      []byte
	spare    []byte // the other one of two, for a message that comes deflated
	deflated bool   // buf is
	req      protocol.Request
}

// scratchBytes is the buffer to begin with. It grows only as input comes, so that a half message costs the server about as
// much as it cost the client.
const scratchBytes = 1 << 10

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, scratchBytes)} }}

// release returns a scratch without the client's strings and without an overgrown buffer.
func (c *scratch) release() {
	c.req = protocol.Request{}
	if cap(c.buf) <= 4*scratchBytes && cap(c.spare) <= 4*scratchBytes {
		scratches.Put(c)
	}
}

// readResult says how it goes on after an attempt to read a message.
type readResult uint8

const (
	readMore    readResult = iota // there may be another one
	readNothing                   // nothing has come, and the session may rest
	readEnd                       // there can be no further one
)

// readMessage reads and handles one message.
func (s *Session) readMessage() readResult {
	if s.dec == nil {
		var err error
		if s.dec, err = s.a.decoders.get(s); err != nil {
			panic(err) // a handshake with ourselves
		}
	}
	// Looking first spares coder the wording of an error when nothing has come.
	if _, err := s.dec.br.Peek(1); err != nil {
		return s.readFailed(err)
	}
	// No deadline here: coder closes on it. Deadlines are the sweeper's.
	typ, r, err := s.dec.ws.Reader(context.Background())
	if err != nil {
		return s.readFailed(err)
	}
	if typ != websocket.MessageText && !s.deflate {
		s.Close(protocol.Refusal{Code: protocol.CloseNotText})
		return readEnd
	}
	if s.seat != nil {
		s.begun.Store(int64(s.a.now()))
		s.phase.Store(phaseMessage)
	}
	c := scratches.Get().(*scratch)
	defer c.release()
	if c.buf, err = readAll(r, c.buf); err != nil {
		return s.readFailed(err)
	}
	c.deflated = typ != websocket.MessageText
	s.phase.Store(phaseHandling)
	s.handle(c)
	s.stamp()
	return readMore
}

// readFailed tells what an error of coder's is. Where it has found a fault of the protocol it has sent a close, or should
// have.
func (s *Session) readFailed(err error) readResult {
	switch {
	case errors.Is(err, errWouldBlock):
		return readNothing
	case s.at.notText:
		s.Close(protocol.Refusal{Code: protocol.CloseNotText})
	case !s.readFail && !errors.Is(err, net.ErrClosed): // closed by one of coder's timers: the peer was too slow
		s.mu.Lock()
		s.closeForLocked(protocol.CloseProtocol)
		s.mu.Unlock()
	}
	return readEnd
}

// stamp notes that a whole frame has come.
func (s *Session) stamp() { s.seen.Store(int64(s.a.now())) }

// handle spends a frame, decodes it and passes it on.
func (s *Session) handle(c *scratch) {
	var err *protocol.Error
	var refusal *protocol.Refusal
	if m := s.a.cfg.Meter; m != nil {
		err, refusal = m.Frame(s)
	}
	switch {
	case !s.unpack(c):
		return
	case err != nil || refusal != nil:
		s.refuseFrame(c, err, refusal)
		return
	case !utf8.Valid(c.buf):
		s.Close(protocol.Refusal{Code: protocol.CloseInvalidUTF8})
		return
	}
	err = protocol.DecodeRequest(c.buf, &c.req)
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
func (s *Session) refuseFrame(c *scratch, err *protocol.Error, refusal *protocol.Refusal) {
	if err != nil {
		_ = protocol.DecodeRequest(c.buf, &c.req)
		s.refuse(c.req.ID, err)
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
	seat, refusal := s.a.lobby.Hello(ctx, s, r)
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
