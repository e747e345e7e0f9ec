package conn

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"liveroom/protocol"
)

const (
	offerSafari   = "permessage-deflate"
	offerChromium = "permessage-deflate; client_max_window_bits"
	answerPlain   = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
)

func TestDeflateOffers(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	off := startNode(t, Config{}, newLobby())
	for _, c := range []struct{ offer, want string }{
		{offerSafari, answerPlain},
		{offerChromium, answerPlain},
		{"x-webkit-deflate-frame", ""}, // Safari before 13
		{"x-webkit-deflate-frame, permessage-deflate", answerPlain},
		{"permessage-deflate; client_max_window_bits=8", answerPlain},
		{`permessage-deflate; client_max_window_bits="10"`, answerPlain},
		{"permessage-deflate;server_no_context_takeover;client_no_context_takeover", answerPlain},
		{"permessage-deflate; server_max_window_bits=15", answerPlain + "; server_max_window_bits=15"},
		{"permessage-deflate; server_max_window_bits=10", ""},
		{"permessage-deflate; server_max_window_bits=10, permessage-deflate; client_max_window_bits", answerPlain},
		{"permessage-deflate; server_max_window_bits", ""},
		{"permessage-deflate; client_max_window_bits=7", ""},
		{"permessage-deflate; client_max_window_bits=16", ""},
		{"permessage-deflate; client_max_window_bits=08", ""},
		{"permessage-deflate; server_no_context_takeover=1", ""},
		{"permessage-deflate; client_no_context_takeover; client_no_context_takeover", ""},
		{"permessage-deflate; mux", ""},
		{"permessage-deflate;", ""},
		{"permessage-bzip2", ""},
		{"", ""},
	} {
		h := http.Header{}
		if c.offer != "" {
			h.Set("Sec-WebSocket-Extensions", c.offer)
		}
		for _, at := range []struct {
			n    *node
			want string
		}{{n, c.want}, {off, ""}} {
			resp := upgradeRequest(t, at.n, h)
			if got := resp.Header.Get("Sec-WebSocket-Extensions"); resp.StatusCode != 101 || got != at.want {
				t.Errorf("%q: got %d %q, want %q", c.offer, resp.StatusCode, got, at.want)
			}
		}
	}
	h := http.Header{"Sec-Websocket-Extensions": {offerSafari}, "Origin": {"https://evil.example.net"}}
	if resp := upgradeRequest(t, n, h); resp.StatusCode != 403 || resp.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Errorf("a refusal has %d %q", resp.StatusCode, resp.Header.Get("Sec-WebSocket-Extensions"))
	}
}

// rawJoinWith joins with an offer of extensions.
func rawJoinWith(t testing.TB, n *node, offer string) (*rawConn, *Session) {
	t.Helper()
	headers := ""
	if offer != "" {
		headers = "Sec-WebSocket-Extensions: " + offer + "\r\n"
	}
	c := rawUpgradeWith(t, rawSocket(t, n), headers, string(masked(opText, []byte(`{"op":"hello","id":"1","room":"demo"}`))))
	if got := c.readFrame(t); !bytes.Contains(got.payload, []byte("welcome")) {
		t.Fatalf("got %s", got.payload)
	}
	return c, <-n.lobby.arrived
}

// inflated reads a server's frame as RFC 7692 says, with another decompressor than ours.
func inflated(t failer, f rawFrame) []byte {
	t.Helper()
	if !f.deflated {
		return f.payload
	}
	b, err := io.ReadAll(flate.NewReader(io.MultiReader(bytes.NewReader(f.payload), strings.NewReader("\x00\x00\xff\xff"))))
	if err != nil && err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	return b
}

// deflated is a message as a client sends it that has negotiated permessage-deflate.
func deflated(message []byte, level int) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, level)
	_, _ = w.Write(message)
	_ = w.Flush()
	f := masked(opText, bytes.TrimSuffix(b.Bytes(), []byte(protocol.DeflateTail)))
	f[0] |= 0x40
	return f
}

