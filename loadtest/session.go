package main

import (
	"encoding/binary"
	"errors"
	"net"
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

// farewell is how a session is ended from our side.
type farewell uint8

const (
	leave  farewell = iota // close frame, then wait for the server to hang up
	hangUp                 // the socket is closed without a word
	reset                  // the socket is closed so that the peer sees a reset
)

// wire is the outbound half of a session's socket. Safe for concurrent use.
type wire interface {
	// write sends one frame, or queues its rest; it does not wait for the peer. It fails when the socket is gone or its
	// queue is full.
	write(frame []byte) error
	// end closes the socket; the reader hears of it and calls session.ended.
	end(how farewell)
	// freeze stops or resumes reading.
	freeze(frozen bool)
}

// session is one viewer.
type session struct {
	// fixed after construction
	index  int
	room   uint16 // index of its room
	stable bool   // stays for the whole trial, so that what it misses is a loss
	timed  bool   // its receipts make up the latencies, for which the tool's own time would not do over all viewers
	opened time.Time
	sink   *sink
	crowd  *crowd
	wire   wire

	// safe for concurrent use
	stage   atomic.Uint32
	leaving atomic.Bool // the end was asked for by us

	// guarded by sink.mu
	in        inbound
	node      string // that welcomed it
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
	trial *trial
	count int64
	hash  uint64
}

// add appends attempt k of t.
func (q *sequence) add(t *trial, k int) {
	if q.trial != t {
		*q = sequence{trial: t}
	}
	q.count++
	q.hash = (q.hash ^ uint64(k+1)) * 0x100000001b3 // FNV-1a, a word at a time
}

// of is how many of t's danmaku it holds.
func (q *sequence) of(t *trial) int64 {
	if q.trial != t {
		return 0
	}
	return q.count
}

// hole is where a gift's prev did not match the one seen before: something between the two may be missing.
type hole struct{ after, before uint64 }

var _ frameHandler = (*session)(nil)

// frame takes one message or control frame; sink.mu is held.
func (s *session) frame(opcode byte, payload []byte) {
	switch opcode {
	case opText:
		s.sink.message(s, payload)
	case opText | opDeflated:
		s.sink.deflated(s, payload)
	case opPing:
		s.sink.count.pings++
		_ = s.wire.write(s.sink.control(opPong, payload)) // a socket that is gone is noticed by its reader
	case opClose:
		s.closeCode = 1005 // none was given (RFC 6455, section 7.1.5)
		if len(payload) >= 2 {
			s.closeCode = int(binary.BigEndian.Uint16(payload))
		}
		s.closedByServer()
		_ = s.wire.write(s.sink.control(opClose, payload[:min(2, len(payload))]))
	case opBinary:
		s.sink.count.unreadable++
	}
}

// gift follows the chain of gifts.
func (s *session) gift(seq, prev uint64) {
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
func (s *session) closedByServer() {
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
	s.crowd.lost.Add(1)
}

// ended notes that the socket is closed; sink.mu is held.
func (s *session) ended() {
	if s.stage.Load() == stageGone {
		return
	}
	s.closedByServer()
	s.stage.Store(stageGone)
	s.in = inbound{}
}

// end closes the session from our side.
func (s *session) end(how farewell) {
	if s.leaving.Swap(true) {
		how = max(how, hangUp) // asked before: don't wait again
	}
	s.wire.end(how)
}

// joined reports whether the session is welcomed and alive.
func (s *session) joined() bool { return s.stage.Load() == stageJoined }

// maxBacklog bounds what a session may have queued towards the server, in bytes.
const maxBacklog = 64 << 10

var (
	errGone    = errors.New("the socket is gone")
	errBacklog = errors.New("the server does not read")
)

// reader owns the inbound half of many sessions.
type reader interface {
	// adopt takes over an upgraded socket; early are bytes that came behind the answer to the upgrade. On an error the
	// socket is closed.
	adopt(s *session, conn net.Conn, early []byte) error
	// close ends all of it and waits; sessions still open are cut.
	close()
}

// readers spreads sessions over several readers.
type readers struct {
	sinks []*sink
	each  []reader
	next  atomic.Uint32
}

// newReaders starts n of them. Encrypted sockets need the portable kind.
func newReaders(n int, seed uint64, encrypted bool) (*readers, error) {
	r := &readers{}
	for i := range n {
		k := newSink(seed + uint64(i))
		one, err := newReader(k, encrypted)
		if err != nil {
			r.close()
			return nil, err
		}
		r.sinks, r.each = append(r.sinks, k), append(r.each, one)
	}
	return r, nil
}

// adopt hands the socket to the next reader.
func (r *readers) adopt(s *session, conn net.Conn, early []byte) error {
	i := int(r.next.Add(1)) % len(r.each)
	s.sink = r.sinks[i]
	return r.each[i].adopt(s, conn, early)
}

// begin makes t the trial of all sinks.
func (r *readers) begin(t *trial) {
	for _, k := range r.sinks {
		k.begin(t)
	}
}

func (r *readers) close() {
	for _, one := range r.each {
		one.close()
	}
}
