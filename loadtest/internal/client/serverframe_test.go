package client

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"liveroom/protocol"
)

// heard collects what feed hands on.
type heard struct {
	opcodes  []byte
	payloads [][]byte
}

func (h *heard) frame(opcode byte, payload []byte) {
	h.opcodes = append(h.opcodes, opcode)
	h.payloads = append(h.payloads, bytes.Clone(payload))
}

// serverFrame is one frame as a server may send it.
func serverFrame(fin bool, opcode byte, payload []byte) []byte {
	b := bytes.Clone(protocol.NewFrame(payload).Bytes())
	b[0] = opcode
	if fin {
		b[0] |= 0x80
	}
	return b
}

// conversation is a stream with frames of every length of header, fragments, and control frames between them.
func conversation() (stream []byte, want [][]byte) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536} {
		p := bytes.Repeat([]byte{'x'}, n)
		stream = append(stream, serverFrame(true, OpText, p)...)
		want = append(want, p)
	}
	stream = append(stream, serverFrame(false, OpText, []byte("one "))...)
	stream = append(stream, serverFrame(true, opPing, []byte("p"))...)
	stream = append(stream, serverFrame(false, opContinuation, []byte("two "))...)
	stream = append(stream, serverFrame(true, opContinuation, []byte("three"))...)
	stream = append(stream, serverFrame(true, OpClose, []byte{0x0f, 0xa1})...)
	return stream, append(want, []byte("p"), []byte("one two three"), []byte{0x0f, 0xa1})
}

func TestFeedFindsFramesHoweverTheyAreCut(t *testing.T) {
	stream, want := conversation()
	for _, size := range []int{1, 7, 100, 4096, len(stream)} {
		var in inbound
		var h heard
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			if err := in.feed(rest[:n], &h); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if len(h.payloads) != len(want) {
			t.Fatalf("in pieces of %d: %d frames, want %d", size, len(h.payloads), len(want))
		}
		for i := range want {
			if !bytes.Equal(h.payloads[i], want[i]) {
				t.Errorf("in pieces of %d: frame %d has %d bytes, want %d", size, i, len(h.payloads[i]), len(want[i]))
			}
		}
	}
}

func TestFeedRefusesWhatAServerMustNotSend(t *testing.T) {
	for name, bad := range map[string][]byte{
		"masked":       appendClientFrame(nil, OpText, 1, []byte("x")),
		"reserved bit": {0xc1, 0x00},
		"huge":         binary.BigEndian.AppendUint64([]byte{0x81, 127}, 1<<62),
	} {
		var in inbound
		if in.feed(bad, &heard{}) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzFeed(f *testing.F) {
	stream, _ := conversation()
	f.Add(stream[:400], uint64(1))
	f.Add([]byte{0x81, 0x02, 'h', 'i', 0x89, 0x00}, uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		var whole, cut inbound
		var a, b heard
		wholeErr := whole.feed(data, &a)
		rng := rand.New(rand.NewPCG(seed, seed))
		var cutErr error
		for rest := data; len(rest) > 0 && cutErr == nil; {
			n := 1 + rng.IntN(len(rest))
			cutErr = cut.feed(rest[:n], &b)
			rest = rest[n:]
		}
		if (wholeErr == nil) != (cutErr == nil) {
			t.Fatalf("whole: %v, in pieces: %v", wholeErr, cutErr)
		}
		if !bytes.Equal(a.opcodes, b.opcodes) {
			t.Fatalf("whole: %v, in pieces: %v", a.opcodes, b.opcodes)
		}
	})
}

func TestClientFramesDecode(t *testing.T) {
	w := NewWriter(NewRand(3))
	for name, c := range map[string]struct {
		frame []byte
		want  protocol.Op
	}{
		"hello":   {bytes.Clone(w.hello("room-1", "a.b.c")), protocol.OpHello},
		"danmaku": {bytes.Clone(w.Danmaku("abc", 77, "主播晚上好")), protocol.OpDanmaku},
		"gift":    {bytes.Clone(w.gift("abc", 78, "rose")), protocol.OpGift},
		"like":    {bytes.Clone(w.like("abc", 79, 5)), protocol.OpLike},
	} {
		var r protocol.Request
		if err := protocol.DecodeRequest(unmask(t, c.frame), &r); err != nil || r.Op != c.want || r.ID == "" {
			t.Errorf("%s reads as %+v (%v)", name, r, err)
		}
	}
	if b := unmask(t, appendClientFrame(nil, OpText, 9, make([]byte, 70000))); len(b) != 70000 {
		t.Errorf("a long frame has %d bytes", len(b))
	}
}

// unmask reads a client's frame as a server does.
func unmask(t *testing.T, b []byte) []byte {
	t.Helper()
	b = bytes.Clone(b)
	if b[1]&0x80 == 0 {
		t.Fatal("a client must mask its frames")
	}
	b[1] &^= 0x80
	h, ok, err := readHeader(b, false)
	if !ok || err != nil {
		t.Fatalf("no header: %v", err)
	}
	key, payload := b[h.size:h.size+4], b[h.size+4:]
	if len(payload) != h.payload {
		t.Fatalf("%d bytes of payload, the header says %d", len(payload), h.payload)
	}
	for i := range payload {
		payload[i] ^= key[i&3]
	}
	return payload
}

func TestDeflatedFramesNeedAnAgreement(t *testing.T) {
	deflated := protocol.Deflate(protocol.NewFrame(bytes.Repeat([]byte("x"), 1000))).Bytes()
	if _, _, err := readHeader(deflated, false); err != errReservedBit {
		t.Errorf("without: %v", err)
	}
	h, ok, err := readHeader(deflated, true)
	if err != nil || !ok || h.opcode != OpText|opDeflated || h.size+h.payload != len(deflated) {
		t.Errorf("with: %+v %v", h, err)
	}
	for _, first := range []byte{0x41, 0xc0, 0xc9, 0xc2} {
		if _, _, err := readHeader([]byte{first, 0}, true); err != errDeflatedFragment {
			t.Errorf("%#x: %v", first, err)
		}
	}
}
