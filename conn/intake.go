package conn

import (
	"net"
	"sync"

	"liveroom/protocol"
)

// intake is what a reader reads with: a buffer that is empty whenever a session comes to rest. A danmaku fits in it.
type intake struct {
	buf      [1 << 10]byte
	from, to int // what was read and is not taken yet
	read     socketRead
}

var intakes = sync.Pool{New: func() any {
	in := new(intake)
	in.read.init()
	return in
}}

func (in *intake) rest() []byte { return in.buf[in.from:in.to] }

// scratch is what one message needs while it is read and handled; a session between two messages holds none.
type scratch struct {
	buf      []byte
	control  []byte          // the payload of a control frame, which may come between two fragments
	spare    []byte          // the other one of two, for a message that comes deflated
	deflated bool            // buf is
	err      *protocol.Error // what a fragment was refused with
	req      protocol.Request
}

// scratchBytes is the buffer to begin with. It grows only as input comes, so that a half message costs the server about as
// much as it cost the client.
const scratchBytes = 1 << 10

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, 0, scratchBytes)} }}

// release returns a scratch without the client's strings and without an overgrown buffer.
func (c *scratch) release() {
	if cap(c.buf) > 4*scratchBytes || cap(c.spare) > 4*scratchBytes {
		return
	}
	c.buf, c.control, c.err, c.req, c.deflated = c.buf[:0], c.control[:0], nil, protocol.Request{}, false
	scratches.Put(c)
}

// fill reads what has come. It fails with errWouldBlock rather than wait when the session can rest.
func (s *Session) fill(in *intake) error {
	in.from, in.to = 0, 0
	if len(s.prefix) > 0 {
		in.to = copy(in.buf[:], s.prefix)
		if s.prefix = s.prefix[in.to:]; len(s.prefix) == 0 {
			s.prefix = nil
		}
		return nil
	}
	n, err := 0, errWouldBlock
	switch {
	case s.raw != nil:
		n, err = s.readNow(&in.read, in.buf[:])
	default:
		s.idle()
		n, err = s.nc.Read(in.buf[:])
	}
	if in.to = n; n > 0 {
		return nil
	}
	return err
}

// idle tells the sweeper whose turn it is while nothing comes. A message has its deadline from the first time that it is
// waited for, whatever comes between its fragments.
func (s *Session) idle() {
	switch {
	case s.seat == nil: // the time for the hello runs
	case s.at.between():
		s.phase.Store(phaseWaiting)
	case s.phase.Load() != phaseMessage:
		now := s.a.now()
		s.begun.Store(int64(now))
		s.phase.Store(phaseMessage)
		s.a.wheel.move(s, now+s.a.cfg.MessageTimeout)
	}
}

// maxKept bounds what all half messages beyond their first buffer take together, in bytes; one that comes on top of it ends
// its session. 64 MiB are 4,000 messages of the largest size, all of them half.
const maxKept = 64 << 20

// keep counts what a session that is about to rest inside a message keeps of it. False: that is too much.
func (s *Session) keep() bool {
	if s.msg == nil || cap(s.msg.buf) <= scratchBytes {
		return true
	}
	s.kept = cap(s.msg.buf)
	return s.a.kept.Add(int64(s.kept)) <= maxKept
}

func (s *Session) unkeep() {
	s.a.kept.Add(-int64(s.kept))
	s.kept = 0
}

// frameWire is an unmasked control frame.
func frameWire(op byte, payload []byte) entry {
	f := append(make([]byte, 0, 2+len(payload)), bitFin|op, byte(len(payload)))
	f = append(f, payload...)
	return entry{bytes: f, size: len(f), kind: kindWire}
}

// handshaken is the connection that coder/websocket has after its handshake: none, for it neither reads nor writes frames.
type handshaken struct{ net.Conn }

func (handshaken) Close() error             { return nil }
func (handshaken) Read([]byte) (int, error) { return 0, net.ErrClosed }
