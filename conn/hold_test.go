package conn

import (
	"strings"
	"sync/atomic"
	"testing"

	"liveroom/protocol"
)

// What is held goes with whatever is sent next, ahead of it; only what asks for it sends nothing else.
func TestHeldGoesWithTheNext(t *testing.T) {
	ack := func(id string) []byte {
		return protocol.AppendAck(nil, protocol.Ack{ID: id, Code: protocol.OK}, protocol.English)
	}
	for _, c := range []struct {
		name string
		next func(*Session)
		want []string // frames, as the kinds of their events
	}{
		{"broadcast", func(s *Session) { s.Deliver(danmaku("x")) }, []string{"ack ack", "danmaku"}},
		{"answer", func(s *Session) { s.Control(ack("c")) }, []string{"ack ack ack"}},
		{"release", (*Session).Release, []string{"ack ack"}},
		{"too much", func(s *Session) { s.Hold([]byte(`{"ev":"pong","id":"` + strings.Repeat("x", maxHeldBytes) + `"}`)) }, []string{"ack ack pong"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, Config{}, newLobby())
			ws, s := n.join(t)
			frames := n.frames()
			s.Hold(ack("a"))
			s.Hold(ack("b"))
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
			if got := n.frames(); got != frames {
				t.Fatalf("%d frames were sent before it was time", got-frames)
			}
			c.next(s)
			for _, want := range c.want {
				var kinds []string
				for _, e := range receive(t, ws) {
					kinds = append(kinds, e.Ev)
				}
				if got := strings.Join(kinds, " "); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			s.Release() // nothing is left
			if got := n.frames() - frames; got != uint64(len(c.want)) {
				t.Errorf("%d frames counted, want %d", got, len(c.want))
			}
		})
	}
}

// A session that is closed sends what it holds before the close frame.
func TestHeldGoesBeforeTheClose(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	c, s := rawJoin(t, n)
	s.Hold(protocol.AppendAck(nil, protocol.Ack{ID: "a", Code: protocol.OK}, protocol.English))
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	if f := c.readFrame(t); f.op != opText || !strings.Contains(string(f.payload), `"id":"a"`) {
		t.Fatalf("got %+v", f)
	}
	if f := c.readFrame(t); f.op != opClose || f.code() != 4004 {
		t.Fatalf("got %+v", f)
	}
	s.Hold([]byte(`{"ev":"pong"}`))
	if s.wire.held.Len() > 0 {
		t.Error("holds events behind a close frame")
	}
}

func (n *node) frames() uint64 {
	return n.cfg.Metrics.sum(func(c *counters) *atomic.Uint64 { return &c.frames })
}
