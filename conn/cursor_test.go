package conn

import (
	"encoding/binary"
	"testing"
)

// frameAt is the reference: it reads one whole frame of a client's stream, all at once.
func frameAt(b []byte) (first byte, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, false
	}
	n, h := uint64(b[1]&0x7f), 2
	switch {
	case n == 126 && len(b) >= 4:
		n, h = uint64(binary.BigEndian.Uint16(b[2:])), 4
	case n == 127 && len(b) >= 10:
		n, h = binary.BigEndian.Uint64(b[2:]), 10
	case n >= 126:
		return 0, nil, false
	}
	if b[1]&0x80 != 0 {
		h += 4
	}
	if len(b) < h || uint64(len(b)-h) < n {
		return 0, nil, false
	}
	return b[0], b[h+int(n):], true
}

// FuzzCursor cuts any stream at any place: the cursor is between two messages exactly where the reference says.
func FuzzCursor(f *testing.F) {
	f.Add(masked(opText, []byte("hello")), uint16(3))
	f.Add(append(masked(opPing, nil), masked(opClose, []byte{3, 232})...), uint16(6))
	f.Add([]byte{0x01, 0x80, 0, 0, 0, 0, 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x80, 0, 0, 0, 0}, uint16(12))
	f.Add(masked(opText, make([]byte, 300)), uint16(200))
	f.Add([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9, 'x'}, uint16(9))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		k := min(int(cut), len(stream))
		var c cursor
		for _, p := range [][]byte{stream[:k/2], stream[k/2 : k]} {
			if n, err := c.pass(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		open, closed, rest := false, false, stream[:k]
		for len(rest) > 0 {
			first, more, ok := frameAt(rest)
			if !ok {
				break
			}
			rest = more
			if op := first & 0x0f; op == opClose {
				closed = true
			} else if op < 8 {
				open = first&0x80 == 0
			}
		}
		if want := len(rest) == 0 && !open; c.between() != want || c.closed != closed {
			t.Fatalf("between %v, want %v; closed %v, want %v; %d bytes of a frame at hand", c.between(), want, c.closed, closed, len(rest))
		}
	})
}
