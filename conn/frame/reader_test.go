package frame

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"liveroom/protocol"
)

// heard is what a reader makes of a stream: whole messages and pings, and how it ended.
type heard struct {
	messages []string
	pings    []string
	code     protocol.CloseCode // of the server's close frame, or the peer's; 0: the stream just ended
	early    bool               // it ended where coder judges earlier or is lenient: in a header, or by what is deflated
}

// readFrames is ours, fed with pieces of at most step bytes.
func readFrames(stream []byte, deflate bool, step int) (h heard) {
	in, m := Reader{Deflate: deflate}, new(Message)
	for len(stream) > 0 {
		piece := stream[:min(step, len(stream))]
		n, whole, fault := in.Next(piece, m)
		if h.code = fault; fault != 0 {
			return h
		}
		stream = stream[n:]
		if !whole {
			continue
		}
		switch in.Op() {
		case OpClose:
			if _, h.code = ParseClose(m.Control); h.code == 0 {
				h.code = protocol.CloseNormal
			}
			return h
		case OpPing:
			h.pings = append(h.pings, string(m.Control))
		}
		if in.Control() {
			m.Control = m.Control[:0]
			continue
		}
		if in.open {
			continue
		}
		wasDeflated := m.deflated
		if h.code = m.Unpack(); h.code != 0 {
			h.early = wasDeflated && h.code == protocol.CloseProtocol
			return h
		}
		h.messages = append(h.messages, string(m.Text))
		m.Text = m.Text[:0]
	}
	h.early = in.part != partFirst && in.part != partPayload || in.open && m.deflated
	return h
}

// fed is a connection that gives out a stream and keeps what is written.
type fed struct {
	net.Conn
	in      bytes.Reader
	written []byte
}

func (c *fed) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err != nil { // not io.EOF, which coder takes for the end of a message
		err = errStreamEnded
	}
	return n, err
}
func (c *fed) Close() error { return nil }
func (c *fed) Write(p []byte) (int, error) {
	c.written = append(c.written, p...)
	return len(p), nil
}

var errStreamEnded = errors.New("the stream ended")

type fedWriter struct {
	*httptest.ResponseRecorder
	c *fed
}

func (w fedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.c, bufio.NewReadWriter(bufio.NewReader(w.c), bufio.NewWriter(w.c)), nil
}

// readCoder is the same stream as coder/websocket reads it.
func readCoder(t *testing.T, stream []byte, deflate bool) (h heard) {
	c := &fed{}
	c.in.Reset(stream)
	r := httptest.NewRequest(http.MethodGet, "/ws", nil)
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		r.Header.Set(k, v)
	}
	opts := &websocket.AcceptOptions{}
	if deflate {
		r.Header.Set("Sec-WebSocket-Extensions", "permessage-deflate; client_no_context_takeover; server_no_context_takeover")
		opts.CompressionMode = websocket.CompressionNoContextTakeover
	}
	ws, err := websocket.Accept(fedWriter{httptest.NewRecorder(), c}, r, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ws.SetReadLimit(protocol.MaxRequestBytes)
	for err == nil {
		var m io.Reader
		var typ websocket.MessageType
		if typ, m, err = ws.Reader(context.Background()); err != nil {
			break
		}
		if typ == websocket.MessageBinary {
			h.code = protocol.CloseNotText
			break
		}
		var b []byte
		if b, err = io.ReadAll(m); err == nil {
			h.messages = append(h.messages, string(b))
		}
	}
	for rest := c.written; len(rest) > 0; {
		if len(rest) < 2 || rest[1] > maxControlPayload || len(rest) < 2+int(rest[1]) {
			t.Fatalf("coder wrote % x", c.written)
		}
		op, payload := rest[0]&bitsOpcode, rest[2:2+rest[1]]
		rest = rest[2+len(payload):]
		switch op {
		case OpPong:
			h.pings = append(h.pings, string(payload))
		case OpClose:
			var code protocol.CloseCode
			if len(payload) > 1 {
				code = protocol.CloseCode(binary.BigEndian.Uint16(payload))
			}
			if h.code = code; websocket.CloseStatus(err) != -1 { // the peer's, echoed
				h.code = protocol.CloseNormal
			}
		}
	}
	if h.code == 0 && !errors.Is(err, errStreamEnded) {
		h.code = protocol.CloseProtocol // it says nothing about an unmasked frame or a length below zero
	}
	return h
}

