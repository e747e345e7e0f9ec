package audience

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"liveroom/limit"
	"liveroom/protocol"
)

// A history against a list that forgets nothing.
func TestHistoryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history{most: rapid.IntRange(1, 20).Draw(t, "most")}
		var all []spoken // with nil events where a message was removed
		kept := 0        // of all, the newest
		ts := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				tail := all[len(all)-kept:]
				if h.size != kept || len(h.ring) > h.most {
					t.Fatalf("want %d kept, have %d in a ring of %d, at most %d", kept, h.size, len(h.ring), h.most)
				}
				for i := range tail {
					if got := h.at(i); got.ts != tail[i].ts || string(got.event) != string(tail[i].event) {
						t.Fatalf("%d: want %s, have %s", i, tail[i].event, got.event)
					}
				}
				var gone spoken
				if kept < len(all) {
					gone = all[len(all)-kept-1]
				}
				if h.gone.at != gone.at || h.gone.id() != gone.id() {
					t.Fatalf("gone: want %+v, have %+v", gone, h.gone)
				}
			},
			"say": func(t *rapid.T) {
				ts += int64(rapid.IntRange(1, 10).Draw(t, "later"))
				wrong := ts + int64(rapid.IntRange(-1000, 1000).Draw(t, "clock")) // of the writer
				s := spoken{protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprint(ts), TS: wrong}), "", wrong, limit.Instant(ts), nil}
				h.add(s)
				all = append(all, s)
				kept = min(kept+1, h.most)
			},
			"expire": func(t *rapid.T) {
				before := limit.Instant(ts) - limit.Instant(rapid.IntRange(0, 50).Draw(t, "age"))
				h.expire(before)
				for kept > 0 && all[len(all)-kept].at < before {
					kept--
				}
			},
			"remove": func(t *rapid.T) {
				if kept == 0 {
					return
				}
				i := len(all) - 1 - rapid.IntRange(0, kept-1).Draw(t, "back")
				mid := all[i].id()
				h.remove(mid)
				if h.find(mid) != nil {
					t.Fatalf("%s is still found", mid)
				}
				all[i].event, all[i].mid = nil, mid
			},
			"come back": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "seen")
				from, whole := h.left(&protocol.Cursor{Last: all[i].id(), Chat: all[i].ts}, limit.Instant(ts), func(limit.Instant) int64 { return 0 })
				if want := i >= len(all)-kept-1; whole != want || whole && i >= len(all)-kept && from != all[i].at {
					t.Fatalf("last seen %d of %d, of which %d are kept: whole %t, from %d", i, len(all), kept, whole, from)
				}
			},
			"read": func(t *rapid.T) {
				from, hidden := limit.Instant(ts)-limit.Instant(rapid.IntRange(0, 60).Draw(t, "age")), rapid.IntRange(0, 25).Draw(t, "hidden")
				events, _ := h.since(from, hidden)
				var want [][]byte
				for _, s := range all[len(all)-kept : max(len(all)-kept, len(all)-hidden)] {
					if s.at >= from && s.event != nil {
						want = append(want, s.event)
					}
				}
				if !slices.EqualFunc(events, want, func(a, b []byte) bool { return string(a) == string(b) }) {
					t.Fatalf("want %d events, have %d", len(want), len(events))
				}
			},
		})
	})
}

func TestAuthorsAreBounded(t *testing.T) {
	var a authors
	for i := range 3 * maxAuthored {
		a.note(protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprint(i), User: protocol.User{ID: "host", Role: protocol.RoleHost}, Text: "x"}))
	}
	if n := len(a); n != maxAuthored || a[n-1].mid != fmt.Sprint(3*maxAuthored-1) {
		t.Errorf("%d authors are kept, the last is of %s", n, a[n-1].mid)
	}
}
