package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestEventsOnTheWire(t *testing.T) {
	ann := User{ID: "u1", Name: "Ann"}
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"danmaku", AppendDanmaku(nil, Danmaku{MID: "m1", User: ann, Text: "hello", Color: White, Mode: ModeScroll, TS: 1790000000000}),
			`{"ev":"danmaku","mid":"m1","user":{"id":"u1","name":"Ann"},"text":"hello","ts":1790000000000}`},
		{"danmaku with everything", AppendDanmaku(nil, Danmaku{MID: "m1", User: User{ID: "h", Name: "h", Role: RoleHost}, Text: `"\<` + "\u2028", Color: "#ff0000", Mode: ModeTop, TS: 1}),
			`{"ev":"danmaku","mid":"m1","user":{"id":"h","role":"host"},"text":"\"\\<` + "\u2028" + `","color":"#ff0000","mode":"top","ts":1}`},
		{"gift", AppendStoredGift(nil, StoredGift{Seq: 42, Prev: 41, Event: AppendGift(nil, Gift{User: ann, Gift: "rose", Count: 3, Combo: 6, TS: 7})}),
			`{"ev":"gift","mid":"g42","seq":42,"prev":41,"user":{"id":"u1","name":"Ann"},"gift":"rose","count":3,"combo":6,"ts":7}`},
		{"like", AppendLike(nil, 120, 4567), `{"ev":"like","delta":120,"total":4567}`},
		{"online", AppendOnline(nil, 12, 9), `{"ev":"online","count":12,"people":9}`},
		{"missed", AppendMissed(nil, 37), `{"ev":"missed","danmaku":37}`},
		{"deleted", AppendDeleted(nil, "m1"), `{"ev":"deleted","mid":"m1"}`},
		{"muted", AppendMuted(nil, 600), `{"ev":"muted","seconds":600}`},
		{"announce", AppendAnnounce(nil, "hi"), `{"ev":"announce","text":"hi"}`},
		{"pong", AppendPong(nil, "c11", 5), `{"ev":"pong","id":"c11","time":5}`},
		{"pong without id", AppendPong(nil, "", 5), `{"ev":"pong","time":5}`},
		{"room", AppendRoom(nil, RoomState{ID: "demo", Title: "T", SlowModeMS: 5000}), `{"ev":"room","title":"T","slow_mode_ms":5000,"closed":false,"pinned":null}`},
		{"ack", AppendAck(nil, Ack{ID: "c7", Code: OK, MID: "m1", TS: 9}, English), `{"ev":"ack","id":"c7","code":200,"mid":"m1","ts":9}`},
		{"ack of a gift", AppendAck(nil, Ack{ID: "c8", Code: OK, MID: GiftMID(42), Seq: 42, Duplicate: true}, English), `{"ev":"ack","id":"c8","code":200,"mid":"g42","seq":42,"duplicate":true}`},
		{"degraded", AppendAck(nil, Ack{ID: "c7", Code: Degraded, MID: "m", Err: &Error{Reason: ReasonRoomBusy}}, ParseLang("zh")),
			`{"ev":"ack","id":"c7","code":202,"reason":"room_busy","mid":"m","msg":"房间太热闹了：这条消息仅自己可见"}`},
		{"folded", AppendAck(nil, Ack{ID: "c9", Code: Degraded, Counted: 3, Err: &Error{Reason: ReasonFolded}}, English),
			`{"ev":"ack","id":"c9","code":202,"reason":"folded","counted":3,"msg":"Counted in part"}`},
		{"limited", AppendAck(nil, Refuse("c7", &Error{Reason: ReasonRateLimited, Scope: "user", Rule: "danmaku-user", RetryAfter: 849*time.Millisecond + 1}), ParseLang("zh")),
			`{"ev":"ack","id":"c7","code":429,"reason":"rate_limited","scope":"user","rule":"danmaku-user","retry_after_ms":850,"msg":"访问过于频繁，请稍后再试"}`},
		{"outcome", AppendAck(nil, Refuse("c8", &Error{Reason: ReasonTryLater, Outcome: OutcomeUnknown, RetryAfter: 1200 * time.Millisecond}), English),
			`{"ev":"ack","id":"c8","code":503,"reason":"try_later","outcome":"unknown","retry_after_ms":1200,"msg":"Please try again in a moment"}`},
		{"error", AppendError(nil, BadField("op", "x", "y"), English), `{"ev":"error","code":400,"reason":"bad_request","msg":"The request can't be read: op: allowed is x; received \"y\""}`},
		{"http answer", AppendAnswer(nil, Ack{ID: "c7", Code: OK, MID: "m1", TS: 9}, English), `{"id":"c7","code":200,"mid":"m1","ts":9}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if string(tt.got) != tt.want {
				t.Errorf("got  %s\nwant %s", tt.got, tt.want)
			}
			if !json.Valid(tt.got) {
				t.Error("not JSON")
			}
		})
	}
}

// TestDanmakuEventSize pins the contract's size: a danmaku of twenty characters is at most 150 bytes.
func TestDanmakuEventSize(t *testing.T) {
	ev := AppendDanmaku(nil, Danmaku{MID: NewMIDs().Next(), User: User{ID: "guest-3f9a2c", Name: "Guest 3f9a"}, Text: strings.Repeat("a", 20), TS: 1790000000000})
	if len(ev) > 150 {
		t.Errorf("%d bytes: %s", len(ev), ev)
	}
}

func TestEventHeadAndTail(t *testing.T) {
	ev := AppendDanmaku(nil, Danmaku{MID: "m-1", User: User{ID: "u1"}, Text: `"ts":5}`, TS: 1790000000000})
	if got := EventTS(ev); got != 1790000000000 {
		t.Errorf("EventTS = %d", got)
	}
	if got := EventMID(ev); got != "m-1" {
		t.Errorf("EventMID = %q", got)
	}
	for _, s := range []string{"", "}", "5}", `{"ev":"online","count":12}`, `{"ev":"danmaku","mid":"`} {
		if EventTS([]byte(s)) != 0 || EventMID([]byte(s)) != "" {
			t.Errorf("%q has neither", s)
		}
	}
}

