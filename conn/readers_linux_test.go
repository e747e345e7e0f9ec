package conn

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"liveroom/protocol"
)

// A seat that takes its time holds nobody else up.
func TestASlowSeatHoldsNobodyUp(t *testing.T) { eachWay(t, aSlowSeatHoldsNobodyUp) }

func aSlowSeatHoldsNobodyUp(t *testing.T, w way) {
	l := newLobby()
	release := make(chan struct{})
	l.receive = func(s *Session, r *protocol.Request) {
		if r.Op == protocol.OpGift {
			<-release
		}
		s.Control(protocol.AppendAck(nil, protocol.Ack{ID: r.ID, Code: protocol.OK}, s.Lang()))
	}
	n := startWay(t, w, Config{}, l)
	var slow []*rawConn
	for range 300 {
		c, _ := rawJoin(t, n)
		c.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose","count":1}`)))
		slow = append(slow, c)
	}
	c, s := rawJoin(t, n)
	untilResting(t, s)
	c.write(t, masked(opText, []byte(`{"op":"like","id":"l","count":1}`)))
	if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "l" {
		t.Fatalf("got %+v", e)
	}
	close(release)
	for _, c := range slow {
		if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "g" {
			t.Fatalf("got %+v", e)
		}
	}
}

// Messages and hellos that wait for a store hold no reader: with many more of them than there are readers, everybody else is
// read. How many wait is bounded as well.
func TestWaitingSendersHoldNoReader(t *testing.T) {
	const most, waiting = 4, 40
	l := newLobby()
	release := make(chan struct{})
	var refused atomic.Int32
	l.receive = func(s *Session, r *protocol.Request) {
		ack := protocol.Ack{ID: r.ID, Code: protocol.OK}
		if r.Op == protocol.OpGift && !s.Await(func() { s.Await(func() { <-release }) }) {
			refused.Add(1)
			ack.ID = "full"
		}
		s.Control(protocol.AppendAck(nil, ack, s.Lang()))
	}
	l.hello = func(s *Session, r *protocol.Request) (Seat, *protocol.Refusal) {
		if r.Room == "slow" {
			<-release
		}
		return l.seat(s), nil
	}
	n := startNode(t, Config{MaxReaders: most, MaxWaiting: waiting}, l)
	c, s := rawJoin(t, n)
	untilResting(t, s)
	var senders []*rawConn
	for i := range waiting {
		if i%2 == 0 {
			senders = append(senders, rawDial(t, n, string(masked(opText, []byte(`{"op":"hello","id":"g","room":"slow"}`)))))
			continue
		}
		sender, _ := rawJoin(t, n)
		sender.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose","count":1}`)))
		senders = append(senders, sender)
	}
	count := func() (working, waiting int) {
		n.readers.mu.Lock()
		defer n.readers.mu.Unlock()
		return n.readers.working, n.readers.waiting
	}
	eventually(t, func() bool { working, now := count(); return now == waiting && working == 0 })
	c.write(t, masked(opPing, []byte("here")))
	if f := c.readFrame(t); f.op != opPong {
		t.Fatalf("got %+v", f)
	}
	c.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose","count":1}`)))
	if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "full" || refused.Load() != 1 {
		t.Fatalf("got %+v", e)
	}
	late := rawDial(t, n, string(masked(opText, []byte(`{"op":"hello","id":"g","room":"demo"}`))))
	for f := late.readFrame(t); f.code() != 4003; f = late.readFrame(t) {
		if f.op == opClose {
			t.Fatalf("got %+v", f)
		}
	}
	close(release)
	for _, sender := range senders {
		sender.readFrame(t)
	}
	eventually(t, func() bool { working, now := count(); return now == 0 && working <= 1 })
}

// What a session waits for beside its reading does not keep it from being read, up to a bound; the seat is left when all of it is over.
func TestAsidesAreReadPast(t *testing.T) {
	l := newLobby()
	release, full := make(chan struct{}), atomic.Int32{}
	answer := func(s *Session, id string) {
		s.Control(protocol.AppendAck(nil, protocol.Ack{ID: id, Code: protocol.OK}, s.Lang()))
	}
	l.receive = func(s *Session, r *protocol.Request) {
		if r.Op != protocol.OpGift {
			answer(s, r.ID)
			return
		}
		id := r.ID
		if !s.Aside(func() { <-release; answer(s, id) }) {
			full.Add(1)
		}
	}
	n := startNode(t, Config{}, l)
	c, s := rawJoin(t, n)
	untilResting(t, s)
	for range asidesMost + 3 {
		c.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose","count":1}`)))
	}
	c.write(t, masked(opText, []byte(`{"op":"like","id":"l","count":1}`)))
	if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "l" || full.Load() != 3 {
		t.Fatalf("got %+v, and %d found no place", e, full.Load())
	}
	s.Close(protocol.Refusal{Code: protocol.CloseNormal})
	left := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.left
	}
	for f := c.readFrame(t); f.op != opClose; f = c.readFrame(t) {
	}
	c.Close()
	if left() != 0 {
		t.Error("the seat was left before its gifts were answered")
	}
	close(release)
	eventually(t, func() bool { return left() == 1 })
	eventually(t, func() bool {
		n.readers.mu.Lock()
		defer n.readers.mu.Unlock()
		return n.readers.waiting == 0
	})
}