// frameOf is a masked frame with any first byte.
func frameOf(first byte, payload string) []byte {
	f := []byte{first}
	if n := len(payload); n < 126 {
		f = append(f, 0x80|byte(n))
	} else {
		f = append(f, 0x80|126, byte(n>>8), byte(n))
	}
	f = append(f, 0x11, 0x22, 0x33, 0x44)
	for i := range payload {
		f = append(f, payload[i]^byte(0x11*(i&3+1)))
	}
	return f
}

// frameCases are streams with what becomes of them, after RFC 6455's rules one by one.
var frameCases = []struct {
	name     string
	frames   [][]byte
	messages []string
	code     protocol.CloseCode
}{
	{"a message", [][]byte{frameOf(0x81, "hello")}, []string{"hello"}, 0},
	{"an empty message", [][]byte{frameOf(0x81, "")}, []string{""}, 0},
	{"16-bit length", [][]byte{frameOf(0x81, string(make([]byte, 126)))}, []string{string(make([]byte, 126))}, 0},
	{"64-bit length", [][]byte{append([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}, "hi"...)}, []string{"hi"}, 0},
	{"64-bit length below zero", [][]byte{append([]byte{0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}, "hi"...)}, nil, 1002},
	{"fragments", [][]byte{frameOf(0x01, "he"), frameOf(0x00, "l"), frameOf(0x00, ""), frameOf(0x80, "lo")}, []string{"hello"}, 0},
	{"control frames between fragments", [][]byte{frameOf(0x01, "he"), frameOf(0x89, "p"), frameOf(0x8a, "q"), frameOf(0x80, "llo")}, []string{"hello"}, 0},
	{"no mask", [][]byte{{0x81, 2, 'h', 'i'}}, nil, 1002},
	{"RSV1", [][]byte{frameOf(0xc1, "hi")}, nil, 1002},
	{"RSV2", [][]byte{frameOf(0xa1, "hi")}, nil, 1002},
	{"RSV3", [][]byte{frameOf(0x91, "hi")}, nil, 1002},
	{"RSV1 in a ping", [][]byte{frameOf(0xc9, "")}, nil, 1002},
	{"opcode 3", [][]byte{frameOf(0x83, "hi")}, nil, 1002},
	{"opcode 7", [][]byte{frameOf(0x87, "hi")}, nil, 1002},
	{"opcode 11", [][]byte{frameOf(0x8b, "hi")}, nil, 1002},
	{"opcode 15", [][]byte{frameOf(0x8f, "hi")}, nil, 1002},
	{"binary", [][]byte{frameOf(0x82, "hi")}, nil, 1008},
	{"a ping of 125", [][]byte{frameOf(0x89, string(make([]byte, 125)))}, nil, 0},
	{"a ping of 126", [][]byte{frameOf(0x89, string(make([]byte, 126)))}, nil, 1002},
	{"a fragmented ping", [][]byte{frameOf(0x09, "p")}, nil, 1002},
	{"a continuation of nothing", [][]byte{frameOf(0x80, "hi")}, nil, 1002},
	{"a message within a message", [][]byte{frameOf(0x01, "he"), frameOf(0x81, "llo")}, nil, 1002},
	{"binary within a message", [][]byte{frameOf(0x01, "he"), frameOf(0x82, "llo")}, nil, 1002},
	{"the largest message", [][]byte{frameOf(0x81, string(make([]byte, protocol.MaxRequestBytes)))}, []string{string(make([]byte, protocol.MaxRequestBytes))}, 0},
	{"a larger message", [][]byte{frameOf(0x81, string(make([]byte, protocol.MaxRequestBytes+1)))}, nil, 1009},
	{"a larger one in fragments", [][]byte{frameOf(0x01, string(make([]byte, protocol.MaxRequestBytes))), frameOf(0x80, "x")}, nil, 1009},
	{"close", [][]byte{frameOf(0x88, ""), frameOf(0x81, "late")}, nil, 1000},
	{"close with a code", [][]byte{frameOf(0x88, "\x03\xe9bye")}, nil, 1000},
	{"close with a private code", [][]byte{frameOf(0x88, "\x0f\xa1")}, nil, 1000},
	{"close with one byte", [][]byte{frameOf(0x88, "\x03")}, nil, 1002},
	{"close with 999", [][]byte{frameOf(0x88, "\x03\xe7")}, nil, 1002},
	{"close with 1005", [][]byte{frameOf(0x88, "\x03\xed")}, nil, 1002},
	{"close with 1006", [][]byte{frameOf(0x88, "\x03\xee")}, nil, 1002},
	{"close with 1015", [][]byte{frameOf(0x88, "\x03\xf7")}, nil, 1002},
	{"close with 2999", [][]byte{frameOf(0x88, "\x0b\xb7")}, nil, 1002},
	{"close with 5000", [][]byte{frameOf(0x88, "\x13\x88")}, nil, 1002},
	{"close with no UTF-8", [][]byte{frameOf(0x88, "\x03\xe8\xff")}, nil, 1007},
	{"a fragmented close", [][]byte{frameOf(0x08, "\x03\xe8")}, nil, 1002},
}

