package conn

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"liveroom/protocol"
)

// life is a session and what it should be at once nothing moves any more.
type life struct {
	n    *node
	c    *rawConn
	s    *Session
	part []byte // of a frame that is begun, what is still to be sent

	stage stage
	turn  turn
}

// settles waits until the session is where it should be, and holds it to its invariants on the way.
func (l *life) settles(t *rapid.T) {
	until(t, func() bool {
		if err := l.s.check(); err != nil {
			t.Fatal(err)
		}
		l.s.mu.Lock()
		defer l.s.mu.Unlock()
		return l.s.stage == l.stage && l.s.turn == l.turn
	}, l)
}

// until waits for what another goroutine is about to do; what is told when it does not.
func until(t *rapid.T, done func() bool, what any) {
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to be: %v", what)
		}
	}
}

func (l *life) String() string {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return fmt.Sprintf("%v, %v; it should be %v, %v", l.s.stage, l.s.turn, l.stage, l.turn)
}

// send sends some of a frame, and all of it when whole.
func (l *life) send(t *rapid.T, f []byte, whole bool) {
	k := len(f)
	if !whole {
		k = rapid.IntRange(1, len(f)-1).Draw(t, "bytes")
	}
	_, _ = l.c.Write(f[:k])
	l.part = f[k:]
}

var requestFields = map[string]string{"like": `"count":1`, "gift": `"gift":"rose","count":1`, "danmaku": `"text":"hi"`}

// request is a whole message, or the rest of the one that is begun.
func (l *life) request(t *rapid.T, op string, then turn) {
	if l.turn != resting {
		t.Skip("nobody listens")
	}
	if len(l.part) > 0 {
		l.send(t, l.part, true)
		if l.stage != open { // its hello
			t.Fatal("a hello is not begun before the join")
		}
		return
	}
	l.send(t, frameOf(0x81, `{"op":"`+op+`","id":"x",`+requestFields[op]+`}`), true)
	l.turn = then
}

// ends is how a session ends that is told to: at once it waits for its peer, as soon as the seat has given the turn back.
func (l *life) ends() {
	if l.stage >= closing {
		return
	}
	if l.stage = closing; l.turn == resting {
		l.turn = partingAtRest
	}
}

// over is how it ends when the peer is gone, or the socket.
func (l *life) over() {
	l.stage = closed
	if l.turn != handling && l.turn != awaiting {
		l.turn = ended
	}
}

// TestStates: whatever a session goes through and in whatever order, it comes to rest where the tables of its stage and its
// turn say, and its parts agree on the way.
func TestStates(t *testing.T) { eachWay(t, states) }

func states(t *testing.T, w way) {
	release := make(chan struct{})
	lobby := newLobby()
	lobby.hello = func(s *Session, r *protocol.Request) (Seat, *protocol.Refusal) {
		if r.ID == "refuse" {
			return nil, &protocol.Refusal{Code: protocol.CloseToken}
		}
		return lobby.seat(s), nil
	}
	lobby.receive = func(s *Session, r *protocol.Request) {
		switch r.Op {
		case protocol.OpGift:
			<-release
		case protocol.OpDanmaku:
			s.Await(func() { <-release })
		}
	}
	n := startWay(t, w, Config{CloseTimeout: time.Hour, Heartbeat: time.Hour, MessageTimeout: time.Hour}, lobby)
	rapid.Check(t, func(t *rapid.T) {
		nc := n.socket(t)
		defer nc.Close()
		l := &life{n: n, c: rawUpgrade(t, nc, ""), stage: greeting, turn: resting}
		var all []*Session
		until(t, func() bool { all = n.wheel.all(); return len(all) == 1 }, "a session")
		l.s = all[0]
		handled := func() bool { return l.turn == handling || l.turn == awaiting }
		steps := map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				if l.stage != greeting || l.turn != resting {
					t.Skip("joined")
				}
				l.send(t, frameOf(0x81, `{"op":"hello","id":"1","room":"demo"}`), true)
				l.stage = open
			},
			"refused": func(t *rapid.T) {
				if l.stage != greeting || l.turn != resting {
					t.Skip("joined")
				}
				l.send(t, frameOf(0x81, `{"op":"hello","id":"refuse","room":"demo"}`), true)
				l.ends()
			},
			"begin": func(t *rapid.T) {
				if l.stage != open || l.turn != resting || len(l.part) > 0 {
					t.Skip("no place for it")
				}
				l.send(t, frameOf(0x81, `{"op":"ping","id":"x"}`), false)
			},
			"like": func(t *rapid.T) {
				if l.stage == open {
					l.request(t, "like", resting)
				}
			},
			"gift": func(t *rapid.T) {
				if l.stage == open && len(l.part) == 0 {
					l.request(t, "gift", handling)
				}
			},
			"danmaku": func(t *rapid.T) {
				if l.stage == open && len(l.part) == 0 {
					l.request(t, "danmaku", awaiting)
				}
			},
			"handled": func(t *rapid.T) {
				if !handled() {
					t.Skip("nothing is handled")
				}
				release <- struct{}{}
				switch l.stage {
				case open:
					l.turn = resting
				case closing:
					l.turn = partingAtRest
				default:
					l.turn = ended
				}
			},
			"deliver": func(*rapid.T) { l.s.Deliver(danmaku("x")) },
			"answer":  func(*rapid.T) { l.s.Control([]byte(`{"ev":"online","count":1}`)) },
			"hold":    func(*rapid.T) { l.s.Hold([]byte(`{"ev":"online","count":1}`)) },
			"open": func(t *rapid.T) {
				if l.stage != greeting { // late, and for nothing
					l.s.Open([]byte(`{"ev":"welcome"}`))
				}
			},
			"close": func(*rapid.T) {
				l.s.Close(protocol.Refusal{Code: protocol.CloseKicked})
				l.ends()
			},
			"cut": func(*rapid.T) {
				l.s.abort()
				l.over()
			},
			"peer goes": func(t *rapid.T) {
				if handled() {
					t.Skip("it is seen later")
				}
				nc.Close()
				l.over()
			},
			"peer closes": func(t *rapid.T) {
				if handled() || len(l.part) > 0 || l.stage >= closed {
					t.Skip("no place for it")
				}
				l.send(t, frameOf(0x88, "\x03\xe8"), true)
				l.over()
			},
			"": l.settles,
		}
		t.Repeat(steps)
		if handled() {
			steps["handled"](t)
		}
		nc.Close()
		l.over()
		l.settles(t)
		until(t, func() bool { return n.Sockets() == 0 }, "the end of its socket")
	})
	if got := testutil.ToFloat64(n.cfg.Metrics.sessions); got != 0 {
		t.Errorf("%v sessions are left", got)
	}
}

// A move that is not in the table is a fault of ours and is not made.
func TestTurnTable(t *testing.T) {
	for from := reading; from <= ended; from++ {
		for to := reading; to <= ended; to++ {
			s := &Session{turn: from}
			refused := func() (refused bool) {
				defer func() { refused = recover() != nil }()
				s.pass(to)
				return false
			}()
			if allowed := turnMoves[from]&(1<<to) != 0; allowed == refused || (s.turn == to) != (allowed || from == to) {
				t.Errorf("%v to %v: allowed %v, refused %v, then %v", from, to, allowed, refused, s.turn)
			}
		}
	}
}
