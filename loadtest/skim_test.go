package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"liveroom/protocol"
)

// decoded is an event as encoding/json reads it.
type decoded struct {
	Ev      string
	MID     string
	ID      string
	Text    string
	TS      int64
	Seq     uint64
	Prev    uint64
	Total   int64
	Code    int64
	Danmaku json.RawMessage
}

// sample is a frame with one of everything, with texts that try to look like keys.
func sample(evil string) []byte {
	user := protocol.User{ID: "u1", Name: evil}
	var b []byte
	b = protocol.AppendDanmaku(b, protocol.Danmaku{MID: "abcdefghijk", User: user, Text: evil, TS: 1790000000000})
	b = append(b, ',')
	gift := protocol.AppendGift(nil, protocol.Gift{User: user, Gift: "rose", Count: 3, Combo: 6, TS: 1790000000001})
	b = protocol.AppendStoredGift(b, protocol.StoredGift{Seq: 42, Prev: 41, Event: gift})
	b = append(b, ',')
	b = protocol.AppendLike(b, 120, 4567)
	b = append(b, ',')
	b = protocol.AppendMissed(b, 37)
	b = append(b, ',')
	pinned := protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "pinned", User: user, Text: evil, TS: 5})
	b = protocol.AppendRoom(b, protocol.RoomState{Title: evil, Pinned: pinned})
	b = append(b, ',')
	b = protocol.AppendAck(b, protocol.Ack{ID: "dxyz1", Code: protocol.OK, MID: "m", TS: 7, Seq: 9}, protocol.Chinese)
	return protocol.NewEventFrame(b).Payload()
}

// compare skims frame and decodes it, and reports where the two differ.
func compare(t *testing.T, frame []byte) {
	t.Helper()
	var want []decoded
	if err := json.Unmarshal(frame, &want); err != nil {
		t.Fatalf("the sample is no JSON: %v\n%s", err, frame)
	}
	i := 0
	ok := events(frame, func(name, event []byte) {
		if i >= len(want) {
			t.Fatalf("more events than the %d there are: %q", len(want), event)
		}
		w := want[i]
		i++
		if string(name) != w.Ev {
			t.Errorf("event %d is %q, want %q", i, name, w.Ev)
		}
		for _, f := range []struct {
			key  []byte
			want int64
		}{{keyTS, w.TS}, {keySeq, int64(w.Seq)}, {keyPrev, int64(w.Prev)}, {keyTotal, w.Total}, {keyCode, w.Code}} {
			if w.Ev == "room" {
				continue // its pinned event has a ts of its own
			}
			if got, _ := number(event, f.key); got != f.want {
				t.Errorf("%s of %s is %d, want %d", f.key, event, got, f.want)
			}
		}
		if w.Ev == "danmaku" {
			var raw string
			if err := json.Unmarshal(append(append([]byte{'"'}, text(event, keyText)...), '"'), &raw); err != nil || raw != w.Text {
				t.Errorf("text is %q (%v), want %q", raw, err, w.Text)
			}
		}
	})
	if !ok || i != len(want) {
		t.Errorf("skimmed %d events of %d, readable: %v", i, len(want), ok)
	}
}

func TestSkimmingReadsWhatJSONReads(t *testing.T) {
	for _, evil := range []string{"hello", `","ts":1,"x":"`, `{"ev":"danmaku"`, `},{"ev":"ack"`, `\`, `\\"`, "a\nb\t\x01", "主播 ~abc1", `"seq":7`, "]", "\u2028"} {
		compare(t, sample(evil))
	}
}

func FuzzSkim(f *testing.F) {
	f.Add("hello", []byte(`[{"ev":"danmaku"}]`))
	f.Add(`},{"ev":"ack","ts":3`, []byte(`[{"ev":"danmaku","text":"a\"}]`))
	f.Add("\\\"", []byte(`[{"ev":"`))
	f.Fuzz(func(t *testing.T, evil string, frame []byte) {
		compare(t, sample(evil))
		events(frame, func(name, event []byte) { // whatever comes, it must end and stay in bounds
			number(event, keyTS)
			text(event, keyText)
			kindOf(name)
		})
	})
}

func TestEventsRefusesWhatIsNoArray(t *testing.T) {
	for _, bad := range []string{"", "[", "{}", `[{"x":1}]`, `["ev"]`, `[{"ev":"x"`, `[{"ev":"]`} {
		if events([]byte(bad), func(_, _ []byte) {}) {
			t.Errorf("%q passed for a frame", bad)
		}
	}
	if !events([]byte("[]"), nil) {
		t.Error("an empty array is a frame")
	}
}

func TestMarkerComesBack(t *testing.T) {
	tg := tag{'a', '7', 'z'}
	for _, k := range []int{0, 1, 35, 36, 123456, maxAttempts - 1} {
		said := tg.appendMarker([]byte("hello ~ there"), k)
		if got := tg.marked(said); got != k {
			t.Errorf("%q: attempt %d, want %d", said, got, k)
		}
		if got := tg.attempt(tg.appendID(nil, gift, k)); got != k {
			t.Errorf("id of %d reads as %d", k, got)
		}
	}
	for _, other := range []string{"", "hello", "hello ~", "hello ~a7z", "x~a7z1", "hello ~b7z1", "hello ~a7z!", "hello ~a7z12345678901"} {
		if got := tg.marked([]byte(other)); got != -1 {
			t.Errorf("%q passes for attempt %d", other, got)
		}
	}
}

func TestDigestsRememberFrames(t *testing.T) {
	tr := newTrial(tag{'a', 'b', 'c'}, make(arrivals, 100), make([]class, 100), 0)
	frame := func(k int) []byte {
		said := string(tr.tag.appendMarker([]byte("hi"), k))
		return protocol.NewEventFrame(protocol.AppendDanmaku(nil, protocol.Danmaku{MID: "abcdefghij" + string(base36[k%36]), Text: said, TS: 9})).Payload()
	}
	var c digests
	for range 3 {
		for k := range 50 {
			d := c.of(frame(k), tr)
			if len(d.danmaku) != 1 || d.danmaku[0].attempt != k || d.counts[kindDanmaku] != 1 {
				t.Fatalf("frame %d is digested as %+v", k, d)
			}
		}
	}
	if d := c.of(frame(3), nil); len(d.danmaku) != 0 {
		t.Error("another trial's digest was used")
	}
	if n := testing.AllocsPerRun(100, func() { c.of(frameOf3, tr) }); n != 0 {
		t.Errorf("a frame met again costs %v allocations", n)
	}
}

var frameOf3 = []byte(`[{"ev":"danmaku","mid":"abcdefghij3","user":{"id":""},"text":"hi ~abc3","ts":9}]`)

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
	var body []byte
	for k := range 25 {
		if k > 0 {
			body = append(body, ',')
		}
		body = protocol.AppendDanmaku(body, protocol.Danmaku{MID: "abcdefghij" + string(base36[k]), User: protocol.User{ID: "u123", Name: "Viewer 123"},
			Text: corpus()[k] + " ~abc" + string(base36[k]), TS: 1790000000000})
	}
	frame := protocol.NewEventFrame(body).Payload()
	tr := newTrial(tag{'a', 'b', 'c'}, make(arrivals, 100), make([]class, 100), 0)
	b.Run("known", func(b *testing.B) {
		var c digests
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			c.of(frame, tr)
		}
	})
	b.Run("new", func(b *testing.B) {
		var d digest
		b.SetBytes(int64(len(frame)))
		b.ReportAllocs()
		for b.Loop() {
			d.read(frame, tr)
		}
	})
}
