package conn

import (
	"bytes"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// slack is how late the sweeper may be, with the default bounds.
const slack = 1300 * time.Millisecond

func TestHelloTimeout(t *testing.T) {
	for name, first := range map[string][]byte{
		"silent":       nil,
		"half a frame": masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`))[:20],
		"pongs only":   masked(opPong, nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := startBubble(t, Config{}, newLobby())
				c := b.connect(t)
				start := time.Now()
				c.write(t, first)
				if f := c.readFrame(t); f.op != opClose || f.code() != 4002 {
					t.Fatalf("got %+v", f)
				}
				if d := time.Since(start); d < 8*time.Second || d > 8*time.Second+slack {
					t.Fatalf("told after %v", d)
				}
				if d := c.drain(); d > 5*time.Second+slack {
					t.Fatalf("closed %v later", d)
				}
				c.Close()
				b.stop(t)
			})
		})
	}
}

// A peer that vanishes without a FIN is gone within heartbeat + pong timeout of its last sign of life; so is one that
// sends half a frame and falls silent, since no pong can come in the middle of a frame.
func TestHalfOpenSocketsAreFound(t *testing.T) {
	frame := masked(opText, []byte(`{"op":"like","id":"x","count":3}`))
	for name, last := range map[string][]byte{
		"silent":                  nil,
		"half a header":           frame[:1],
		"half a frame":            frame[:12],
		"pong and half a frame":   append(masked(opPong, nil), frame[:12]...),
		"half of a fragmented":    append([]byte{0x01, 0x80 | 1, 0, 0, 0, 0, '{'}, masked(opPing, nil)...),
		"an answer, then nothing": masked(opText, []byte(`{"op":"ping","id":"y"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := startBubble(t, Config{}, newLobby())
				c, s := b.join(t)
				start := time.Now()
				if last != nil {
					c.write(t, last)
				}
				gone := c.drain()
				if limit := 35*time.Second + slack; gone > limit {
					t.Fatalf("gone after %v, want %v at most", gone, limit)
				}
				synctest.Wait()
				if b.lobby.leaves() != 1 || b.sessions.Load() != 0 {
					t.Fatalf("%d leaves, %d sessions after %v", b.lobby.leaves(), b.sessions.Load(), time.Since(start))
				}
				if err := s.check(); err != nil {
					t.Fatal(err)
				}
				c.Close()
				b.stop(t)
			})
		})
	}
}

// A heartbeat that is shorter than the time for the hello counts from the hello on, not from the end of that time.
func TestAShortHeartbeatBeginsWithTheHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{Heartbeat: time.Second, PongTimeout: time.Second}, newLobby())
		c, _ := b.join(t)
		if gone := c.drain(); gone > 3*time.Second+slack {
			t.Fatalf("a silent peer is gone after %v", gone)
		}
		c.Close()
		b.stop(t)
	})
}

// A message in fragments may be interrupted by pongs, which does not give it more time.
func TestAMessageEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		c, _ := b.join(t)
		start := time.Now()
		var dripping sync.WaitGroup
		dripping.Go(func() {
			fragment := []byte{0x01, 0x80 | 1, 0, 0, 0, 0, 'x'}
			for {
				if _, err := c.Write(append(fragment, masked(opPong, nil)...)); err != nil {
					return
				}
				fragment = []byte{0x00, 0x80 | 1, 0, 0, 0, 0, 'x'}
				time.Sleep(time.Second)
			}
		})
		c.drain()
		// The message is noticed at the next visit of the session, which is a heartbeat away at most.
		if d := time.Since(start); d > 35*time.Second+slack {
			t.Fatalf("gone after %v", d)
		}
		c.Close()
		dripping.Wait()
		b.stop(t)
	})
}

// Who answers pings stays, however long it says nothing else; and pings come no more often than the heartbeat.
func TestPongsKeepASessionAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		c, s := b.join(t)
		start, pings := time.Now(), 0
		for time.Since(start) < 10*time.Minute {
			if f := c.readFrame(t); f.op != opPing {
				t.Fatalf("got %+v after %v", f, time.Since(start))
			}
			pings++
			c.write(t, masked(opPong, nil))
		}
		if pings < 22 || pings > 26 {
			t.Fatalf("%d pings in ten minutes", pings)
		}
		s.Close(protocol.Refusal{Code: protocol.CloseKicked})
		if f := c.readFrame(t); f.code() != 4004 {
			t.Fatalf("got %+v", f)
		}
		c.Close()
		b.stop(t)
	})
}

// A client that asks for something all the time needs no pings.
func TestMessagesKeepASessionAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startBubble(t, Config{}, newLobby())
		c, _ := b.join(t)
		pings := 0
		for range 60 {
			time.Sleep(10 * time.Second)
			c.write(t, masked(opText, []byte(`{"op":"ping"}`)))
			f := c.readFrame(t)
			for f.op == opPing {
				pings++
				f = c.readFrame(t)
			}
			if !bytes.Contains(f.payload, []byte("pong")) {
				t.Fatalf("got %+v", f)
			}
		}
		if pings > 1 {
			t.Fatalf("%d pings for a client that talks", pings)
		}
		c.Close()
		b.stop(t)
	})
}

// While the room has the turn, the peer's silence is not its fault.
func TestASlowSeatIsNotADeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby()
		l.receive = func(s *Session, r *protocol.Request) {
			time.Sleep(2 * time.Minute)
			s.Control(protocol.AppendAck(nil, protocol.Ack{ID: r.ID, Code: protocol.OK}, s.Lang()))
		}
		b := startBubble(t, Config{}, l)
		c, _ := b.join(t)
		c.write(t, masked(opText, []byte(`{"op":"gift","id":"g","gift":"rose"}`)))
		if f := c.readFrame(t); f.op != opText || decode(t, f.payload)[0].ID != "g" {
			t.Fatalf("got %+v", f)
		}
		c.Close()
		b.stop(t)
	})
}
