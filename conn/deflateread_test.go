package conn

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"liveroom/protocol"
)

// ping is a request of exactly n bytes; with random text it does not deflate below its size by much.
func pingOf(n int, random bool) []byte {
	const head, tail = `{"op":"ping","id":"x","pad":"`, `"}`
	pad := strings.Repeat("y", n)
	if random {
		b := make([]byte, n)
		_, _ = rand.Read(b)
		for i := range b {
			b[i] = ' ' + 1 + b[i]%93
			if b[i] == '"' || b[i] == '\\' {
				b[i] = 'q'
			}
		}
		pad = string(b)
	}
	return []byte(head + pad[:n-len(head)-len(tail)] + tail)
}

// Of a deflated message, the limit is about what it inflates to: exactly the limit is accepted, however badly it deflates,
// and one byte more is not.
func TestInflatedLimit(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	const limit = protocol.MaxRequestBytes
	for _, c := range []struct {
		name  string
		frame []byte
		ok    bool
	}{
		{"exact", deflated(pingOf(limit, false), 6), true},
		{"exact, random", deflated(pingOf(limit, true), 6), true},
		{"exact, stored", deflated(pingOf(limit, true), flate.NoCompression), true},
		{"exact, plain", masked(opText, pingOf(limit, false)), true},
		{"one more", deflated(pingOf(limit+1, false), 6), false},
		{"one more, stored", deflated(pingOf(limit+1, true), flate.NoCompression), false},
		{"one more, plain", masked(opText, pingOf(limit+1, false)), false},
		{"far more, plain", masked(opText, pingOf(3*limit, false)), false},
	} {
		client, s := rawJoinWith(t, n, offerSafari)
		client.write(t, c.frame)
		f := client.readFrame(t)
		switch {
		case c.ok && (f.op != opText || !bytes.Contains(f.payload, []byte(`"pong","id":"x"`))):
			t.Errorf("%s: got %x %s", c.name, f.op, f.payload)
		case !c.ok && (f.op != opClose || f.code() != 1009):
			t.Errorf("%s: got %x %d", c.name, f.op, f.code())
		}
		s.Close(protocol.Refusal{Code: protocol.CloseNormal})
	}
}

// CASES 7: a small frame that inflates to much more than it is ends with 1009, and is never inflated to the end.
func TestDeflateBomb(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	small := deflated(bytes.Repeat([]byte("x"), 1<<20), 9) // as far as DEFLATE can go: 1,032 to 1
	megabyte := append(small[8:len(small):len(small)], protocol.DeflateTail...)
	large := masked(opText, bytes.Repeat(megabyte, 60)) // a header has room for 64 KiB here
	large[0] |= 0x40
	if len(small) > 1100 || len(large) > 1<<16 {
		t.Fatalf("%d and %d bytes", len(small), len(large))
	}
	if b, err := io.ReadAll(flate.NewReader(bytes.NewReader(megabyte))); len(b) != 1<<20 { // and so on, 60 times
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	explode := func(frame []byte) {
		client, _ := rawJoinWith(t, n, offerChromium)
		client.write(t, frame)
		if f := client.readFrame(t); f.op != opClose || f.code() != 1009 {
			t.Fatalf("got %x %d", f.op, f.code())
		}
		client.Close()
		eventually(t, func() bool { return n.sessions.Load() == 0 })
	}
	explode(small)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const rounds = 20
	for range rounds {
		explode(small)
	}
	// What a round inflates to would be a megabyte. All of a session, its client's side included, is much less.
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) / rounds; spent > 300<<10 {
		t.Fatalf("%d bytes were allocated for each", spent)
	}
	// One that is over the limit before it is inflated. Its sender may be cut off in the middle of it.
	client, _ := rawJoinWith(t, n, offerChromium)
	_, _ = client.Write(large)
	if f := client.readFrame(t); f.op != opClose || f.code() != 1009 {
		t.Fatalf("got %x %d", f.op, f.code())
	}
}

