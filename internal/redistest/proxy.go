package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and one server. Its faults hold for open
// connections and for new ones, until they are called off.
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	listener net.Listener
	running  sync.WaitGroup

	mu        sync.Mutex // guards what follows
	target    string
	closed    bool
	conns     map[net.Conn]bool
	delay     time.Duration
	swallows  bool
	refuses   bool
	loseNext  int
	twice     bool
	forwarded int
}

// NewProxy returns a proxy to a server that forwards everything at once.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), listener: l, target: target, conns: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// URL is the proxy's address as configurations have it.
func (p *Proxy) URL() string { return "redis://" + p.Addr }

// Close ends every connection and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

// Target lets new connections go to another server.
func (p *Proxy) Target(addr string) { p.set(func() { p.target = addr }) }

// Delay holds every reply back so long.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Swallow takes requests to the server and drops all its replies, as a server
// does that hangs.
func (p *Proxy) Swallow(on bool) { p.set(func() { p.swallows = on }) }

// Refuse closes new connections at once.
func (p *Proxy) Refuse(on bool) { p.set(func() { p.refuses = on }) }

// LoseReplies lets the next n replies be lost with their connections, after the
// server has carried the requests out.
func (p *Proxy) LoseReplies(n int) { p.set(func() { p.loseNext = n }) }

// Twice sends each request to the server a second time, on a connection of its
// own whose replies are dropped.
func (p *Proxy) Twice(on bool) { p.set(func() { p.twice = on }) }

// Requests counts the chunks of requests that were forwarded.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forwarded
}

// Cut ends every open connection.
func (p *Proxy) Cut() {
	p.set(func() {
		for c := range p.conns {
			_ = c.Close()
		}
	})
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// keep remembers a connection for Cut. It reports false after Close.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.set(func() { delete(p.conns, c) })
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	p.mu.Lock()
	target, refuses := p.target, p.refuses
	p.mu.Unlock()
	if refuses || !p.keep(client) {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.requests(client, server, target); _ = server.Close() })
	both.Go(func() { p.replies(server, client); _ = client.Close() })
	both.Wait()
}

func (p *Proxy) requests(client, server net.Conn, target string) {
	var again net.Conn
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			p.mu.Lock()
			twice := p.twice
			p.forwarded++
			p.mu.Unlock()
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
			if twice {
				if again == nil {
					if again, err = net.Dial("tcp", target); err != nil {
						return
					}
					defer p.drop(again)
					if !p.keep(again) {
						return
					}
					p.running.Go(func() { _, _ = io.Copy(io.Discard, again) })
				}
				_, _ = again.Write(buf[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) replies(server, client net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay, swallows, lose := p.delay, p.swallows, p.loseNext > 0
		if lose {
			p.loseNext--
		}
		p.mu.Unlock()
		if lose {
			return
		}
		if swallows {
			continue
		}
		if delay > 0 {
			<-time.After(delay)
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
