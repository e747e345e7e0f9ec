package client

import (
	"encoding/binary"
	"errors"
	"strconv"
	"sync/atomic"
	"time"
)

// Stages of a session's life.
const (
	stageNew     = iota // connected, hello sent
	stageJoined         // welcomed
	stageClosing        // the server has sent a close frame
	stageGone           // its socket is closed
)

// Farewell is how a session is ended from our side.
type Farewell uint8

const (
	leave  Farewell = iota // close frame, then wait for the server to hang up
	HangUp                 // the socket is closed without a word
	reset                  // the socket is closed so that the peer sees a reset
)

// wire is the outbound half of a session's socket. Safe for concurrent use.
type wire interface {
	// Write sends one frame; it does not wait for the peer. It fails when the socket is gone or full.
	Write(frame []byte) error
	// end closes the socket; the reader hears of it and calls session.ended.
	end(how Farewell)
	// Freeze stops or resumes reading.
	Freeze(frozen bool)
}

// Session is one viewer.
type Session struct {
	// fixed after construction
	index  int
	Room   uint16 // index of its room
	stable bool   // stays for the whole trial, so that what it misses is a loss
	timed  bool   // its receipts make up the latencies, for which the tool's own time would not do over all viewers
	opened time.Time
	sink   *sink
	crowd  *Crowd
	Wire   wire

	// safe for concurrent use
	stage   atomic.Uint32
	leaving atomic.Bool // the end was asked for by us

	// guarded by sink.mu
	in        inbound
	Node      string // that welcomed it
	since     int64  // the server's time at its welcome, Unix milliseconds; what is older is history
	lastGift  uint64 // sequence of the last gift it saw or knew of at its welcome
	holes     []hole
	repeats   int64 // gifts it saw again
	likeTotal int64
	closeCode int  // from a close frame, 0 for none
	counted   bool // among the closes
	seen      sequence
}

// sequence is which danmaku of a trial a session saw, in which order, as a hash: equal for sessions that saw the same.
type sequence struct {
	trial *Trial
	count int64
	hash  uint64
}

// add appends attempt k of t.
func (q *sequence) add(t *Trial, k int) {
	if q.trial != t {
		*q = sequence{trial: t}
	}
	q.count++
	q.hash = (q.hash ^ uint64(k+1)) * 0x100000001b3 // FNV-1a, a word at a time
}

// of is how many of t's danmaku it holds.
func (q *sequence) of(t *Trial) int64 {
	if q.trial != t {
		return 0
	}
	return q.count
}

// hole is where a gift's prev did not match the one seen before: something between the two may be missing.
type hole struct{ after, before uint64 }

var _ frameHandler = (*Session)(nil)

// frame takes one message or control frame; sink.mu is held.
func (s *Session) frame(opcode byte, payload []byte) {
	switch opcode {
	case OpText:
		s.sink.message(s, payload, false)
	case OpText | opDeflated:
		s.sink.message(s, payload, true)
	case opPing:
		_ = s.Wire.Write(s.sink.control(opPong, payload)) // a socket that is gone is noticed by its reader
	case OpClose:
		s.closeCode = 1005 // none was given (RFC 6455, section 7.1.5)
		if len(payload) >= 2 {
			s.closeCode = int(binary.BigEndian.Uint16(payload))
		}
		s.closedByServer()
		_ = s.Wire.Write(s.sink.control(OpClose, payload[:min(2, len(payload))]))
	case opBinary:
		s.sink.count.Unreadable++
	}
}

// gift follows the chain of gifts.
func (s *Session) gift(seq, prev uint64) {
	switch {
	case seq <= s.lastGift:
		s.repeats++
		return
	case prev != s.lastGift:
		s.holes = append(s.holes, hole{s.lastGift, seq})
	}
	s.lastGift = seq
}

// closedByServer notes the server's close frame: from now on nothing is owed to the session; sink.mu is held.
func (s *Session) closedByServer() {
	if s.leaving.Load() || s.counted {
		return
	}
	s.counted = true
	s.stage.CompareAndSwap(stageNew, stageClosing)
	s.stage.CompareAndSwap(stageJoined, stageClosing)
	code := "1006"
	if s.closeCode != 0 {
		code = strconv.Itoa(s.closeCode)
	}
	s.sink.closes[code]++
	s.crowd.Lost.Add(1)
}

// ended notes that the socket is closed; sink.mu is held.
func (s *Session) ended() {
	if s.stage.Load() == stageGone {
		return
	}
	s.closedByServer()
	s.stage.Store(stageGone)
	s.in = inbound{}
}

// end closes the session from our side.
func (s *Session) end(how Farewell) {
	if s.leaving.Swap(true) {
		how = max(how, HangUp) // asked before: don't wait again
	}
	s.Wire.end(how)
}

// Joined reports whether the session is welcomed and alive.
func (s *Session) Joined() bool { return s.stage.Load() == stageJoined }

var (
	errGone    = errors.New("the socket is gone")
	errBacklog = errors.New("the server does not read")
)
