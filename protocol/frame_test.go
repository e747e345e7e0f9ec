package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// parseFrame is a reader of RFC 6455 frames that shares no code with the writer.
func parseFrame(b []byte) (payload []byte, err error) {
	if len(b) < 2 || b[0] != 0x81 {
		return nil, fmt.Errorf("first byte %x", b[:1])
	}
	n, rest := uint64(b[1]), b[2:]
	switch {
	case n == 126:
		n, rest = uint64(binary.BigEndian.Uint16(rest)), rest[2:]
		if n < 126 {
			return nil, fmt.Errorf("length %d in a long header", n)
		}
	case n == 127:
		n, rest = binary.BigEndian.Uint64(rest), rest[8:]
		if n < 1<<16 {
			return nil, fmt.Errorf("length %d in a very long header", n)
		}
	case n > 127:
		return nil, fmt.Errorf("masked")
	}
	if uint64(len(rest)) != n {
		return nil, fmt.Errorf("length %d, payload %d", n, len(rest))
	}
	return rest, nil
}

func TestFrameHeader(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 70000} {
		want := bytes.Repeat([]byte{'x'}, n)
		f := NewFrame(want)
		got, err := parseFrame(f.Bytes())
		if err != nil || !bytes.Equal(got, want) || !bytes.Equal(f.Payload(), want) || f.Len() != len(f.Bytes()) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if got := string(NewEventFrame([]byte(`{"a":1},{"a":2}`)).Payload()); got != `[{"a":1},{"a":2}]` {
		t.Error(got)
	}
}

// TestBatchForms: both forms are JSON arrays with exactly the events that belong in them, in order.
func TestBatchForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.SliceOfN(rapid.SampledFrom([]Class{ClassControl, ClassGift, ClassDanmaku, ClassLike}), 0, 300).Draw(t, "classes")
		var b Batch
		var full, essential []int
		for i, c := range classes {
			b.Add(c, fmt.Appendf(nil, "%d", i))
			full = append(full, i)
			if c.Essential() {
				essential = append(essential, i)
			}
		}
		size := b.Size()
		out := b.Build()
		if len(classes) == 0 {
			if out != nil {
				t.Fatal("a broadcast of nothing")
			}
			return
		}
		if b.Len() != 0 {
			t.Fatal("the batch is not empty")
		}
		if got := len(out.Full().Payload()); got != size {
			t.Fatalf("%d bytes, announced %d", got, size)
		}
		same(t, out.Full(), full)
		same(t, out.Essential(), essential)
		if again := out.Essential(); out.Essential() != again {
			t.Fatal("the essential form was built twice")
		}
	})
}

func same(t *rapid.T, f *Frame, want []int) {
	if f == nil {
		if len(want) > 0 {
			t.Fatalf("no frame, want %v", want)
		}
		return
	}
	payload, err := parseFrame(f.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestEssentialIsBuiltOnceByMany(t *testing.T) {
	var b Batch
	b.Add(ClassGift, []byte("1"))
	b.Add(ClassDanmaku, []byte("2"))
	out := b.Build()
	frames := make([]*Frame, 8)
	var wg sync.WaitGroup
	for i := range frames {
		wg.Go(func() { frames[i] = out.Essential() })
	}
	wg.Wait()
	for _, f := range frames {
		if f != frames[0] || string(f.Payload()) != "[1]" {
			t.Fatalf("%s", f.Payload())
		}
	}
}
