package fanout

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// proxy stands between a node and its server. When it is told to, it swallows what the server says, or holds what both
// say, as a network does that is cut in two.
type proxy struct {
	net.Listener
	target  string
	swallow atomic.Bool
	eaten   atomic.Int64 // bytes swallowed

	mu    sync.Mutex
	conns []net.Conn
	held  chan struct{} // closed when what is held may go on; nil: nothing is held
	wg    sync.WaitGroup
}

// hold keeps all bytes from passing, until release.
func (p *proxy) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = make(chan struct{})
}

func (p *proxy) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: u.Host}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = p.Listener.Close()
		p.release()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		p.wg.Go(func() { p.pipe(server, client, nil) })
		p.wg.Go(func() { p.pipe(client, server, &p.swallow) })
	}
}

var pong = []byte("PONG\r\n")

func (p *proxy) pipe(dst, src net.Conn, swallow *atomic.Bool) {
	defer func() { _, _ = dst.Close(), src.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if swallow != nil && swallow.Load() {
			p.eaten.Add(int64(n))
			// A client takes an answer to a ping for the oldest ping's. Of a connection that goes on none may be lost, as no network loses it:
			// who flushes later, to say goodbye, would wait for one more.
			if _, err := dst.Write(bytes.Repeat(pong, bytes.Count(buf[:n], pong))); err != nil {
				return
			}
			continue
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// CASES 16: connected, publishes succeed, nothing is delivered: noticed, not ready, connected anew.
func TestDeafConnectionIsNoticedAndReplaced(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	p := newProxy(t, s.ClientURL())
	cfg := nodeConfig(s, "n1")
	cfg.URLs, cfg.ProbeEvery, cfg.ProbeTimeout = []string{p.url()}, 20*time.Millisecond, 400*time.Millisecond
	f := open(t, cfg)
	node(t, s, "n2")
	l, _ := subscribe(t, f, "demo")
	eventually(t, "nodes know each other", func() bool { return f.Presence.NodeCount() == 2 })
	if err := f.Health(); err != nil || !f.Link.Healthy() {
		t.Fatal(err)
	}
	p.swallow.Store(true)
	eventually(t, "the silence is noticed", func() bool { return f.Health() != nil && !f.Link.Healthy() })
	eventually(t, "the connection is replaced", func() bool { return counted(t, f, "liveroom_bus_deaf_total", "") > 0 })
	eventually(t, "nobody is heard", func() bool { return len(f.Presence.Nodes()) == 0 })
	if n := f.Presence.NodeCount(); n != 2 {
		t.Errorf("who is cut off counts %d nodes", n)
	}
	p.swallow.Store(false)
	p.cut() // those that were opened while it swallowed never got the server's greeting
	eventually(t, "the node is well", func() bool { return f.Health() == nil && f.Link.Healthy() })
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, l.events); got != "danmaku hello" {
		t.Error(got)
	}
}

// A gift whose answer is lost has an unknown outcome; the same id tells it later.
func TestGiftWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	p := newProxy(t, natsServer(t).ClientURL())
	f := open(t, Config{NodeID: "n1", URLs: []string{p.url()}, Shared: true, StoreTimeout: 2 * time.Second, SweepEvery: never})
	l, _ := subscribe(t, f, "demo")
	p.swallow.Store(true)
	if _, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", "c", []byte("rose")); !errors.Is(err, link.ErrUnknown) {
		t.Fatal(err)
	}
	p.swallow.Store(false)
	r := storeGift(t, f, "demo", "u", "c", "rose")
	if !r.Duplicate {
		t.Error("the gift was stored twice")
	}
	if g := receive(t, l.gifts); g.Seq != r.Seq {
		t.Errorf("%+v, want %d", g, r.Seq)
	}
	for result, want := range map[string]float64{"unknown": 1, "duplicate": 1, "stored": 0, "refused": 0} {
		if got := counted(t, f, "liveroom_bus_gifts_total", result); got != want {
			t.Errorf("%s: %v, want %v", result, got, want)
		}
	}
}

// A connection that breaks while a gift is under way leaves it unknown, not refused.
func TestGiftOverABrokenConnectionIsUnknown(t *testing.T) {
	t.Parallel()
	s := natsServer(t)
	other := node(t, s, "n2")
	p := newProxy(t, s.ClientURL())
	f := open(t, Config{NodeID: "n1", URLs: []string{p.url()}, Shared: true, StoreTimeout: 2 * time.Second, SweepEvery: never})
	p.swallow.Store(true)
	done := make(chan error)
	go func() {
		_, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", "c", []byte("rose"))
		done <- err
	}()
	eventually(t, "the gift is stored", func() bool {
		last, err := other.Store.Gifts.LastGift(testContext(t), "demo")
		return err == nil && last > 0
	})
	p.cut()
	if err := receive(t, done); !errors.Is(err, link.ErrUnknown) {
		t.Error(err)
	}
}