func TestFrameRules(t *testing.T) {
	for _, c := range frameCases {
		stream := slices.Concat(c.frames...)
		for _, step := range []int{1, 3, 1 << 10, len(stream)} {
			if got := readFrames(stream, false, step); !slices.Equal(got.messages, c.messages) || got.code != c.code {
				t.Errorf("%s in pieces of %d: %d messages, %d; want %d, %d", c.name, step, len(got.messages), got.code, len(c.messages), c.code)
			}
		}
	}
}

// FuzzFrames: whatever a client sends and wherever it is cut, we hear what coder/websocket hears.
func FuzzFrames(f *testing.F) {
	for _, c := range frameCases {
		f.Add(slices.Concat(c.frames...), uint8(3), false)
		f.Add(slices.Concat(c.frames...), uint8(200), true)
	}
	f.Add(append(frameOf(0xc1, string(deflated(`{"op":"ping"}`))), frameOf(0x81, strings.Repeat("y", 300))...), uint8(3), true)
	f.Add([]byte("\xc1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"), uint8(1), true)
	f.Fuzz(func(t *testing.T, stream []byte, step uint8, deflate bool) {
		got, want := readFrames(stream, deflate, max(int(step), 1)), readCoder(t, stream, deflate)
		if whole := readFrames(stream, deflate, len(stream)); fmt.Sprint(whole) != fmt.Sprint(got) {
			t.Fatalf("whole: %+v\nparts: %+v", whole, got)
		}
		if slices.Equal(got.messages, want.messages) && slices.Equal(got.pings, want.pings) && (got.code == want.code || allowed(got, want)) {
			return
		}
		if got.early && got.code == protocol.CloseProtocol && slices.Equal(got.messages, want.messages[:min(len(got.messages), len(want.messages))]) {
			return // its inflater takes a cut-off message as it is
		}
		t.Fatalf("deflate %v, % x\ngot:  %+v\nwant: %+v", deflate, stream, got, want)
	})
}

// allowed are the differences on purpose: what is too large is refused by its header, the reason of a close is held to UTF-8,
// a header is judged when it is whole, and a deflated message is inflated when it is.
func allowed(got, want heard) bool {
	switch got.code {
	case 0:
		return got.early && (want.code == protocol.CloseProtocol || want.code == protocol.CloseTooBig)
	case protocol.CloseTooBig:
		return want.code == 0 || want.code == protocol.CloseProtocol
	case protocol.CloseInvalidUTF8:
		return want.code == protocol.CloseNormal
	}
	return false
}