// Half a frame holds no reader: with twice as many of them as there are readers, everybody else is read. Each goes on where it
// stopped, wherever that was.
func TestHalfFramesHoldNoReader(t *testing.T) { eachWay(t, halfFramesHoldNoReader) }

func halfFramesHoldNoReader(t *testing.T, w way) {
	const most = 16
	n := startWay(t, w, Config{MaxReaders: most}, newLobby())
	frame := frameOf(0x81, `{"op":"like","id":"l","count":1}`)
	var halves []*rawConn
	for i := range 2 * most {
		c, s := rawJoin(t, n)
		untilResting(t, s)
		c.write(t, frame[:1+i])
		halves = append(halves, c)
	}
	c, _ := rawJoin(t, n)
	c.write(t, masked(opPing, []byte("here")))
	if f := c.readFrame(t); f.op != opPong || string(f.payload) != "here" {
		t.Fatalf("got %+v", f)
	}
	n.lobby.mu.Lock()
	sessions := n.lobby.sessions
	n.lobby.mu.Unlock()
	for _, s := range sessions {
		untilResting(t, s)
	}
	for i, c := range halves {
		c.write(t, frame[1+i:])
		if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "l" {
			t.Fatalf("got %+v", e)
		}
	}
}

// What half messages keep has a bound over all sessions; small ones are not counted, and what is finished counts no more.
func TestHalfMessagesAreBounded(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	long := frameOf(0x81, `{"op":"like","id":"l","count":1,"pad":"`+strings.Repeat("x", 8000)+`"}`)
	first, s := rawJoin(t, n)
	first.write(t, long[:4000])
	eventually(t, func() bool { return n.kept.Load() > 0 })
	untilResting(t, s)
	first.write(t, long[4000:])
	if e := decode(t, first.readFrame(t).payload)[0]; e.ID != "l" {
		t.Fatalf("got %+v", e)
	}
	eventually(t, func() bool { return n.kept.Load() == 0 })
	n.kept.Store(maxKept)
	small, s := rawJoin(t, n)
	small.write(t, long[:900])
	untilResting(t, s)
	large, _ := rawJoin(t, n)
	large.write(t, long[:4000])
	if f := large.readFrame(t); f.code() != 4003 {
		t.Fatalf("got %+v", f)
	}
	large.Close()
	eventually(t, func() bool { return n.kept.Load() == maxKept })
}

// However many sessions have input, no more than the bound are read at a time; the others' input waits, and none is lost. A
// session can be closed meanwhile.
func TestReadersAreBounded(t *testing.T) {
	const most, viewers = 5, 40
	l := newLobby()
	release := make(chan struct{})
	var at, peak atomic.Int32
	l.receive = func(s *Session, r *protocol.Request) {
		peak.Store(max(peak.Load(), at.Add(1)))
		<-release
		at.Add(-1)
		s.Control(protocol.AppendAck(nil, protocol.Ack{ID: r.ID, Code: protocol.OK}, s.Lang()))
	}
	n := startNode(t, Config{MaxReaders: most}, l)
	var clients []*rawConn
	var sessions []*Session
	for range viewers {
		c, s := rawJoin(t, n)
		untilResting(t, s)
		clients, sessions = append(clients, c), append(sessions, s)
	}
	for _, c := range clients {
		c.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose","count":1}`)))
	}
	eventually(t, func() bool { return at.Load() == most })
	quiet := 0
	for _, s := range sessions {
		s.mu.Lock()
		if s.turn.rests() {
			quiet++
		}
		s.mu.Unlock()
	}
	if quiet != viewers-most {
		t.Fatalf("%d sessions rest", quiet)
	}
	c, s := clients[viewers-1], sessions[viewers-1]
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	if f := c.readFrame(t); f.code() != 4004 {
		t.Fatalf("got %+v", f)
	}
	close(release)
	for _, c := range clients[:viewers-1] {
		if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "g" {
			t.Fatalf("got %+v", e)
		}
	}
	if got := peak.Load(); got > most {
		t.Fatalf("%d at a time", got)
	}
}

// A hundred viewers who stop reading cost what their queues may hold, which they share, and little else.
func TestFrozenReadersMemory(t *testing.T) {
	const frozen, ticks = 100, 400
	n := startNode(t, Config{WriteTimeout: time.Minute}, newLobby())
	var sessions []*Session
	for range frozen {
		_, s := rawJoin(t, n)
		untilResting(t, s)
		sessions = append(sessions, s)
	}
	var before, after runtime.MemStats
	settled(&before)
	for i := range ticks { // 8 MB, far more than sockets and queues hold
		frame := danmaku(fmt.Sprint(i, strings.Repeat("x", 20<<10)))
		for _, s := range sessions {
			s.Deliver(frame)
		}
	}
	settled(&after)
	held := 0
	for _, s := range sessions {
		st := s.Stats()
		if st.QueuedBytes > n.cfg.QueueBytes || st.Missed == 0 {
			t.Fatalf("%+v", st)
		}
		held = max(held, st.QueuedBytes)
	}
	// Sockets freeze at different frames, so that all together hold more than one queue.
	shared := 2 * held
	each := (int(after.HeapAlloc+after.StackInuse) - int(before.HeapAlloc+before.StackInuse) - shared) / frozen
	t.Logf("%d bytes for each beyond what they share, at most %d queued", each, held)
	if each > 24<<10 {
		t.Fatalf("%d bytes for each", each)
	}
}
