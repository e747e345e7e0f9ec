package conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liveroom/conn/socket"
	"liveroom/protocol"
)

// untilResting waits until a session has no goroutine.
func untilResting(t testing.TB, s *Session) {
	t.Helper()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.turn.rests()
	})
}

// way is how sessions rest: with a poller, or as where there is none; below TLS or not.
type way struct{ polled, tls bool }

// eachWay runs a test in each, but without a poller below TLS, where one part does not see the other.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	for _, w := range []way{{true, false}, {false, false}, {true, true}} {
		t.Run(fmt.Sprintf("polled=%v,tls=%v", w.polled, w.tls), func(t *testing.T) { test(t, w) })
	}
}

func startWay(t *testing.T, w way, cfg Config, l *testLobby) *node {
	t.Helper()
	n := serveNode(t, cfg, l, w.tls)
	if !w.polled {
		n.once.Do(func() {})
	}
	return n
}

// tcpOf is the connection of a client below TLS.
func tcpOf(c net.Conn) *net.TCPConn {
	bare, _ := socket.Beneath(c)
	return bare.(*net.TCPConn)
}

// Sessions that say nothing cost no goroutine and no buffer: a few readers wait for all of them.
func TestIdleSessionsHaveNoGoroutines(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", tls), func(t *testing.T) { idleSessionsHaveNoGoroutines(t, way{true, tls}) })
	}
}

func idleSessionsHaveNoGoroutines(t *testing.T, w way) {
	n := startWay(t, w, Config{}, newLobby())
	_, first := rawJoin(t, n)
	untilResting(t, first)
	before := runtime.NumGoroutine()
	for range 300 {
		_, s := rawJoin(t, n)
		untilResting(t, s)
		s.mu.Lock()
		buffered := s.reader.msg != nil
		s.mu.Unlock()
		if buffered {
			t.Fatal("it rests and keeps a buffer")
		}
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+int(n.readers.rest) })
}

// wrapping is a listener whose connections are wrapped until they are hijacked.
type wrapping struct{ net.Listener }

type wrapped struct{ net.Conn }

func (w wrapping) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	return wrapped{c}, err
}

func (w wrapped) Bare() net.Conn { return w.Conn }

// A viewer whose listener had to read something first costs no more than another.
func TestAWrappedConnectionRests(t *testing.T) {
	a, err := NewAcceptor(Config{}, newLobby())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(a)
	srv.Listener = wrapping{srv.Listener}
	srv.Start()
	defer srv.Close()
	defer func() { _ = a.Shutdown(testCtx(t), 0) }() // its one client may not answer
	addr := strings.TrimPrefix(srv.URL, "http://")
	_, s := rawJoin(t, &node{Acceptor: a, lobby: a.lobby.(*testLobby), url: "ws://" + addr, addr: addr})
	untilResting(t, s)
	if s.wire.fd < 0 {
		t.Error("it is written to by net.Conn")
	}
}

// Whatever a client sends and wherever the network cuts it, nothing is lost, doubled or mixed up with another's, and pings
// are answered between the parts of a message.
func TestInputInPieces(t *testing.T) { eachWay(t, inputInPieces) }

func inputInPieces(t *testing.T, w way) {
	l := newLobby()
	n := startWay(t, w, Config{}, l)
	var clients []*rawConn
	for range 3 {
		c, s := rawJoin(t, n)
		_ = tcpOf(c.Conn).SetNoDelay(true)
		untilResting(t, s)
		clients = append(clients, c)
	}
	id := 0
	rapid.Check(t, func(t *rapid.T) {
		c := clients[rapid.IntRange(0, len(clients)-1).Draw(t, "client")]
		var stream []byte
		var want []string
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			id++
			stream = append(stream, piece(t, id)...)
			want = append(want, fmt.Sprint(id))
		}
		for len(stream) > 0 {
			k := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			c.write(t, stream[:k])
			stream = stream[k:]
			if rapid.Bool().Draw(t, "yield") {
				runtime.Gosched()
			}
		}
		for len(want) > 0 {
			f := c.readFrame(t)
			if f.op == opPong {
				continue
			}
			if e := decode(t, f.payload)[0]; e.ID != want[0] {
				t.Fatalf("got %+v, want %s", e, want[0])
			}
			want = want[1:]
		}
	})
}

