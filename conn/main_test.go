package conn

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"liveroom/conn/socket"
	"liveroom/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testLobby seats everybody, opens the session with one event, and keeps what it saw.
type testLobby struct {
	hello   func(*Session, *protocol.Request) (Seat, *protocol.Refusal) // nil: seat and open
	receive func(*Session, *protocol.Request)                           // nil: ack

	mu       sync.Mutex
	sessions []*Session
	left     int
	arrived  chan *Session
}

func newLobby() *testLobby { return &testLobby{arrived: make(chan *Session, 20_000)} }

func (l *testLobby) Hello(_ context.Context, s *Session, r *protocol.Request) (Seat, *protocol.Refusal) {
	if l.hello != nil {
		return l.hello(s, r)
	}
	return l.seat(s), nil
}

// seat seats a session and opens it.
func (l *testLobby) seat(s *Session) Seat {
	l.mu.Lock()
	l.sessions = append(l.sessions, s)
	l.mu.Unlock()
	s.Open([]byte(`{"ev":"welcome","id":"1"}`))
	l.arrived <- s
	return &testSeat{l: l, s: s}
}

func (l *testLobby) leaves() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

type testSeat struct {
	l    *testLobby
	s    *Session
	gone bool
}

func (t *testSeat) Receive(r *protocol.Request) {
	if t.l.receive != nil {
		t.l.receive(t.s, r)
		return
	}
	t.s.Control(protocol.AppendAck(nil, protocol.Ack{ID: r.ID, Code: protocol.OK}, t.s.Lang()))
}

func (t *testSeat) Leave() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.gone {
		panic("left twice")
	}
	t.gone = true
	t.l.left++
}

// node is an acceptor behind a real HTTP server on a port of its own.
type node struct {
	*Acceptor
	lobby *testLobby
	url   string // ws://…
	addr  string // host:port
	tls   bool
}

func startNode(t testing.TB, cfg Config, l *testLobby) *node {
	t.Helper()
	return serveNode(t, cfg, l, false)
}

func serveNode(t testing.TB, cfg Config, l *testLobby, tls bool) *node {
	t.Helper()
	a, err := NewAcceptor(cfg, l)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(a)
	if tls {
		srv.Listener = socket.Carry(srv.Listener)
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.Shutdown(ctx, 0); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		srv.Close()
	})
	return &node{Acceptor: a, lobby: l, url: "ws" + strings.TrimPrefix(srv.URL, "http"), addr: srv.Listener.Addr().String(), tls: tls}
}

// failer is what [testing.TB] and [rapid.T] have in common.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never came to be")
		}
	}
}

func testCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// dial connects without a hello.
func (n *node) dial(t testing.TB, opts *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(testCtx(t), n.url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.CloseNow() })
	return ws
}

// join connects, says hello and reads the welcome.
func (n *node) join(t testing.TB) (*websocket.Conn, *Session) {
	t.Helper()
	ws := n.dial(t, &websocket.DialOptions{Subprotocols: []string{Subprotocol}})
	send(t, ws, `{"op":"hello","id":"1","room":"demo"}`)
	if got := receive(t, ws); got[0].Ev != "welcome" {
		t.Fatalf("first event %+v", got[0])
	}
	return ws, <-n.lobby.arrived
}

func send(t testing.TB, ws *websocket.Conn, frame string) {
	t.Helper()
	if err := ws.Write(testCtx(t), websocket.MessageText, []byte(frame)); err != nil {
		t.Fatal(err)
	}
}

// event is what tests look at.
type event struct {
	Ev      string `json:"ev"`
	ID      string `json:"id"`
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Scope   string `json:"scope"`
	Text    string `json:"text"`
	Danmaku int    `json:"danmaku"`
	Total   int64  `json:"total"`
	Seq     uint64 `json:"seq"`
	Msg     string `json:"msg"`
}

func receive(t testing.TB, ws *websocket.Conn) []event {
	t.Helper()
	typ, b, err := ws.Read(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	if typ != websocket.MessageText {
		t.Fatalf("frame type %v", typ)
	}
	return decode(t, b)
}

func decode(t failer, b []byte) []event {
	t.Helper()
	var out []event
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return out
}

// closeOf reads until the close frame.
func closeOf(t testing.TB, ws *websocket.Conn) (websocket.StatusCode, string) {
	t.Helper()
	for {
		_, _, err := ws.Read(testCtx(t))
		if err == nil {
			continue
		}
		var ce websocket.CloseError
		if !errors.As(err, &ce) {
			t.Fatalf("no close frame: %v", err)
		}
		return ce.Code, ce.Reason
	}
}

func danmaku(text string) *protocol.Broadcast {
	var b protocol.Batch
	b.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: text, TS: 1}))
	return b.Build()
}
