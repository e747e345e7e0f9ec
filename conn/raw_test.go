package conn

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"liveroom/conn/frame"
)

const (
	opText  = frame.OpText
	opClose = frame.OpClose
	opPing  = frame.OpPing
	opPong  = frame.OpPong
)

// masked is one frame as a client sends it, with a mask of zeros, which is a legal one.
func masked(op byte, payload []byte) []byte {
	f := []byte{0x80 | op}
	switch n := len(payload); {
	case n < 126:
		f = append(f, 0x80|byte(n))
	default:
		f = append(f, 0x80|126, byte(n>>8), byte(n))
	}
	return append(append(f, 0, 0, 0, 0), payload...)
}

// frameOf is a masked frame with any first byte, and a mask that changes what it covers.
func frameOf(first byte, payload string) []byte {
	f := masked(0, []byte(payload))
	f[0] = first
	body := f[len(f)-len(payload):]
	for i := range 4 {
		f[len(f)-len(payload)-4+i] = byte(0x11 * (i + 1))
	}
	for i := range body {
		body[i] ^= byte(0x11 * (i&3 + 1))
	}
	return f
}

// rawConn is a client that does only what it is told to, and answers no ping and no close.
type rawConn struct {
	net.Conn
	buf []byte
}

// rawDial upgrades; more is sent in the same segment as the handshake.
func rawDial(t testing.TB, n *node, more string) *rawConn {
	t.Helper()
	return rawUpgrade(t, rawSocket(t, n), more)
}

func rawSocket(t testing.TB, n *node) net.Conn {
	t.Helper()
	nc := n.socket(t)
	t.Cleanup(func() { nc.Close() })
	return nc
}

func (n *node) socket(t failer) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	if n.tls {
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
	}
	return nc
}

func rawUpgrade(t failer, nc net.Conn, more string) *rawConn { return rawUpgradeWith(t, nc, "", more) }

// rawUpgradeWith adds whole lines to the handshake's headers.
func rawUpgradeWith(t failer, nc net.Conn, headers, more string) *rawConn {
	t.Helper()
	c := &rawConn{Conn: nc}
	c.write(t, []byte("GET /ws HTTP/1.1\r\nHost: liveroom\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+headers+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"+more))
	for {
		if i := bytes.Index(c.buf, []byte("\r\n\r\n")); i >= 0 {
			if !bytes.HasPrefix(c.buf, []byte("HTTP/1.1 101 ")) {
				t.Fatalf("not upgraded: %s", c.buf[:i])
			}
			c.buf = c.buf[i+4:]
			return c
		}
		c.fill(t)
	}
}

// rawJoin is rawDial with a hello, and reads the welcome.
func rawJoin(t testing.TB, n *node) (*rawConn, *Session) {
	t.Helper()
	c := rawDial(t, n, string(masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`))))
	if got := c.readFrame(t); !bytes.Contains(got.payload, []byte("welcome")) {
		t.Fatalf("got %s", got.payload)
	}
	return c, <-n.lobby.arrived
}

func (c *rawConn) write(t failer, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

func (c *rawConn) fill(t failer) {
	t.Helper()
	var b [1024]byte
	if c.RemoteAddr().Network() == "tcp" {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	}
	n, err := c.Read(b[:])
	if err != nil {
		t.Fatalf("read: %v, with %d bytes of a frame at hand", err, len(c.buf))
	}
	c.buf = append(c.buf, b[:n]...)
}

type rawFrame struct {
	op       byte
	payload  []byte
	deflated bool // RSV1
}

func (f rawFrame) code() int {
	if len(f.payload) < 2 {
		return 0
	}
	return int(f.payload[0])<<8 | int(f.payload[1])
}

// parseFrame cuts a server's frame off b; nil when there is no whole one. It fails on what no server may send.
func parseFrame(b []byte) (f *rawFrame, rest []byte, err error) {
	if len(b) < 2 {
		return nil, b, nil
	}
	op, n, h := b[0]&0x0f, int(b[1]), 2
	switch {
	case b[0]&0x30 != 0 || b[0]&0x80 == 0 || b[0]&0x40 != 0 && op != opText:
		return nil, b, fmt.Errorf("first byte %#x", b[0])
	case op != opText && op != opClose && op != opPing && op != opPong:
		return nil, b, fmt.Errorf("opcode %#x", op)
	case n > 127 || n > 125 && op != opText:
		return nil, b, fmt.Errorf("second byte %#x after %#x", b[1], b[0])
	case n == 126:
		h = 4
	case n == 127:
		h = 10
	}
	if len(b) < h {
		return nil, b, nil
	}
	if h > 2 {
		n = 0
		for _, x := range b[2:h] {
			n = n<<8 | int(x)
		}
	}
	if len(b) < h+n {
		return nil, b, nil
	}
	return &rawFrame{op, b[h : h+n], b[0]&0x40 != 0}, b[h+n:], nil
}

func (c *rawConn) readFrame(t failer) rawFrame {
	t.Helper()
	for {
		f, rest, err := parseFrame(c.buf)
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			c.buf = rest
			return *f
		}
		c.fill(t)
	}
}
