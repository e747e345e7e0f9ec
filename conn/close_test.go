package conn

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/protocol"
)

// Kicking a thousand peers that neither read nor answer takes the caller no time; all leave the room at once and are gone
// after the close timeout (coder/websocket#355: five seconds each, one after the other).
func TestKickingSilentPeersBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		var clients []*rawConn
		var sessions []*Session
		for range 1000 {
			c, s := b.join(t)
			clients, sessions = append(clients, c), append(sessions, s)
		}
		start := time.Now()
		for _, s := range sessions {
			s.Close(protocol.Refusal{Code: protocol.CloseKicked})
		}
		if d := time.Since(start); d != 0 {
			t.Fatalf("the call took %v", d)
		}
		synctest.Wait()
		if got := b.lobby.leaves(); got != 1000 {
			t.Fatalf("%d of 1000 have left the room", got)
		}
		b.running.Wait()
		if d := time.Since(start); d > 5*time.Second+slack {
			t.Fatalf("gone after %v", d)
		}
		for _, c := range clients {
			c.Close()
		}
		b.stop(t)
	})
}

// The same with descriptors.
func TestKickingSilentSockets(t *testing.T) {
	n := startNode(t, Config{CloseTimeout: 200 * time.Millisecond}, newLobby())
	var sessions []*Session
	for range 100 {
		_, s := rawJoin(t, n)
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	}
	n.running.Wait()
	if got := n.lobby.leaves(); got != 100 {
		t.Fatalf("%d leaves", got)
	}
}

// Close, Deliver, Control and the peer's own end at the same time: one end, one leave, no write to a descriptor that has
// been given to somebody else.
func TestCloseFromManyGoroutines(t *testing.T) {
	n := startNode(t, Config{CloseTimeout: 200 * time.Millisecond}, newLobby())
	for range 30 {
		ws, s := n.join(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 20 {
					s.Deliver(danmaku("x"))
					s.Control([]byte(`{"ev":"online","count":1}`))
				}
				s.Close(protocol.Refusal{Code: protocol.CloseKicked})
				if i == 0 {
					s.abort()
				}
			})
		}
		wg.Go(func() { ws.CloseNow() })
		wg.Wait()
	}
	n.running.Wait()
	if got := n.lobby.leaves(); got != 30 {
		t.Fatalf("%d leaves", got)
	}
}

// Answers that were queued go before the close frame; broadcasts do not hold it up.
func TestCloseComesBehindAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		c, s := b.join(t)
		s.Deliver(danmaku("on the wire"))
		synctest.Wait()
		s.Deliver(danmaku("given up"))
		s.Control([]byte(`{"ev":"ack","id":"last"}`))
		s.Close(protocol.Refusal{Code: protocol.CloseToken})
		s.Deliver(danmaku("too late"))
		if e := decode(t, c.readFrame(t).payload)[0]; e.Text != "on the wire" {
			t.Fatalf("got %+v", e)
		}
		if e := decode(t, c.readFrame(t).payload)[0]; e.ID != "last" {
			t.Fatalf("got %+v", e)
		}
		if f := c.readFrame(t); f.code() != 4401 {
			t.Fatalf("got %+v", f)
		}
		c.Close()
		b.stop(t)
		m := b.cfg.Metrics
		if got := m.sum(func(c *counters) *atomic.Uint64 { return &c.dropped[protocol.ClassDanmaku][dropClosed] }); got != 1 {
			t.Fatalf("%d dropped", got)
		}
	})
}

