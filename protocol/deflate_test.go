package protocol

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// inflateFrame reads a frame as a client does that has negotiated permessage-deflate; it shares no code with the writer.
func inflateFrame(b []byte) (payload []byte, deflated bool, err error) {
	if len(b) < 2 || b[0]&^0x40 != 0x81 {
		return nil, false, fmt.Errorf("first bytes %x", b[:min(2, len(b))])
	}
	deflated = b[0]&0x40 != 0
	raw, err := parseFrame(append([]byte{0x81}, b[1:]...))
	if err != nil || !deflated {
		return raw, deflated, err
	}
	// RFC 7692, section 7.2.2; the reader meets the end of the input where a final block would have been.
	r := flate.NewReader(io.MultiReader(bytes.NewReader(raw), strings.NewReader("\x00\x00\xff\xff")))
	payload, err = io.ReadAll(r)
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return payload, deflated, err
}

// FuzzDeflate: whatever the payload, the deflated form says the same, is never larger, and never keeps the tail.
func FuzzDeflate(f *testing.F) {
	for _, n := range []int{0, 1, minDeflateBytes - 1, minDeflateBytes, 125, 126, 1 << 16, 100_000} {
		f.Add([]byte(strings.Repeat("弹幕 ", n/7+1))[:n])
	}
	f.Add([]byte(strings.Repeat("\x00\x00\xff\xff", 100)))
	f.Fuzz(func(t *testing.T, payload []byte) {
		plain := NewFrame(payload)
		d := Deflate(plain)
		got, deflated, err := inflateFrame(d.Bytes())
		if err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%d bytes came back as %d: %v", len(payload), len(got), err)
		}
		switch {
		case !deflated && d != plain:
			t.Fatal("a plain frame was copied")
		case !deflated:
			return
		case len(payload) < minDeflateBytes:
			t.Fatalf("deflated at %d bytes", len(payload))
		case d.Len()-d.header > len(payload)-len(payload)/minDeflateGain:
			t.Fatalf("%d bytes became %d", len(payload), len(d.Payload()))
		case bytes.HasSuffix(d.Payload(), []byte(DeflateTail)):
			t.Fatal("the tail was sent")
		}
		if again := Deflate(plain); !bytes.Equal(again.Bytes(), d.Bytes()) {
			t.Fatal("a frame depends on the one before: context was taken over")
		}
	})
}

// TestBroadcastForms: all four forms say what belongs in them, whoever asks first and however many ask at once, and each
// is built once.
func TestBroadcastForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes := rapid.SliceOfN(rapid.SampledFrom([]Class{ClassControl, ClassGift, ClassDanmaku, ClassLike}), 1, 60).Draw(t, "classes")
		text := rapid.SampledFrom([]string{"", "x", strings.Repeat("来了 ", 30)}).Draw(t, "text")
		keepPlain := rapid.Bool().Draw(t, "plain")
		var b Batch
		var full, essential []int
		for i, c := range classes {
			b.Add(c, fmt.Appendf(nil, `{"n":%d,"text":%q}`, i, text))
			full = append(full, i)
			if c.Essential() {
				essential = append(essential, i)
			}
		}
		out := b.Build()
		if keepPlain {
			out.KeepPlain()
		}
		forms := []func() *Frame{out.Full, out.FullDeflated, out.Essential, out.EssentialDeflated}
		want := [][]int{full, full, essential, essential}
		got := make([]*Frame, 24) // every form by several viewers at once
		asked := rapid.SliceOfN(rapid.IntRange(0, len(forms)-1), len(got), len(got)).Draw(t, "asked")
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = forms[asked[i]]() })
		}
		wg.Wait()
		for i, f := range got {
			form := asked[i]
			if f != forms[form]() {
				t.Fatalf("form %d was built twice", form)
			}
			if keepPlain && f != forms[form&^1]() {
				t.Fatalf("form %d was deflated in spite of KeepPlain", form)
			}
			sameNumbers(t, f, want[form], form%2 == 1 && !keepPlain)
		}
	})
}

func sameNumbers(t *rapid.T, f *Frame, want []int, mayDeflate bool) {
	if f == nil {
		if len(want) > 0 {
			t.Fatalf("no frame, want %v", want)
		}
		return
	}
	payload, deflated, err := inflateFrame(f.Bytes())
	if err != nil || deflated && !mayDeflate {
		t.Fatalf("deflated %v: %v", deflated, err)
	}
	var events []struct{ N int }
	if err := json.Unmarshal(payload, &events); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	var got []int
	for _, e := range events {
		got = append(got, e.N)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// TestFormsAllocateNothingPerViewer: once a form is there, asking for it is free.
func TestFormsAllocateNothingPerViewer(t *testing.T) {
	var b Batch
	for range 20 {
		b.Add(ClassGift, []byte(`{"ev":"gift","gift":"rose"}`))
	}
	out := b.Build()
	forms := func() { out.FullDeflated(); out.EssentialDeflated(); out.Full(); out.Essential() }
	forms()
	if n := testing.AllocsPerRun(100, forms); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	if out.FullDeflated().Len() >= out.Full().Len() {
		t.Fatal("nothing was deflated")
	}
}
