package conn

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

func TestConversation(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	ws, s := n.join(t)
	if ws.Subprotocol() != Subprotocol {
		t.Fatalf("subprotocol %q", ws.Subprotocol())
	}
	send(t, ws, `{"op":"danmaku","id":"c7","text":"hi"}`)
	if got := receive(t, ws)[0]; got.Ev != "ack" || got.ID != "c7" || got.Code != 200 {
		t.Fatalf("got %+v", got)
	}
	s.Deliver(danmaku("hello"))
	if got := receive(t, ws)[0]; got.Ev != "danmaku" || got.Text != "hello" {
		t.Fatalf("got %+v", got)
	}
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	s.Close(protocol.Refusal{Code: protocol.CloseAbuse}) // too late
	if code, reason := closeOf(t, ws); code != 4004 || reason != `{"reason":"kicked"}` {
		t.Fatalf("closed with %d %s", code, reason)
	}
	n.running.Wait()
	if n.lobby.leaves() != 1 {
		t.Fatalf("%d leaves", n.lobby.leaves())
	}
	s.Deliver(danmaku("after the end"))
	s.Control([]byte(`{"ev":"online","count":1}`))
}

// One frame, one answer: an ack where the id could be read, else an error.
func TestEachFrameIsAnsweredOnce(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	ws, _ := n.join(t)
	for _, c := range []struct{ frame, ev, id, reason string }{
		{`{"op":"like","id":"a","count":5}`, "ack", "a", ""},
		{`{"op":"like","id":"b","count":500}`, "ack", "b", "bad_request"},
		{`{"op":"dance","id":"c"}`, "ack", "c", "bad_request"},
		{`{"op":"hello","id":"d","room":"demo"}`, "ack", "d", "bad_request"},
		{`{"op":"danmaku","text":"no id"}`, "error", "", "bad_request"},
		{`{"op":"danmaku","id":"an id with spaces","text":"x"}`, "error", "", "bad_request"},
		{`{"op":`, "error", "", "bad_request"},
		{``, "error", "", "bad_request"},
		{`[]`, "error", "", "bad_request"},
		{`{"op":"ping","id":"p"}`, "pong", "p", ""},
		{`{"op":"ping"}`, "pong", "", ""},
	} {
		send(t, ws, c.frame)
		got := receive(t, ws)
		if len(got) != 1 || got[0].Ev != c.ev || got[0].ID != c.id || got[0].Reason != c.reason {
			t.Errorf("%s: got %+v", c.frame, got)
		}
	}
}

func TestBadFramesEndTheSession(t *testing.T) {
	exact := `{"op":"ping","id":"x","pad":"` + strings.Repeat("y", protocol.MaxRequestBytes)
	exact = exact[:protocol.MaxRequestBytes-2] + `"}`
	for _, c := range []struct {
		name   string
		typ    websocket.MessageType
		frame  []byte
		code   websocket.StatusCode
		reason string
	}{
		{"at the limit", websocket.MessageText, []byte(exact), 0, ""},
		{"too big", websocket.MessageText, []byte(exact + " "), 1009, `{"reason":"too_big"}`},
		{"far too big", websocket.MessageText, bytes.Repeat([]byte("x"), 1<<20), 1009, `{"reason":"too_big"}`},
		{"binary", websocket.MessageBinary, []byte(`{"op":"ping"}`), 1008, `{"reason":"not_text"}`},
		{"invalid UTF-8", websocket.MessageText, []byte("{\"op\":\"ping\",\"id\":\"\xff\"}"), 1007, `{"reason":"invalid_utf8"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, Config{}, newLobby())
			ws, _ := n.join(t)
			// A frame that is refused half-way may not be written to its end.
			err := ws.Write(testCtx(t), c.typ, c.frame)
			if c.code == 0 {
				if got := receive(t, ws)[0]; err != nil || got.Ev != "pong" || got.ID != "x" {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if code, reason := closeOf(t, ws); code != c.code || reason != c.reason {
				t.Fatalf("closed with %d %s", code, reason)
			}
			if n.running.Wait(); n.lobby.leaves() != 1 {
				t.Fatalf("%d leaves", n.lobby.leaves())
			}
		})
	}
}

func TestUnmaskedFrameIsAProtocolError(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	c := rawDial(t, n, "")
	c.write(t, []byte{0x81, 2, '{', '}'})
	if got := c.readFrame(t); got.op != opClose || got.code() != 1002 {
		t.Fatalf("got %+v", got)
	}
	if !slices.Contains(protocol.CloseCodes(), protocol.CloseCode(1002)) {
		t.Error("1002 is not in the list that clients know")
	}
}

// A client may send its first frames in one segment with the handshake; net/http has read them by the time of the upgrade.
func TestBytesReadAheadAreKept(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	c := rawDial(t, n, string(masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`)))+
		string(masked(opText, []byte(`{"op":"ping","id":"2"}`))))
	for _, want := range []string{"welcome", "pong"} {
		if got := c.readFrame(t); decode(t, got.payload)[0].Ev != want {
			t.Fatalf("got %s, want %s", got.payload, want)
		}
	}
}