// What is wrong with a frame is told by the same codes as without the extension.
func TestDeflateFaults(t *testing.T) {
	with := func(frame []byte, first byte) []byte { frame[0] = first; return frame }
	hello := []byte(`{"op":"ping","id":"x"}`)
	for _, c := range []struct {
		name, offer string
		frame       []byte
		code        int
	}{
		{"RSV1 without negotiation", "", deflated(hello, 6), 1002},
		{"no DEFLATE", offerSafari, with(masked(opText, []byte("\xff\xff\xff\xff")), 0xc1), 1002},
		{"binary", offerSafari, with(masked(opText, hello), 0x82), 1008},
		{"binary, deflated", offerSafari, with(deflated(hello, 6), 0xc2), 1008},
		{"binary without negotiation", "", with(masked(opText, hello), 0x82), 1008},
		{"ping with RSV1", offerSafari, with(masked(opPing, nil), 0xc9), 1002},
		{"RSV2", offerSafari, with(masked(opText, hello), 0xa1), 1002},
		{"continuation of nothing", offerSafari, with(deflated(hello, 6), 0xc0), 1002},
		{"RSV1 in a continuation", offerSafari, append(with(masked(opText, hello), 0x01), with(masked(opText, hello), 0xc0)...), 1002},
		{"no UTF-8", offerSafari, deflated([]byte("{\"op\":\"\xff\"}"), 6), 1007},
	} {
		n := startNode(t, Config{Deflate: true}, newLobby())
		client, _ := rawJoinWith(t, n, c.offer)
		client.write(t, c.frame)
		if f := client.readFrame(t); f.op != opClose || f.code() != c.code {
			t.Errorf("%s: got %x %d, want %d", c.name, f.op, f.code(), c.code)
		}
	}
}

// A deflated message may come in fragments, with a ping between them, byte by byte, and empty ones count as messages.
func TestDeflatedFragments(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	client, _ := rawJoinWith(t, n, offerChromium)
	whole := deflated(pingOf(2000, false), 6)
	payload := whole[6:] // behind a header of 2 + 4 bytes
	if int(whole[1]&0x7f) != len(payload) {
		t.Fatalf("a header of another length: %x", whole[:8])
	}
	fragment := func(first byte, p []byte) []byte { f := masked(opText, p); f[0] = first; return f }
	var stream []byte
	stream = append(stream, fragment(0x41, payload[:5])...)
	stream = append(stream, masked(opPing, []byte("between"))...)
	stream = append(stream, fragment(0x00, nil)...)
	stream = append(stream, fragment(0x80, payload[5:])...)
	stream = append(stream, masked(opText, []byte(`{"op":"ping","id":"y"}`))...)
	stream = append(stream, whole...)
	for _, b := range stream {
		client.write(t, []byte{b})
	}
	for _, want := range []string{"between", `"id":"x"`, `"id":"y"`, `"id":"x"`} {
		if f := client.readFrame(t); !bytes.Contains(f.payload, []byte(want)) {
			t.Fatalf("got %s, want %s", f.payload, want)
		}
	}
}

// Frames over their limit are answered by their id, deflated or not.
func TestRefusedDeflatedFrameIsAnswered(t *testing.T) {
	n := startNode(t, Config{Deflate: true, Meter: &countingMeter{burst: 1, abuse: 9}}, newLobby())
	client, _ := rawJoinWith(t, n, offerSafari)
	client.write(t, deflated([]byte(`{"op":"like","id":"mine"}`), 6))
	if got := decode(t, client.readFrame(t).payload)[0]; got.Code != 429 || got.ID != "mine" {
		t.Fatalf("got %+v", got)
	}
}

// A session that has negotiated permessage-deflate, and has sent and received deflated messages, costs about as much as
// one that has not. The figure has both sides of the socket in it, which are alike.
func TestDeflatingSessionsCostNoMemory(t *testing.T) {
	cost := func(offer string) float64 {
		const sessions = 400
		n := startNode(t, Config{Deflate: true}, newLobby())
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		clients := make([]*rawConn, sessions)
		broadcast := tickOf(30, 1, 1)
		for i := range clients {
			c, s := rawJoinWith(t, n, offer)
			request := []byte(fmt.Sprintf(`{"op":"like","id":"%s"}`, hex.EncodeToString(make([]byte, 20))))
			frame := masked(opText, request)
			if s.Deflates() {
				frame = deflated(request, 6)
			}
			c.write(t, frame)
			c.readFrame(t)
			s.Deliver(broadcast)
			c.readFrame(t)
			c.buf = nil
			clients[i] = c
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(clients)
		for _, c := range clients {
			c.Close()
		}
		eventually(t, func() bool { return n.sessions.Load() == 0 })
		return (float64(after.HeapAlloc) - float64(before.HeapAlloc) + float64(after.StackInuse) - float64(before.StackInuse)) / sessions
	}
	cost("")
	plain, deflating := cost(""), cost(offerChromium)
	t.Logf("%.0f bytes without, %.0f with", plain, deflating)
	if deflating-plain > 1024 {
		t.Fatalf("%.0f bytes without, %.0f with", plain, deflating)
	}
}
