package client

import (
	"net"
	"sync"
	"time"
)

// goroutineReader is the portable reader: a goroutine and a small buffer per socket. It also serves encrypted ones.
type goroutineReader struct {
	sink *sink
	wg   sync.WaitGroup

	mu     sync.Mutex
	open   map[*netWire]struct{} // guarded by mu
	closed bool                  // guarded by mu
}

func newGoroutineReader(k *sink) *goroutineReader {
	return &goroutineReader{sink: k, open: map[*netWire]struct{}{}}
}

var _ reader = (*goroutineReader)(nil)

func (r *goroutineReader) adopt(s *Session, conn net.Conn, early []byte) error {
	w := &netWire{conn: conn}
	w.thawed.L = &w.mu
	s.Wire = w
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		conn.Close()
		return errGone
	}
	r.open[w] = struct{}{}
	r.wg.Go(func() { r.serve(s, w, early) })
	return nil
}

func (r *goroutineReader) serve(s *Session, w *netWire, early []byte) {
	buf := make([]byte, max(4096, len(early)))
	n := copy(buf, early)
	var err error
	for err == nil {
		w.waitThawed()
		if n > 0 {
			r.sink.mu.Lock()
			err = r.sink.read(s, buf[:n])
			r.sink.mu.Unlock()
		}
		if err == nil {
			n, err = w.conn.Read(buf)
		}
	}
	w.conn.Close()
	r.mu.Lock()
	delete(r.open, w)
	r.mu.Unlock()
	r.sink.mu.Lock()
	s.ended()
	r.sink.mu.Unlock()
}

func (r *goroutineReader) Close() {
	r.mu.Lock()
	r.closed = true
	for w := range r.open {
		w.Freeze(false)
		w.conn.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// netWire is a socket of the portable reader.
type netWire struct {
	conn net.Conn

	mu     sync.Mutex // guards frozen; conn serialises writes by itself
	thawed sync.Cond
	frozen bool
}

var _ wire = (*netWire)(nil)

// Write may wait for the peer, a second at most: the portable reader does not queue.
func (w *netWire) Write(frame []byte) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return errGone
	}
	if _, err := w.conn.Write(frame); err != nil {
		return errGone
	}
	return nil
}

func (w *netWire) end(how Farewell) {
	w.Freeze(false)
	switch how {
	case leave:
		_ = w.Write(goodbye) // if it can't be sent, the reader ends
		_ = w.conn.SetReadDeadline(time.Now().Add(LeaveTimeout))
	case reset:
		if tcp, ok := w.conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // else it ends without a reset
		}
		w.conn.Close()
	case HangUp:
		w.conn.Close()
	}
}

func (w *netWire) Freeze(frozen bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = frozen
	w.thawed.Broadcast()
}

func (w *netWire) waitThawed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.frozen {
		w.thawed.Wait()
	}
}
