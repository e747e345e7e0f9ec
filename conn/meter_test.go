package conn

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"liveroom/protocol"
)

// countingMeter lets burst frames pass, refuses those up to abuse, then closes.
type countingMeter struct {
	n            atomic.Int64
	burst, abuse int64
}

func (m *countingMeter) Frame(*Session) (*protocol.Error, *protocol.Refusal) {
	n := m.n.Add(1)
	if n <= m.burst {
		return nil, nil
	}
	err := &protocol.Error{Reason: protocol.ReasonRateLimited, Scope: "conn", Rule: "frames", RetryAfter: 50 * time.Millisecond}
	if n <= m.abuse {
		return err, nil
	}
	return err, &protocol.Refusal{Code: protocol.CloseAbuse, Reconnect: time.Minute}
}

func TestFramesAreSpentBeforeTheyAreRead(t *testing.T) {
	m := &countingMeter{burst: 2, abuse: 5}
	n := startNode(t, Config{Meter: m}, newLobby())
	ws, _ := n.join(t) // the first frame
	send(t, ws, `{"op":"like","id":"a"}`)
	if got := receive(t, ws)[0]; got.Code != 200 {
		t.Fatalf("got %+v", got)
	}
	for _, c := range []struct{ frame, ev, id string }{
		{`{"op":"like","id":"b"}`, "ack", "b"}, {`not even JSON`, "error", ""}, {`{"op":"no such op","id":"c"}`, "ack", "c"},
	} {
		send(t, ws, c.frame)
		got := receive(t, ws)[0]
		if got.Ev != c.ev || got.ID != c.id || got.Code != 429 || got.Scope != "conn" {
			t.Fatalf("%s: got %+v", c.frame, got)
		}
	}
	send(t, ws, `{"op":"like","id":"d"}`)
	if got := receive(t, ws)[0]; got.ID != "d" || got.Code != 429 {
		t.Fatalf("got %+v", got)
	}
	if code, reason := closeOf(t, ws); code != 4005 || reconnect(t, reason) != time.Minute {
		t.Fatalf("closed with %d %s", code, reason)
	}
}

// A flood of pings is answered as far as the frame bucket goes, and ends like any other flood.
func TestPingsAreSpentToo(t *testing.T) {
	m := &countingMeter{burst: 3, abuse: 10}
	n := startNode(t, Config{Meter: m}, newLobby())
	c, _ := rawJoin(t, n)
	for range 10 {
		c.write(t, masked(opPing, []byte("x")))
	}
	pongs := 0
	for {
		f := c.readFrame(t)
		if f.op == opClose {
			if f.code() != 4005 {
				t.Fatalf("closed with %d", f.code())
			}
			break
		}
		pongs++
	}
	if pongs != 2 {
		t.Fatalf("%d pongs", pongs)
	}
}

// Whatever comes costs what a frame costs: a flood of any kind ends with 4005, before as after the hello.
func TestEveryFrameIsSpent(t *testing.T) {
	for name, flood := range map[string][]byte{
		"pongs":               masked(opPong, nil),
		"pings":               masked(opPing, nil),
		"empty continuations": {0x00, 0x80, 0, 0, 0, 0},
		"continuations":       {0x00, 0x81, 0, 0, 0, 0, 'x'},
	} {
		for _, greeted := range []bool{true, false} {
			t.Run(fmt.Sprint(name, greeted), func(t *testing.T) {
				m := &countingMeter{burst: 30, abuse: 60}
				n := startNode(t, Config{Meter: m}, newLobby())
				c := rawDial(t, n, "")
				if greeted {
					c, _ = rawJoin(t, n)
				}
				if flood[0] == 0 {
					c.write(t, []byte{0x01, 0x81, 0, 0, 0, 0, '{'})
				}
				_, _ = c.Write(bytes.Repeat(flood, 5000)) // is cut off on the way
				f := c.readFrame(t)
				for f.op == opPong {
					f = c.readFrame(t)
				}
				if f.op != opClose || f.code() != 4005 {
					t.Fatalf("got %+v", f)
				}
				if got := m.n.Load(); got != 61 {
					t.Fatalf("%d frames were spent", got)
				}
			})
		}
	}
}

// A message of which one fragment is over the limit is refused, once and by its id.
func TestAMessageWithARefusedFragment(t *testing.T) {
	n := startNode(t, Config{Meter: &countingMeter{burst: 2, abuse: 9}}, newLobby())
	c, _ := rawJoin(t, n)
	c.write(t, slices.Concat(frameOf(0x01, `{"op":"like",`), frameOf(0x00, ``), frameOf(0x80, `"id":"a"}`)))
	if got := decode(t, c.readFrame(t).payload)[0]; got.ID != "a" || got.Code != 429 {
		t.Fatalf("got %+v", got)
	}
}
