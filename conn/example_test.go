package conn_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/coder/websocket"

	"liveroom/conn"
	"liveroom/protocol"
)

// porch seats everybody and lets them say nothing.
type porch struct{}

func (porch) Hello(_ context.Context, s *conn.Session, r *protocol.Request) (conn.Seat, *protocol.Refusal) {
	if r.Room != "demo" {
		return nil, &protocol.Refusal{Code: protocol.CloseNoRoom}
	}
	s.Open(protocol.AppendAnnounce(nil, "welcome to "+r.Room))
	return seat{s}, nil
}

type seat struct{ s *conn.Session }

func (t seat) Receive(r *protocol.Request) {
	t.s.Control(protocol.AppendAck(nil, protocol.Refuse(r.ID, &protocol.Error{Reason: protocol.ReasonForbidden}), t.s.Lang()))
}

func (seat) Leave() {}

// An acceptor is the handler of GET /ws; the lobby decides who gets a seat.
func Example() {
	acceptor, err := conn.NewAcceptor(conn.Config{}, porch{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(acceptor)
	defer server.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseNow()
	for _, frame := range []string{`{"op":"hello","id":"1","room":"demo"}`, `{"op":"danmaku","id":"2","text":"hi"}`} {
		if err := client.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			fmt.Println(err)
			return
		}
		_, answer, err := client.Read(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(answer))
	}

	stopped := make(chan error)
	go func() { stopped <- acceptor.Shutdown(ctx, 0) }()
	_, _, err = client.Read(ctx)
	fmt.Println(websocket.CloseStatus(err) == websocket.StatusGoingAway, <-stopped)
	// Output:
	// [{"ev":"announce","text":"welcome to demo"}]
	// [{"ev":"ack","id":"2","code":403,"reason":"forbidden","msg":"You may not do this here"}]
	// true <nil>
}