// TestOneFrameForAll: viewers with and without the extension, quick and slow ones, see the same events; who has not
// negotiated it never sees RSV1, and what is too small for it is plain for everybody.
func TestOneFrameForAll(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	type viewer struct {
		c *rawConn
		s *Session
	}
	var viewers []viewer
	for _, offer := range []string{"", offerSafari, offerChromium, ""} {
		c, s := rawJoinWith(t, n, offer)
		viewers = append(viewers, viewer{c, s})
		if s.Deflates() != (offer != "") {
			t.Fatalf("%q: deflates %v", offer, s.Deflates())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := tickOf(rapid.IntRange(0, 30).Draw(t, "danmaku"), rapid.Uint64Range(0, 20).Draw(t, "gift"), rapid.Int64Range(0, 9).Draw(t, "likes"))
		if b == nil {
			return
		}
		before, after := n.deflateBytes()
		for _, v := range viewers {
			v.s.Deliver(b)
		}
		want, rsv1 := b.Full().Payload(), b.FullDeflated() != b.Full()
		for _, v := range viewers {
			f := v.c.readFrame(t)
			if f.deflated != (rsv1 && v.s.Deflates()) {
				t.Fatalf("deflated %v", f.deflated)
			}
			if got := inflated(t, f); !bytes.Equal(got, want) {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		in, out := n.deflateBytes()
		if in, out = in-before, out-after; rsv1 && (in != 2*uint64(b.Full().Len()) || out != 2*uint64(b.FullDeflated().Len())) || !rsv1 && in+out != 0 {
			t.Fatalf("%d bytes became %d", in, out)
		}
	})
	if got := testutil.ToFloat64(n.cfg.Metrics.deflating); got != 2 {
		t.Fatalf("%v sessions deflate", got)
	}
}

func (n *node) deflateBytes() (in, out uint64) {
	m := n.cfg.Metrics
	for i := range m.stripes {
		in += m.stripes[i].inflated.Load()
		out += m.stripes[i].deflated.Load()
	}
	return in, out
}

// A slow viewer's queue holds the deflated forms, and what it is told in the end adds up.
func TestSlowViewerGetsDeflatedForms(t *testing.T) {
	n := startNode(t, Config{Deflate: true, QueueFrames: 2, UnsentBytes: 1 << 10}, newLobby())
	c, s := rawJoinWith(t, n, offerChromium)
	gifts, sent := 0, 0
	random := rand.New(rand.NewPCG(1, 2))
	for s.Stats().Missed == 0 || s.Stats().QueuedFrames < 20 {
		var b protocol.Batch
		for range 100 { // text that hardly shrinks, so that the kernel's buffers fill
			text := strconv.FormatUint(random.Uint64(), 36) + strconv.FormatUint(random.Uint64(), 36)
			b.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "m", User: protocol.User{ID: "u"}, Text: text, TS: 1}))
			b.Add(protocol.ClassGift, []byte(`{"ev":"gift","gift":"`+text+`"}`))
		}
		s.Deliver(b.Build())
		gifts += 100
		sent += 100
	}
	s.Control([]byte(`{"ev":"pong","id":"end"}`))
	got, missed, ended := 0, 0, false
	for got < gifts || !ended || missed == 0 {
		f := c.readFrame(t)
		for _, e := range decode(t, inflated(t, f)) {
			switch {
			case e.Ev == "gift":
				got++
			case e.Ev == "danmaku":
				sent--
			case e.Ev == "missed":
				missed += e.Danmaku
			case e.ID == "end":
				ended = true
			}
		}
	}
	if sent != missed {
		t.Fatalf("%d danmaku did not come, %d were announced as missed", sent, missed)
	}
	if in, out := n.deflateBytes(); out == 0 || out >= in {
		t.Fatalf("%d bytes became %d", in, out)
	}
}

// coder's client, which offers permessage-deflate in another form and deflates what it sends.
func TestCoderClientDeflates(t *testing.T) {
	for _, mode := range []websocket.CompressionMode{websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		n := startNode(t, Config{Deflate: true}, newLobby())
		ws := n.dial(t, &websocket.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
		send(t, ws, `{"op":"hello","id":"1","room":"demo"}`)
		if got := receive(t, ws); got[0].Ev != "welcome" {
			t.Fatalf("got %+v", got)
		}
		s := <-n.lobby.arrived
		for range 3 {
			send(t, ws, `{"op":"like","id":"`+strings.Repeat("a", 64)+`"}`)
			if got := receive(t, ws); got[0].Code != 200 {
				t.Fatalf("got %+v", got)
			}
			s.Deliver(tickOf(20, 2, 1))
			if got := receive(t, ws); len(got) != 22 {
				t.Fatalf("%d events", len(got))
			}
		}
	}
}