func TestParseGiftReadsWhatAppendGiftWrote(t *testing.T) {
	want := Gift{User: User{ID: "u1", Name: "Ann <b>", Role: RoleHost}, Gift: "rose", Count: 3, Combo: 6, TS: 1790000000000}
	got, err := ParseGift(AppendGift(nil, want))
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ParseGift([]byte("{")); err == nil {
		t.Error("half an event was accepted")
	}
}

func TestWelcomeIsOneEvent(t *testing.T) {
	b := AppendWelcome(nil, Welcome{ID: "1", Room: RoomState{ID: "demo"}, Recovered: Recovered{Gift: true, Chat: true}})
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil || m["ev"] != "welcome" || m["id"] != "1" {
		t.Errorf("%s: %v", b, err)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\\u2028", "\xff", "好😀", "\n\r\t\b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		b := appendString(nil, s)
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q became %q", s, back)
		}
	})
}

func FuzzParseGift(f *testing.F) {
	f.Add(AppendGift(nil, Gift{User: User{ID: "u1", Name: "Ann"}, Gift: "rose", Count: 3, Combo: 6, TS: 7}))
	f.Add([]byte(`{"user":null,"count":1e9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGift(b)
		if err != nil {
			return
		}
		if _, err := ParseGift(AppendGift(nil, g)); err != nil {
			t.Fatalf("%s does not survive: %v", b, err)
		}
	})
}

func BenchmarkAppendDanmaku(b *testing.B) {
	d := Danmaku{MID: "00000000000", User: User{ID: "u1", Name: "Ann"}, Text: "主播加油，今晚一定要赢", TS: 1790000000000}
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendDanmaku(buf[:0], d)
	}
}