func TestHelloComesFirst(t *testing.T) {
	for _, c := range []struct{ frame, ev, id string }{
		{`{"op":"ping","id":"p"}`, "ack", "p"},
		{`{"op":"danmaku","id":"c1","text":"x"}`, "ack", "c1"},
		{`{"op":"hello","id":"h","room":"no such thing!"}`, "ack", "h"},
		{`nonsense`, "error", ""},
	} {
		n := startNode(t, Config{}, newLobby())
		ws := n.dial(t, nil)
		send(t, ws, c.frame)
		if got := receive(t, ws)[0]; got.Ev != c.ev || got.ID != c.id || got.Code != 400 {
			t.Errorf("%s: got %+v", c.frame, got)
		}
		if code, _ := closeOf(t, ws); code != 4002 {
			t.Errorf("%s: closed with %d", c.frame, code)
		}
	}
}

// A refused hello is answered like any frame, then closed with the code that tells a client whether to come back.
func TestRefusedHelloIsAnsweredAndClosed(t *testing.T) {
	l := newLobby()
	l.hello = func(*Session, *protocol.Request) (Seat, *protocol.Refusal) {
		return nil, &protocol.Refusal{Code: protocol.CloseToken, Detail: "expired"}
	}
	n := startNode(t, Config{}, l)
	ws := n.dial(t, nil)
	send(t, ws, `{"op":"hello","id":"1","room":"demo","token":"secret-token"}`)
	if got := receive(t, ws)[0]; got.Ev != "ack" || got.ID != "1" || got.Code != 401 {
		t.Errorf("answered with %+v", got)
	}
	code, reason := closeOf(t, ws)
	if code != 4401 || strings.Contains(reason, "secret-token") {
		t.Fatalf("closed with %d %s", code, reason)
	}
	if l.leaves() != 0 {
		t.Fatal("left a seat that it never had")
	}
}

// What a room sends between seating a session and opening it comes after the welcome, and nothing of it is lost.
func TestDeliveriesAreHeldUntilOpen(t *testing.T) {
	l := newLobby()
	l.hello = func(s *Session, _ *protocol.Request) (Seat, *protocol.Refusal) {
		s.Deliver(danmaku("one"))
		s.Control([]byte(`{"ev":"muted","seconds":5}`))
		s.Deliver(danmaku("two"))
		s.Open([]byte(`{"ev":"welcome"},{"ev":"danmaku","text":"zero"}`))
		return &testSeat{l: l, s: s}, nil
	}
	n := startNode(t, Config{}, l)
	ws := n.dial(t, nil)
	send(t, ws, `{"op":"hello","id":"1","room":"demo"}`)
	var got []string
	for len(got) < 5 {
		for _, e := range receive(t, ws) {
			got = append(got, e.Ev+e.Text)
		}
	}
	if want := "[welcome danmakuzero muted danmakuone danmakutwo]"; fmt.Sprint(got) != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestPanicInASeatEndsThatSessionAlone(t *testing.T) {
	l := newLobby()
	l.receive = func(_ *Session, r *protocol.Request) { panic("a fault of the room") }
	n := startNode(t, Config{}, l)
	bad, _ := n.join(t)
	good, _ := n.join(t)
	send(t, bad, `{"op":"like","id":"a"}`)
	if code, _ := closeOf(t, bad); code != 1011 {
		t.Fatalf("closed with %d", code)
	}
	send(t, good, `{"op":"ping","id":"a"}`)
	if got := receive(t, good)[0]; got.Ev != "pong" {
		t.Fatalf("got %+v", got)
	}
}

func TestLanguage(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	for _, c := range []struct{ header, hello, want string }{
		{"", "", "en"}, {"zh-CN,zh;q=0.9", "", "zh"}, {"zh-CN", "en", "en"}, {"", "zh", "zh"},
	} {
		ws := n.dial(t, &websocket.DialOptions{HTTPHeader: map[string][]string{"Accept-Language": {c.header}}})
		send(t, ws, `{"op":"hello","id":"1","room":"demo","lang":"`+c.hello+`"}`)
		if s := <-n.lobby.arrived; s.Lang().String() != c.want {
			t.Errorf("%+v: got %v", c, s.Lang())
		}
	}
}