// CASES 17 and "reconnect never replays": over a restart of the broker each acknowledged gift arrives once, the rest
// is told to try again, and no danmaku of before arrives after.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natsServerAt(t, dir, -1)
	port := s.Addr().(*net.TCPAddr).Port
	cfg := Config{NodeID: "n1", URLs: []string{s.ClientURL()}, StoreTimeout: 500 * time.Millisecond, LikesGather: 5 * time.Millisecond}
	f := open(t, cfg)
	l, _ := subscribe(t, f, "demo")

	acked := map[uint64]string{}
	unknown := map[string]bool{}
	gift := func(id string) {
		switch r, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", id, []byte(id)); {
		case err == nil:
			acked[r.Seq] = id
			delete(unknown, id)
		case errors.Is(err, link.ErrUnknown):
			unknown[id] = true
		case !errors.Is(err, link.ErrRefused):
			t.Error(err)
		}
	}
	for i := range 20 {
		gift(fmt.Sprint("before", i))
	}
	stopNats(s)
	for i := range 5 {
		gift(fmt.Sprint("away", i))
	}
	refused := 0
	eventually(t, "danmaku are refused", func() bool {
		err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("old"))
		if errors.Is(err, link.ErrDisconnected) {
			refused++
		}
		return refused >= 50
	})
	if err := f.Store.Likes.AddLikes("demo", 5); err != nil {
		t.Fatal(err)
	}
	natsServerAt(t, dir, port)
	eventually(t, "connected again", func() bool { return f.Health() == nil })
	for id := range unknown {
		gift(id)
	}
	for i := range 20 {
		gift(fmt.Sprint("after", i))
	}
	if len(unknown) > 0 || len(acked) < 40 {
		t.Errorf("%d acknowledged, unknown %v", len(acked), unknown)
	}
	if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("new")); err != nil {
		t.Fatal(err)
	}
	for range acked {
		g := receive(t, l.gifts)
		if acked[g.Seq] != string(g.Event) {
			t.Errorf("gift %d is %q, acknowledged as %q", g.Seq, g.Event, acked[g.Seq])
		}
	}
	if got := receive(t, l.events); got != "danmaku new" {
		t.Errorf("after the restart %q arrives", got)
	}
	if total := receive(t, l.likes); total != 5 {
		t.Errorf("likes that waited: %d", total)
	}
	eventually(t, "danmaku are kept again", func() bool {
		if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", []byte("kept")); err != nil {
			t.Fatal(err)
		}
		got, err := f.Store.Recent.Recent(testContext(t), "demo", 10)
		return err == nil && len(got) > 0
	})
}

// CASES 20: what a slow handler loses is counted, and gifts among it come from the ledger.
func TestSlowHandlerLosesAndCounts(t *testing.T) {
	t.Parallel()
	f := open(t, Config{NodeID: "n1", DataDir: t.TempDir(), PendingMessages: 10, SweepEvery: time.Second})
	h := &slowHandler{listener: newListener(), hold: make(chan struct{}), busy: make(chan struct{}, 100)}
	s, err := f.Feeds.Subscribe(testContext(t), "demo", h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const sent = 100
	for i := range sent {
		if err := f.Feeds.Publish(protocol.ClassDanmaku, "demo", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			receive(t, h.busy) // from here on the queue frees no place
		}
	}
	flush := func() {
		t.Helper()
		if err := f.Link.Live.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	flush() // all 100 have reached the client
	gift := storeGift(t, f, "demo", "u", "c", "rose")
	flush() // and the gift, which the server says before it acknowledges it, over the other connection
	eventually(t, "drops are noticed", func() bool { return counted(t, f, "liveroom_bus_dropped_total", "pending") > 0 })
	close(h.hold)
	if g := receive(t, h.gifts); g.Seq != gift.Seq {
		t.Errorf("gift %+v, want %d", g, gift.Seq)
	}
	if err := f.Feeds.Publish(protocol.ClassControl, "demo", []byte("end")); err != nil {
		t.Fatal(err)
	}
	got := 0
	for receive(t, h.events) != "control end" {
		got++
	}
	// The missing danmaku and the gift itself, and what the sweep said of it while nobody listened.
	eventually(t, fmt.Sprint("of ", sent, " danmaku ", got, " arrived, the others and the gift are counted as dropped"), func() bool {
		f.bus.CountDropped()
		return int(counted(t, f, "liveroom_bus_dropped_total", "pending")) >= sent-got+1
	})
}

// slowHandler does nothing before hold is closed.
type slowHandler struct {
	*listener
	hold chan struct{}
	busy chan struct{}
}

func (h *slowHandler) Message(c protocol.Class, event []byte) {
	if c == protocol.ClassDanmaku {
		h.busy <- struct{}{}
		<-h.hold
	}
	h.listener.Message(c, event)
}
