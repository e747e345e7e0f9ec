package conn

import (
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
	if code, reason := closing(t, ws); code != 4005 || reconnect(t, reason) != time.Minute {
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