// piece is one message in up to three fragments with control frames between them.
func piece(t *rapid.T, id int) []byte {
	text := []byte(fmt.Sprintf(`{"op":"danmaku","id":"%d","text":"%s"}`, id, strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 480, 600, 5000}).Draw(t, "text"))))
	var out []byte
	op := byte(opText)
	for range rapid.IntRange(0, 2).Draw(t, "fragments") {
		k := rapid.IntRange(0, len(text)).Draw(t, "fragment")
		f := masked(op, text[:k])
		f[0] &^= 0x80
		out = append(out, f...)
		text, op = text[k:], 0
		if rapid.Bool().Draw(t, "control") {
			out = append(out, masked(rapid.SampledFrom([]byte{opPing, opPong}).Draw(t, "op"), []byte("beat"))...)
		}
	}
	return append(out, masked(op, text)...)
}

// The end of a session that rests: the room is left at once, the code arrives although input was never read, and a silent
// peer is gone after the close timeout.
func TestClosingASessionThatRests(t *testing.T) { eachWay(t, closingASessionThatRests) }

func closingASessionThatRests(t *testing.T, w way) {
	n := startWay(t, w, Config{CloseTimeout: 300 * time.Millisecond}, newLobby())
	for _, last := range []string{"", "half a frame", "closed behind its input"} {
		c, s := rawJoin(t, n)
		untilResting(t, s)
		left := n.lobby.leaves()
		switch last {
		case "half a frame":
			c.write(t, masked(opText, []byte(`{"op":"like","id":"l","count":1}`))[:9])
		case "closed behind its input":
			c.write(t, bytes.Repeat(masked(opPong, nil), 2000))
		}
		start := time.Now()
		s.Close(protocol.Refusal{Code: protocol.CloseKicked})
		eventually(t, func() bool { return n.lobby.leaves() == left+1 })
		if f := c.readFrame(t); f.code() != 4004 {
			t.Fatalf("%s: got %+v", last, f)
		}
		if last == "closed behind its input" {
			c.write(t, masked(opText, []byte(`{"op":"like","id":"l","count":1}`)))
		}
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %v", last, err)
		}
		n.running.Wait()
		if d := time.Since(start); d < 300*time.Millisecond-2*n.wheel.step {
			t.Fatalf("%s: gone after %v", last, d)
		}
	}
	if got := closes(n, "4004"); got != 3 {
		t.Fatalf("%d closes", got)
	}
}

// A client that echoes the close frame, or sends the first one, and keeps its side of TCP open, is not waited for.
func TestAfterBothCloseFramesNobodyWaits(t *testing.T) { eachWay(t, afterBothCloseFramesNobodyWaits) }

func afterBothCloseFramesNobodyWaits(t *testing.T, w way) {
	n := startWay(t, w, Config{CloseTimeout: time.Hour}, newLobby())
	c, s := rawJoin(t, n)
	untilResting(t, s)
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	if f := c.readFrame(t); f.code() != 4004 {
		t.Fatalf("got %+v", f)
	}
	untilResting(t, s)
	echo := masked(opClose, []byte{0x0f, 0xa4})
	c.write(t, echo[:5]) // in two pieces, the session rests between them
	c.write(t, echo[5:])
	n.running.Wait()

	c, s = rawJoin(t, n)
	untilResting(t, s)
	c.write(t, append(masked(opPing, nil), masked(opClose, []byte{3, 232})...))
	n.running.Wait()
	if f := c.readFrame(t); f.op != opPong {
		t.Fatalf("got %+v", f)
	}
	if f := c.readFrame(t); f.code() != 1000 {
		t.Fatalf("got %+v", f)
	}
}

// Peers that end their stream or reset it while the session rests are noticed at once.
func TestAPeerLeavesASessionThatRests(t *testing.T) { eachWay(t, aPeerLeavesASessionThatRests) }

func aPeerLeavesASessionThatRests(t *testing.T, w way) {
	n := startWay(t, w, Config{Heartbeat: time.Hour}, newLobby())
	for i, end := range []func(net.Conn) error{
		func(c net.Conn) error { return tcpOf(c).CloseWrite() },
		net.Conn.Close,
		func(c net.Conn) error { return errors.Join(tcpOf(c).SetLinger(0), tcpOf(c).Close()) },
		func(c net.Conn) error { // what is sent last is still handled
			_, err := c.Write(masked(opText, []byte(`{"op":"like","id":"l","count":1}`)))
			return errors.Join(err, c.(interface{ CloseWrite() error }).CloseWrite())
		},
	} {
		c, s := rawJoin(t, n)
		untilResting(t, s)
		if err := end(c.Conn); err != nil {
			t.Fatal(err)
		}
		n.running.Wait()
		if got := n.lobby.leaves(); got != i+1 {
			t.Fatalf("%d leaves", got)
		}
	}
}

