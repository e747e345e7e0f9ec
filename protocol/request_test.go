package protocol

import (
	"strings"
	"testing"
)

func TestDecodeRequest(t *testing.T) {
	tests := []struct {
		name, frame string
		id          string // readable id
		detail      string // part of the error; "" for none
	}{
		{"hello", `{"op":"hello","id":"1","room":"demo"}`, "1", ""},
		{"resume", `{"op":"hello","id":"1","room":"demo","resume":{"gift":41,"chat":1790000000000}}`, "1", ""},
		{"room with a dot", `{"op":"hello","id":"1","room":"a.b"}`, "1", "room: allowed"},
		{"room too long", `{"op":"hello","id":"1","room":"` + strings.Repeat("a", 65) + `"}`, "1", "room: allowed"},
		{"negative gift cursor", `{"op":"hello","id":"1","room":"demo","resume":{"gift":-1}}`, "1", "resume.gift: allowed is a whole number from 0"},
		{"negative chat cursor", `{"op":"hello","id":"1","room":"demo","resume":{"chat":-1}}`, "1", "resume.chat: allowed"},
		{"danmaku", `{"op":"danmaku","id":"c7","text":"hello","color":"#FF0000","mode":"top"}`, "c7", ""},
		{"mode", `{"op":"danmaku","id":"c7","text":"hello","mode":"left"}`, "c7", `mode: allowed is scroll, top or bottom; received "left"`},
		{"color", `{"op":"danmaku","id":"c7","text":"hello","color":"red"}`, "c7", "color: allowed"},
		{"color with sign", `{"op":"danmaku","id":"c7","text":"hello","color":"#+12345"}`, "c7", "color: allowed"},
		{"gift", `{"op":"gift","id":"c8","gift":"rose","count":3}`, "c8", ""},
		{"gift without count", `{"op":"gift","id":"c8","gift":"rose"}`, "c8", ""},
		{"negative count", `{"op":"gift","id":"c8","gift":"rose","count":-1}`, "c8", "count: allowed is 1 to 9999; received"},
		{"gift of none", `{"op":"gift","id":"c8","gift":"rose","count":0}`, "c8", `count: allowed is 1 to 9999; received "0"`},
		{"no likes", `{"op":"like","id":"c9","count":0}`, "c9", `count: allowed is 1 to 20; received "0"`},
		{"gift id", `{"op":"gift","id":"c8","gift":"ro se"}`, "c8", "gift: allowed"},
		{"21 likes", `{"op":"like","id":"c9","count":21}`, "c9", `count: allowed is 1 to 20; received "21"`},
		{"count is text", `{"op":"like","id":"c9","count":"many"}`, "c9", "count: allowed is a whole number; received string"},
		{"count is a fraction", `{"op":"like","id":"c9","count":1.5}`, "c9", "count: allowed is a whole number"},
		{"type fault before the id", `{"op":"like","count":"many","id":"c9"}`, "c9", "count: allowed"},
		{"ping without id", `{"op":"ping"}`, "", ""},
		{"no id", `{"op":"danmaku","text":"x"}`, "", "id: allowed is 1 to 64 of"},
		{"bad id", `{"op":"danmaku","id":"a b","text":"x"}`, "", "id: allowed"},
		{"id is a number", `{"op":"danmaku","id":7,"text":"x"}`, "", "id: allowed is a string; received number"},
		{"unknown op", `{"op":"dance","id":"1"}`, "1", "op: allowed is one of hello, gift, danmaku"},
		{"refresh without token", `{"op":"refresh","id":"1"}`, "1", "token: allowed"},
		{"mute", `{"op":"moderate","id":"1","action":"mute","user":"u7","seconds":600}`, "1", ""},
		{"mute for ever", `{"op":"moderate","id":"1","action":"mute","user":"u7"}`, "1", "seconds: allowed is 1 to"},
		{"ban for ever", `{"op":"moderate","id":"1","action":"ban","user":"u7"}`, "1", ""},
		{"delete nothing", `{"op":"moderate","id":"1","action":"delete"}`, "1", "mid: allowed"},
		{"unknown action", `{"op":"moderate","id":"1","action":"tickle"}`, "1", "action: allowed is one of mute"},
		{"unknown fields are for newer servers", `{"op":"like","id":"1","sparkle":true}`, "1", ""},
		{"array", `[1]`, "", "frame: allowed is one JSON object"},
		{"not JSON", `{"op":`, "", "frame: allowed is one JSON object"},
		{"two objects", `{"op":"ping"}{"op":"ping"}`, "", "frame: allowed is one JSON object"},
		{"null", `null`, "", "id: allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r Request
			err := DecodeRequest([]byte(tt.frame), &r)
			if r.ID != tt.id {
				t.Errorf("id %q, want %q", r.ID, tt.id)
			}
			switch {
			case tt.detail == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.detail != "" && (err == nil || !strings.Contains(err.Detail, tt.detail)):
				t.Errorf("got %v, want a detail with %q", err, tt.detail)
			}
		})
	}
}

func TestDecodeRequestDefaults(t *testing.T) {
	var r Request
	if err := DecodeRequest([]byte(`{"op":"danmaku","id":"1","text":"x","color":"#ABCDEF"}`), &r); err != nil {
		t.Fatal(err)
	}
	if r.Mode != ModeScroll || r.Color != "#abcdef" {
		t.Errorf("mode %q, color %q", r.Mode, r.Color)
	}
	if err := DecodeRequest([]byte(`{"op":"like","id":"1"}`), &r); err != nil || r.Count != 1 {
		t.Errorf("count %d, %v", r.Count, err)
	}
}

// FuzzDecodeRequest: whatever a stranger sends, an error comes with a reason and an id is never an invalid one.
func FuzzDecodeRequest(f *testing.F) {
	for _, s := range []string{
		`{"op":"hello","id":"1","room":"demo","token":"t","lang":"zh","resume":{"gift":41,"chat":1790000000000}}`,
		`{"op":"danmaku","id":"c7","text":"hello","color":"#ffffff","mode":"scroll"}`,
		`{"op":"gift","id":"c8","gift":"rose","count":3}`, `{"op":"like","id":"c9","count":5}`,
		`{"op":"moderate","id":"c12","action":"mute","user":"u7","seconds":600,"reason":"spam"}`,
		`{"op":"ping","id":"\ud800"}`, `[]`, `null`, `{"id":{}}`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var r Request
		err := DecodeRequest(frame, &r)
		if err != nil && (err.Reason != ReasonBadRequest || err.Detail == "") {
			t.Fatalf("%v", err)
		}
		if r.ID != "" && !ValidID(r.ID) {
			t.Fatalf("id %q", r.ID)
		}
		if err == nil && r.ID == "" && r.Op != OpPing {
			t.Fatal("accepted without an id")
		}
	})
}
