package conn

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

// decoder is coder/websocket's side of a connection: what it takes to read frames and to answer control frames. Between two
// messages it remembers nothing of its peer (no context is taken over, no byte is in its buffer), so a session that rests
// gives its decoder back, and the next one that has input goes on with it: 2.5 KB for each session that is read now in
// place of each that exists.
type decoder struct {
	ws *websocket.Conn
	br *bufio.Reader // coder's own; empty between two messages that come apart
	in *wire
}

// Sizes of the buffers of a decoder. A danmaku fits the read buffer; the write buffer must hold the longest control frame
// (2 + 125 bytes), so that coder flushes each of them in one write.
const (
	readBufferBytes  = 512
	writeBufferBytes = 128
)

func newDecoder() *decoder {
	d := &decoder{in: new(wire)}
	d.in.init()
	d.br = bufio.NewReaderSize(d.in, readBufferBytes)
	return d
}

// accept lets coder do the handshake of a request and answer it.
func (d *decoder) accept(w http.ResponseWriter, r *http.Request, opts websocket.AcceptOptions) error {
	in := d.in // and not d: coder's connection has a finalizer, which a cycle would keep from running
	opts.OnPingReceived = func(context.Context, []byte) bool { return in.s.Load().onPing() }
	opts.OnPongReceived = func(context.Context, []byte) { in.s.Load().stamp() }
	ws, err := websocket.Accept(w, r, &opts)
	if err != nil {
		return err
	}
	ws.SetReadLimit(protocol.MaxRequestBytes + deflateSlack) // the exact limit is held when a message is whole
	d.ws = ws
	return nil
}

// hijacked is what coder gets for the connection that it takes from net/http. It uses these buffers as they are.
func (d *decoder) hijacked() (net.Conn, *bufio.ReadWriter, error) {
	return d.in, bufio.NewReadWriter(d.br, bufio.NewWriterSize(d.in, writeBufferBytes)), nil
}

// dismiss ends a decoder for good.
func (d *decoder) dismiss() {
	_ = d.ws.CloseNow() // it only lets go of coder's finalizer: closing the socket is the session's business
}

// decoders are those that no session needs at the moment.
type decoders struct {
	accept websocket.AcceptOptions // fixed

	mu   sync.Mutex // a leaf
	free []*decoder // guarded by mu
}

// maxFree is how many decoders are kept for sessions to come: about as many as are in use at a time on a busy node.
const maxFree = 256

// get returns a decoder for a session that has input.
func (p *decoders) get(s *Session) (*decoder, error) {
	p.mu.Lock()
	var d *decoder
	if n := len(p.free); n > 0 {
		d, p.free[n-1] = p.free[n-1], nil
		p.free = p.free[:n-1]
	}
	p.mu.Unlock()
	if d == nil {
		var err error
		if d, err = p.fresh(); err != nil {
			return nil, err
		}
	}
	d.in.s.Store(s)
	return d, nil
}

// put takes back the decoder of a session that rests. One that has waited inside a frame is not used again: coder may have
// a timer running out for it in this very moment.
func (p *decoders) put(d *decoder) {
	if d.in.waited || d.br.Buffered() > 0 {
		d.dismiss()
		return
	}
	d.in.s.Store(nil)
	p.mu.Lock()
	kept := len(p.free) < maxFree
	if kept {
		p.free = append(p.free, d)
	}
	p.mu.Unlock()
	if !kept {
		d.dismiss()
	}
}

// fresh makes a decoder without a connection of its own. coder makes server connections only out of a handshake, so it is
// given one.
func (p *decoders) fresh() (*decoder, error) {
	d := newDecoder()
	r := &http.Request{Method: http.MethodGet, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
	}}
	if err := d.accept(&unheard{d: d, header: http.Header{}}, r, p.accept); err != nil {
		return nil, fmt.Errorf("make a decoder: %w", err)
	}
	return d, nil
}

// unheard is the ResponseWriter of a handshake that nobody has asked for.
type unheard struct {
	d      *decoder
	header http.Header
}

var _ http.Hijacker = (*unheard)(nil)

func (u *unheard) Header() http.Header                          { return u.header }
func (u *unheard) Write(p []byte) (int, error)                  { return len(p), nil }
func (u *unheard) WriteHeader(int)                              {}
func (u *unheard) Hijack() (net.Conn, *bufio.ReadWriter, error) { return u.d.hijacked() }
