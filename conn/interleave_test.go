package conn

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liveroom/protocol"
)

// narrow is a listener whose sockets buffer as little as the kernel allows, so that frames are taken in pieces.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetWriteBuffer(2048)
}

// startNarrow is startNode with narrow sockets.
func startNarrow(t *testing.T, cfg Config, l *testLobby) *node {
	t.Helper()
	a, err := NewAcceptor(cfg, l)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: a}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(narrow{ln}) }()
	t.Cleanup(func() {
		if err := a.Shutdown(testCtx(t), 0); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		srv.Close()
		<-done
	})
	return &node{Acceptor: a, lobby: l, addr: ln.Addr().String()}
}

// witness reads what a session was sent and holds it to the promises of each class.
type witness struct {
	danmaku, missed int // seen, and announced as missed
	lastText        int
	gift            uint64
	answers         int
	total           int64
	pongs           int
	closed          int
}

func (w *witness) frame(t *rapid.T, f rawFrame) {
	if w.closed != 0 {
		t.Fatalf("a frame after the close: %+v", f)
	}
	switch f.op {
	case opClose:
		w.closed = f.code()
	case opPong:
		w.pongs++
	case opText:
		for _, e := range decode(t, f.payload) {
			w.event(t, e)
		}
	}
}

func (w *witness) event(t *rapid.T, e event) {
	switch e.Ev {
	case "danmaku":
		var n int
		if _, err := fmt.Sscanf(e.Text, "%d", &n); err != nil || n <= w.lastText {
			t.Fatalf("danmaku %q after %d", e.Text, w.lastText)
		}
		w.lastText = n
		w.danmaku++
	case "gift":
		if e.Seq != w.gift+1 {
			t.Fatalf("gift %d after %d", e.Seq, w.gift)
		}
		w.gift = e.Seq
	case "ack":
		if e.ID != fmt.Sprint(w.answers) {
			t.Fatalf("answer %s, want %d", e.ID, w.answers)
		}
		w.answers++
	case "like":
		if e.Total <= w.total {
			t.Fatalf("total %d after %d", e.Total, w.total)
		}
		w.total = e.Total
	case "missed":
		w.missed += e.Danmaku
	}
}

// play is one run of a session under random input.
type play struct {
	s *Session
	c *rawConn
	w witness

	danmaku, answers, pings int
	gift                    uint64
	total                   int64
}

func (p *play) deliver(t *rapid.T) {
	var b protocol.Batch
	pad := strings.Repeat("x", rapid.SampledFrom([]int{0, 50, 2000, 20_000}).Draw(t, "pad"))
	for range rapid.IntRange(0, 3).Draw(t, "danmaku") {
		p.danmaku++
		b.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: fmt.Sprint(p.danmaku, " ", pad), TS: 1}))
	}
	if rapid.Bool().Draw(t, "gift") {
		p.gift++
		b.Add(protocol.ClassGift, protocol.AppendStoredGift(nil, protocol.StoredGift{Seq: p.gift,
			Event: protocol.AppendGift(nil, protocol.Gift{User: protocol.User{ID: "u"}, Gift: "rose", Count: 1, Combo: 1, TS: 1})}))
	}
	if rapid.Bool().Draw(t, "like") {
		p.total++
		b.Add(protocol.ClassLike, protocol.AppendLike(nil, 1, p.total))
	}
	if bc := b.Build(); bc != nil {
		p.s.Deliver(bc)
	}
}

func (p *play) answer(*rapid.T) {
	p.s.Control(protocol.AppendAck(nil, protocol.Ack{ID: fmt.Sprint(p.answers), Code: protocol.OK}, protocol.English))
	p.answers++
}

func (p *play) hold(*rapid.T) {
	p.s.Hold(protocol.AppendAck(nil, protocol.Ack{ID: fmt.Sprint(p.answers), Code: protocol.OK}, protocol.English))
	p.answers++
}

func (p *play) release(*rapid.T) { p.s.Release() }

func (p *play) ping(t *rapid.T) {
	p.pings++
	p.c.write(t, masked(opPing, []byte("ping")))
}

func (p *play) beat(*rapid.T) { p.s.urgent(wireEntry(pingFrame)) }

// read takes some of what there is.
func (p *play) read(t *rapid.T) {
	b := make([]byte, rapid.IntRange(1, 5000).Draw(t, "n"))
	_ = p.c.SetReadDeadline(time.Now().Add(time.Millisecond))
	n, _ := p.c.Read(b)
	p.take(t, b[:n])
}

func (p *play) take(t *rapid.T, b []byte) {
	p.c.buf = append(p.c.buf, b...)
	for {
		f, rest, err := parseFrame(p.c.buf)
		if err != nil {
			t.Fatalf("not at a frame's head: %v", err)
		}
		if f == nil {
			return
		}
		p.c.buf = rest
		p.w.frame(t, *f)
	}
}

// readUntil reads on until done.
func (p *play) readUntil(t *rapid.T, done func() bool) {
	b := make([]byte, 64<<10)
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		_ = p.c.SetReadDeadline(deadline)
		n, err := p.c.Read(b)
		p.take(t, b[:n])
		if err != nil && !done() {
			t.Fatalf("%v; %+v of %+v", err, p.w, p)
		}
	}
}

// Whatever the order of broadcasts, answers, pings both ways and a slow reader, frames arrive whole, each class keeps its
// promise, the missed are counted exactly, and nothing follows the close frame.
func TestFramesNeverInterleave(t *testing.T) {
	n := startNarrow(t, Config{QueueFrames: 3, HardFrames: 1000, HardBytes: 1 << 30, ControlFrames: 10_000, CloseTimeout: 10 * time.Second}, newLobby())
	lagged := 0 // runs in which the viewer fell behind
	rapid.Check(t, func(t *rapid.T) {
		nc, err := net.Dial("tcp", n.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		_ = nc.(*net.TCPConn).SetReadBuffer(32 << 10)
		p := &play{c: rawUpgrade(t, nc, "")}
		p.c.write(t, masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`)))
		p.s = <-n.lobby.arrived
		t.Repeat(map[string]func(*rapid.T){
			"deliver": p.deliver, "deliver2": p.deliver, "answer": p.answer, "hold": p.hold, "release": p.release, "ping": p.ping, "beat": p.beat, "read": p.read,
			"": func(t *rapid.T) {
				if err := p.s.check(); err != nil {
					t.Fatal(err)
				}
			},
		})
		if rapid.Bool().Draw(t, "close in the middle") {
			p.s.Close(protocol.Refusal{Code: protocol.CloseKicked})
			p.readUntil(t, func() bool { return p.w.closed != 0 })
			if p.w.closed != 4004 || p.w.answers != p.answers {
				t.Fatalf("closed with %d, %d of %d answers", p.w.closed, p.w.answers, p.answers)
			}
			return
		}
		p.s.Release()
		p.readUntil(t, func() bool {
			return p.w.danmaku+p.w.missed == p.danmaku && p.w.gift == p.gift && p.w.answers == p.answers && p.w.total == p.total
		})
		if p.w.missed != int(p.s.Stats().Missed) || p.w.pongs > p.pings {
			t.Fatalf("%+v of %+v", p.w, p)
		}
		if p.w.missed > 0 {
			lagged++
		}
		p.s.Close(protocol.Refusal{Code: protocol.CloseKicked})
		p.readUntil(t, func() bool { return p.w.closed == 4004 })
	})
	if t.Logf("%d runs lagged", lagged); lagged == 0 {
		t.Error("the sockets were too wide to show anything")
	}
}