// Half a frame is waited for as long as a message may take, and then the peer is gone.
func TestHalfAFrameEndsASessionThatRested(t *testing.T) { eachWay(t, halfAFrameEndsASessionThatRested) }

func halfAFrameEndsASessionThatRested(t *testing.T, w way) {
	n := startWay(t, w, Config{Heartbeat: 100 * time.Millisecond, PongTimeout: 100 * time.Millisecond, MessageTimeout: 100 * time.Millisecond}, newLobby())
	for _, part := range [][]byte{
		masked(opText, []byte(`{"op":"like"}`))[:1],
		masked(opText, []byte(`{"op":"like"}`))[:12],
		masked(opPong, []byte("half"))[:8],
		append([]byte{0x01, 0x80 | 1, 0, 0, 0, 0, '{'}, masked(opPong, nil)...),
	} {
		c, s := rawJoin(t, n)
		untilResting(t, s)
		c.write(t, part)
		n.running.Wait()
	}
}

// Who goes on sending behind its close frame is cut off.
func TestAFloodBehindTheCloseEnds(t *testing.T) {
	n := startNode(t, Config{CloseTimeout: time.Hour}, newLobby())
	c, s := rawJoin(t, n)
	untilResting(t, s)
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	flood := bytes.Repeat(masked(opPong, nil), 10_000)
	for sent := 0; ; sent += len(flood) {
		if _, err := c.Write(flood); err != nil {
			break
		}
		if sent > 64<<20 {
			t.Fatal("it is still read")
		}
	}
	n.running.Wait()
}

// Descriptors are used again at once by the next socket; an event for the one before wakes nobody wrongly, and answers go
// where they belong.
func TestDescriptorsAreUsedAgain(t *testing.T) { eachWay(t, descriptorsAreUsedAgain) }

func descriptorsAreUsedAgain(t *testing.T, w way) {
	l := newLobby()
	var byID sync.Map
	l.hello = func(s *Session, r *protocol.Request) (Seat, *protocol.Refusal) {
		byID.Store(strings.Clone(r.ID), s)
		return l.seat(s), nil
	}
	n := startWay(t, w, Config{CloseTimeout: 100 * time.Millisecond}, l)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for round := range 60 {
				nc := rawSocket(t, n)
				id := fmt.Sprintf("%d-%d", worker, round)
				c := rawUpgrade(t, nc, string(masked(opText, []byte(`{"op":"hello","id":"`+id+`","room":"demo"}`))))
				c.readFrame(t)
				v, _ := byID.Load(id)
				s := v.(*Session)
				c.write(t, masked(opText, []byte(`{"op":"like","id":"`+id+`","count":1}`)))
				if e := decode(t, c.readFrame(t).payload)[0]; e.ID != id {
					t.Errorf("got %+v, want %s", e, id)
				}
				switch round % 3 {
				case 0:
					s.Close(protocol.Refusal{Code: protocol.CloseKicked})
				case 1:
					_ = tcpOf(nc).SetLinger(0)
				case 2:
					s.abort()
				}
				nc.Close()
			}
		})
	}
	wg.Wait()
	n.running.Wait()
	if !w.polled {
		return
	}
	if got := n.poller.Len(); got != 0 {
		t.Errorf("%d descriptors are remembered", got)
	}
}

// Without a poller a session that rests holds no buffer and a goroutine of 2 KB.
func TestRestingWithoutAPoller(t *testing.T) {
	const viewers = 400
	n := startWay(t, way{}, Config{}, newLobby())
	var before, after runtime.MemStats
	_, s := rawJoin(t, n)
	untilResting(t, s)
	settled(&before)
	for range viewers {
		_, s := rawJoin(t, n)
		untilResting(t, s)
		s.mu.Lock()
		rests := s.reader.raw != nil && s.reader.msg == nil
		s.mu.Unlock()
		if !rests {
			t.Fatal("it does not rest")
		}
	}
	settled(&after)
	// 2 KiB, of which some have grown to 4 while they said hello; a reader's own would be 8
	if each := int(after.StackInuse-before.StackInuse) / viewers; each > 5<<10 {
		t.Fatalf("a stack of %d bytes", each)
	}
}

// A kernel that watches no more descriptors leaves the session a goroutine.
func TestASessionThatCantBeWatched(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	n.startPoller()
	other, err := socket.NewPoller[*Session]()
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	n.poller.Close()
	n.poller = other
	c, _ := rawJoin(t, n)
	c.write(t, masked(opText, []byte(`{"op":"like","id":"l","count":1}`)))
	if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "l" {
		t.Fatalf("got %+v", e)
	}
}
