package conn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
)

// scripted is a connection that gives out one piece per read, and errWouldBlock between them.
type scripted struct {
	net.Conn
	pieces  [][]byte
	blocked bool
	written []byte
	closed  bool
}

func (c *scripted) Read(p []byte) (int, error) {
	if c.blocked = !c.blocked; c.blocked || len(c.pieces) == 0 {
		return 0, errWouldBlock
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	} else {
		c.blocked = !c.blocked // the rest of the piece is at hand
	}
	return n, nil
}

func (c *scripted) Write(p []byte) (int, error) {
	c.written = append(c.written, p...)
	return len(p), nil
}
func (c *scripted) Close() error { c.closed = true; return nil }

type scriptedWriter struct {
	*httptest.ResponseRecorder
	c  *scripted
	br *bufio.Reader
}

func (w *scriptedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.c, bufio.NewReadWriter(w.br, bufio.NewWriterSize(w.c, writeBufferBytes)), nil
}

// Resting relies on how coder/websocket deals with an error of the connection's Read before the first byte of a frame: it is
// passed on, wrapped, nothing is closed or written, nothing stays in the buffer, which is the one that coder was given, and
// the next call goes on as if nothing had been. The same behind control frames, which it handles on the way. No goroutine
// and no timer outlives a call.
func TestCoderKeepsAConnectionThatHasNothingToRead(t *testing.T) {
	c := &scripted{pieces: [][]byte{
		masked(opText, []byte("one")), append(masked(opPong, nil), masked(opPing, []byte("p"))...), masked(opText, make([]byte, 5000)),
		masked(opPing, nil), append(masked(opText, []byte("two")), masked(opText, []byte("three"))...),
	}}
	w := &scriptedWriter{ResponseRecorder: httptest.NewRecorder(), c: c}
	w.br = bufio.NewReaderSize(c, 16)
	r := httptest.NewRequest(http.MethodGet, "/ws", nil)
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		r.Header.Set(k, v)
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for blocked := 0; len(got) < 4; {
		_, m, err := ws.Reader(context.Background())
		if errors.Is(err, errWouldBlock) {
			if w.br.Buffered() != 0 || c.closed {
				t.Fatalf("%d bytes buffered, closed %v", w.br.Buffered(), c.closed)
			}
			if blocked++; blocked > 20 {
				t.Fatal("it never came")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(m)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, len(b))
	}
	if want := []int{3, 5000, 3, 5}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Fatalf("messages of %v bytes", got)
	}
	if want := []byte{0x8a, 1, 'p', 0x8a, 0}; string(c.written) != string(want) || c.closed {
		t.Fatalf("written % x, closed %v", c.written, c.closed)
	}
	if err := ws.CloseNow(); err != nil || !c.closed {
		t.Fatal(err)
	}
}