func TestPeersLeaveCountsAsOne(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	for _, code := range []websocket.StatusCode{1000, 1001, 4001, 4999} {
		ws, _ := n.join(t)
		if err := ws.Close(code, "some reason"); err != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
	n.running.Wait()
	if got := closes(n, "1000"); got != 4 {
		t.Fatalf("%d ordinary leaves", got)
	}
}

// closes reads liveroom_closes_total{code}.
func closes(n *node, code string) uint64 {
	return uint64(testutil.ToFloat64(n.cfg.Metrics.closes.WithLabelValues(code)))
}

// golang/go#17721: on shutdown each client is told so, with a time to come back of its own; none sees a bare 1006.
func TestShutdownTellsEverybody(t *testing.T) {
	n := startNode(t, Config{Reconnect: time.Second}, newLobby())
	const clients = 500
	var conns []*websocket.Conn
	for range clients {
		ws, _ := n.join(t)
		conns = append(conns, ws)
	}
	times := make([]time.Duration, clients)
	var wg sync.WaitGroup
	for i, ws := range conns {
		wg.Go(func() {
			code, reason := closeOf(t, ws)
			if code != 1001 {
				t.Errorf("closed with %d", code)
				return
			}
			times[i] = reconnect(t, reason)
		})
	}
	if err := n.Shutdown(testCtx(t), 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	distinct := map[time.Duration]bool{}
	for _, d := range times {
		if d < time.Second || d >= 2*time.Second {
			t.Fatalf("come back in %v", d)
		}
		distinct[d] = true
	}
	if len(distinct) < clients/4 {
		t.Fatalf("%d different times for %d clients", len(distinct), clients)
	}
	if resp := upgradeRequest(t, n, http.Header{}); resp.StatusCode != 503 {
		t.Fatalf("after the end: %d", resp.StatusCode)
	}
}

// Two thousand closes spread over the window: no tenth of a second holds more than a tenth of them.
func TestShutdownSpreadsCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		const clients = 2000
		var mu sync.Mutex
		perTenth := map[int64]int{}
		var start time.Time
		var wg sync.WaitGroup
		for range clients {
			c, _ := b.join(t)
			wg.Go(func() {
				f := c.readFrame(t)
				if f.code() != 1001 {
					t.Errorf("got %+v", f)
				}
				mu.Lock()
				perTenth[time.Since(start).Milliseconds()/100]++
				mu.Unlock()
				c.Close()
			})
		}
		start = time.Now()
		if err := b.Shutdown(context.Background(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for tenth, n := range perTenth {
			if n > clients/10 {
				t.Errorf("%d closes in tenth %d", n, tenth)
			}
		}
		if len(perTenth) < 45 {
			t.Errorf("closes in %d of 50 tenths", len(perTenth))
		}
		b.srv.Close()
		b.serve.Wait()
	})
}

// Who is in a conversation leaves last, and who never said anything first.
func TestShutdownSendsTheIdleAwayFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		const clients = 20
		var wg sync.WaitGroup
		var mu sync.Mutex
		var order []int
		for i := range clients {
			c, _ := b.join(t)
			if said := i % 4; said > 0 { // the rest stay silent; a ping says nothing
				time.Sleep(time.Second)
				c.write(t, masked(opText, []byte(`{"op":"danmaku","id":"1","text":"hi"}`)))
				synctest.Wait()
			} else {
				c.write(t, masked(opText, []byte(`{"op":"ping","id":"1"}`)))
				c.readFrame(t)
			}
			wg.Go(func() {
				for f := c.readFrame(t); f.op != opClose; f = c.readFrame(t) { // answers
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				c.Close()
			})
		}
		if err := b.Shutdown(context.Background(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for i, who := range order {
			if silent := who%4 == 0; silent != (i < clients/4) || i > clients/4 && who < order[i-1] {
				t.Fatalf("they left in the order %v", order)
			}
		}
		b.srv.Close()
		b.serve.Wait()
	})
}

// When the time is over, what is left is cut.
func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{CloseTimeout: time.Hour}, newLobby())
		c, _ := b.join(t)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := b.Shutdown(ctx, time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		c.Close()
		b.srv.Close()
		b.serve.Wait()
	})
}

// While a node drains, newcomers are told to come back, and later ones get the status.
func TestDrainingTurnsNewcomersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		c1, _ := b.join(t)
		c2, _ := b.join(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.Shutdown(context.Background(), 4*time.Second); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Second)
		c3 := b.connect(t)
		if f := c3.readFrame(t); f.code() != 1001 {
			t.Fatalf("got %+v", f)
		}
		for _, c := range []*rawConn{c1, c2, c3} {
			wg.Go(func() { c.drain(); c.Close() })
		}
		wg.Wait()
		b.srv.Close()
		b.serve.Wait()
	})
}

// Behind the close frame comes the end of our half at once, since browsers wait for it (RFC 6455, section 7.1.1), and
// nothing else, whoever still delivers; the other half stays open, so that no reset overtakes the close frame.
func TestTheCloseFrameIsTheLastThing(t *testing.T) {
	n := startNode(t, Config{CloseTimeout: time.Minute}, newLobby())
	c, s := rawJoin(t, n)
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	s.Deliver(danmaku("too late"))
	s.Control([]byte(`{"ev":"online","count":1}`))
	if f := c.readFrame(t); f.code() != 4004 {
		t.Fatalf("got %+v", f)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if k, err := c.Read(make([]byte, 1)); k != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read %d bytes, %v", k, err)
	}
	s.mu.Lock()
	stage := s.stage
	s.mu.Unlock()
	if stage != closing {
		t.Fatalf("%v before the peer has closed", stage)
	}
	c.write(t, masked(opClose, []byte{0x0f, 0xa4}))
	c.Close()
	n.running.Wait()
	if got := closes(n, "4004"); got != 1 {
		t.Fatalf("%d closes", got)
	}
}
