package conn

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// pipes is a listener whose connections are net.Pipes, so that a server and its clients fit into a synctest bubble.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// bubble is an acceptor inside a synctest bubble. The caller ends it with stop before the bubble ends.
type bubble struct {
	*Acceptor
	lobby *testLobby
	pipes *pipes
	srv   *http.Server
	serve sync.WaitGroup
}

func startBubble(t *testing.T, cfg Config, l *testLobby) *bubble {
	t.Helper()
	a, err := NewAcceptor(cfg, l)
	if err != nil {
		t.Fatal(err)
	}
	b := &bubble{Acceptor: a, lobby: l, pipes: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, srv: &http.Server{Handler: a}}
	b.serve.Go(func() { _ = b.srv.Serve(b.pipes) })
	return b
}

func (b *bubble) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.Shutdown(ctx, 0); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	b.srv.Close()
	b.serve.Wait()
}

// connect upgrades a raw client over a pipe.
func (b *bubble) connect(t *testing.T) *rawConn {
	t.Helper()
	client, server := net.Pipe()
	b.pipes.conns <- server
	return rawUpgrade(t, client, "")
}

// join is connect with a hello.
func (b *bubble) join(t *testing.T) (*rawConn, *Session) {
	t.Helper()
	c := b.connect(t)
	c.write(t, masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`)))
	if f := c.readFrame(t); decode(t, f.payload)[0].Ev != "welcome" {
		t.Fatalf("got %s", f.payload)
	}
	return c, <-b.lobby.arrived
}

// drain reads and throws away until the other end closes, and tells when that was.
func (c *rawConn) drain() (after time.Duration) {
	start := time.Now()
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			return time.Since(start)
		}
	}
}
