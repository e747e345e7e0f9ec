package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"liveroom/protocol"
)

// TestEverythingIsReadFromAFrame has texts that try to look like keys and events.
func TestEverythingIsReadFromAFrame(t *testing.T) {
	for _, evil := range []string{"hello", `","ts":1,"x":"`, `},{"ev":"ack"`, `\`, "a\nb\t\x01", `"seq":7`, "]", "\u2028"} {
		tr := NewTrial("abc", make(Arrivals, 100), make([]Class, 100), 0)
		user := protocol.User{ID: "u1", Name: evil}
		said := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "abcdefghijk", User: user, Text: evil + tr.tag.marker(7), TS: 1790000000000})
		given := protocol.AppendGift(nil, protocol.Gift{User: user, Gift: "rose", Count: 3, Combo: 6, TS: 1790000000001})
		events := [][]byte{said, protocol.AppendStoredGift(nil, protocol.StoredGift{Seq: 42, Prev: 41, Event: given}), protocol.AppendLike(nil, 120, 4567),
			protocol.AppendMissed(nil, 37), protocol.AppendRoom(nil, protocol.RoomState{Title: evil, Pinned: said}), protocol.AppendOnline(nil, 5, 4),
			protocol.AppendAck(nil, protocol.Ack{ID: "dxyz1", Code: protocol.OK, MID: "m", TS: 7, Seq: 9}, protocol.ParseLang("zh"))}
		frame := protocol.NewEventFrame(bytes.Join(events, []byte{','}))
		var c digests
		for _, deflated := range []bool{false, true} {
			raw := frame.Payload()
			if deflated {
				raw = protocol.Deflate(frame).Payload()
			}
			d := c.of(raw, deflated, tr)
			want := Counters{Events: 7, Danmaku: 1, gifts: 1, likeEvents: 1, Missed: 37}
			if !d.readable || d.counts != want || d.total != 4567 || d.plain != len(frame.Payload()) {
				t.Errorf("%q: readable %v, %+v, total %d, %d bytes", evil, d.readable, d.counts, d.total, d.plain)
			}
			if len(d.danmaku) != 1 || d.danmaku[0] != (seenDanmaku{7, 1790000000000}) || d.gifts[0].Seq != 42 || d.gifts[0].Prev != 41 || d.gifts[0].TS != 1790000000001 {
				t.Errorf("%q: %+v, gifts %+v", evil, d.danmaku, d.gifts)
			}
			if len(d.private) != 1 || d.private[0].ID != "dxyz1" || d.private[0].Code != 200 || d.private[0].TS != 7 || d.private[0].Seq != 9 {
				t.Errorf("%q: %+v", evil, d.private)
			}
		}
	}
}

func TestWhatIsNoArrayOfEventsIsUnreadable(t *testing.T) {
	var c digests
	for _, bad := range []string{"", "[", "{}", `["ev"]`, `[{"ev":"x"`, `[{"ev":"]`} {
		if c.of([]byte(bad), false, nil).readable {
			t.Errorf("%q passed for a frame", bad)
		}
	}
	if !c.of([]byte("[]"), false, nil).readable {
		t.Error("an empty array is a frame")
	}
	if c.of([]byte{0xff, 0xff}, true, nil).readable {
		t.Error("what is no DEFLATE was read")
	}
}

func TestMarkerComesBack(t *testing.T) {
	tg := tag("a7z")
	for _, k := range []int{0, 1, 35, 36, 123456, maxAttempts - 1} {
		said := "hello ~ there" + tg.marker(k)
		if got := tg.marked(said); got != k {
			t.Errorf("%q: attempt %d, want %d", said, got, k)
		}
		if got := tg.attempt(tg.id(Gift, k)); got != k {
			t.Errorf("id of %d reads as %d", k, got)
		}
	}
	for _, other := range []string{"", "hello", "hello ~", "hello ~a7z", "x~a7z1", "hello ~b7z1", "hello ~a7z!", "hello ~a7z12345678901"} {
		if got := tg.marked(other); got != -1 {
			t.Errorf("%q passes for attempt %d", other, got)
		}
	}
}

func TestDigestsRememberFrames(t *testing.T) {
	tr := NewTrial("abc", make(Arrivals, 100), make([]Class, 100), 0)
	frame := func(k int) []byte {
		return protocol.NewEventFrame(protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprintf("abcdefghi%02d", k), Text: strings.Repeat("hi", 200) + tr.tag.marker(k), TS: 9})).Payload()
	}
	var c digests
	for range 3 {
		for k := range 100 {
			for _, deflated := range []bool{false, true} {
				raw := frame(k)
				if deflated {
					raw = protocol.Deflate(protocol.NewFrame(raw)).Payload()
				}
				if d := c.of(raw, deflated, tr); len(d.danmaku) != 1 || d.danmaku[0].attempt != k || d.counts.Danmaku != 1 {
					t.Fatalf("frame %d is digested as %+v", k, d)
				}
			}
		}
	}
	if d := c.of(frame(3), false, nil); len(d.danmaku) != 0 {
		t.Error("another trial's digest was used")
	}
	known := frame(3)
	if n := testing.AllocsPerRun(100, func() { c.of(known, false, tr) }); n != 0 {
		t.Errorf("a frame met again costs %v allocations", n)
	}
	var second [][]byte // of ticks, which viewers that lag read in turns
	for k := range 40 {
		second = append(second, frame(k))
	}
	inTurns := func() {
		for _, raw := range second {
			c.of(raw, false, tr)
		}
	}
	inTurns()
	if n := testing.AllocsPerRun(10, inTurns); n != 0 {
		t.Errorf("frames read in turns drive one another out: %v allocations a round", n)
	}
}

func TestCorpusNeedsNoEscape(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range corpus() {
		b, err := json.Marshal(line)
		if err != nil || string(b) != `"`+line+`"` || bytes.ContainsRune([]byte(line), '~') {
			t.Errorf("%q would be escaped, or looks like a marker", line)
		}
		if seen[line] {
			t.Errorf("%q is there twice", line)
		}
		seen[line] = true
	}
	if len(seen) < 80 {
		t.Errorf("%d lines are too few to look like a room", len(seen))
	}
}

func BenchmarkDigest(b *testing.B) {
	var said [][]byte
	for _, line := range corpus()[:25] {
		said = append(said, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "abcdefghijk", User: protocol.User{ID: "u123", Name: "Viewer 123"},
			Text: line + tag("abc").marker(7), TS: 1790000000000}))
	}
	frame := protocol.NewEventFrame(bytes.Join(said, []byte{','})).Payload()
	tr := NewTrial("abc", make(Arrivals, 100), make([]Class, 100), 0)
	var c digests
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		c.of(frame, false, tr)
	}
}
