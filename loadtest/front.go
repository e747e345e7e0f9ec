package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// front is the one address of a cluster for people: it carries each connection's bytes to a node that takes it, to one
// after the other, so that the viewers of a node that has died find another at the same address.
type front struct {
	listener net.Listener
	next     atomic.Uint64
	nodes    []string // addresses, fixed after construction

	mu   sync.Mutex
	open map[net.Conn]struct{} // guarded by mu; nil once closed
	wg   sync.WaitGroup
}

// listenFront takes the address; port 0 is a free one.
func listenFront(ctx context.Context, address string) (*front, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &front{listener: l, open: map[net.Conn]struct{}{}}, nil
}

// serve carries connections to nodes until close.
func (f *front) serve(nodes []string) {
	f.nodes = nodes
	f.wg.Go(func() {
		for {
			c, err := f.listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				f.wg.Go(func() { f.carry(c) })
			}
		}
	})
}

// close ends the listener and every connection, and waits for both.
func (f *front) close() {
	f.listener.Close()
	f.mu.Lock()
	for c := range f.open {
		c.Close()
	}
	f.open = nil
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *front) carry(viewer net.Conn) {
	node := f.dial()
	if node == nil {
		viewer.Close()
		return
	}
	if !f.keep(viewer, node) {
		return
	}
	defer f.drop(viewer, node)
	back := make(chan struct{})
	go func() {
		defer close(back)
		pipe(viewer, node)
	}()
	pipe(node, viewer)
	<-back
}

// dial returns a connection to the next node that takes one, nil when none does.
func (f *front) dial() net.Conn {
	for range f.nodes {
		i := f.next.Add(1) % uint64(len(f.nodes))
		if c, err := net.Dial("tcp", f.nodes[i]); err == nil {
			return c
		}
	}
	return nil
}

func (f *front) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		if f.open == nil {
			c.Close()
			continue
		}
		f.open[c] = struct{}{}
	}
	return f.open != nil
}

func (f *front) drop(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(f.open, c)
	}
}

// pipe copies until from ends, and passes that end on. A reset is passed on as one, since a viewer tells it from an end.
func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.(*net.TCPConn).SetLinger(0)
		to.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite()
}
