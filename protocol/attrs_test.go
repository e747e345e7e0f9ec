package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAttrs(t *testing.T) {
	names := []string{"level", "badge", "vip", "a", "b", "c", "d", "e", "f"}
	for text, want := range map[string]string{ // attributes, or the beginning of what is wrong with them
		`{}`: "",
		`{"level": 12, "badge":"金 & <b>", "vip" : true}`: `{"badge":"金 & <b>","level":12,"vip":true}`,
		`{"level":-0}`:               `{"level":0}`,
		`{"level":9007199254740993}`: "attrs.level: allowed is a printable text",
		`{"level":1.5}`:              "attrs.level: ",
		`{"level":null}`:             "attrs.level: ",
		`{"level":[1]}`:              "attrs.level: ",
		`{"level":""}`:               "attrs.level: ",
		`{"badge":"a\u202eb"}`:       "attrs.badge: ",
		`{"rank":1}`:                 "attrs: allowed is names of protocol.attributes: level, badge",
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"level":1,"vip":1,"badge":1}`: "attrs: allowed is at most 8",
		`{"badge":"` + strings.Repeat("x", 244) + `"}`:                      `{"badge":"` + strings.Repeat("x", 244) + `"}`,
		`{"badge":"` + strings.Repeat("x", 245) + `"}`:                      "attrs: allowed is at most 256 bytes",
	} {
		var given map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			t.Fatal(err)
		}
		a, err := ParseAttrs(given, names)
		got := string(a)
		if err != nil {
			got = err.Detail
		}
		if got != want && (err == nil || want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%.60s: %s", text, got)
		}
	}
}

// Attributes are in the event as they were encoded, and come back out of it.
func TestAttrsRideOnWhatIsSaid(t *testing.T) {
	u := User{ID: "u", Attrs: `{"badge":"<金>","level":12}`}
	said := AppendDanmaku(nil, Danmaku{MID: "m", User: u, Text: "hi", TS: 7})
	if want := `{"ev":"danmaku","mid":"m","user":{"id":"u","attrs":{"badge":"<金>","level":12}},"text":"hi","ts":7}`; string(said) != want {
		t.Errorf("have %s\nwant %s", said, want)
	}
	if by, ok := EventUser(said); by.ID != "u" || by.Role != RoleViewer || !ok {
		t.Error(by, ok)
	}
	dst := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { AppendDanmaku(dst, Danmaku{MID: "m", User: u, Text: "hi", TS: 7}) }); n != 0 {
		t.Errorf("%v allocations a danmaku", n)
	}
	gift, err := ParseGift(AppendGift(nil, Gift{User: u, Gift: "rose", Count: 1, TS: 7}))
	if err != nil || gift.User != u {
		t.Errorf("%+v, %v", gift, err)
	}
	if b, err := json.Marshal(User{ID: "u"}); err != nil || string(b) != `{"id":"u"}` {
		t.Errorf("%s, %v", b, err)
	}
	var welcome struct{ User Self }
	if err := json.Unmarshal(AppendWelcome(nil, Welcome{User: Self{ID: "u", Attrs: u.Attrs}}), &welcome); err != nil || fmt.Sprint(welcome.User.Attrs) == "" {
		t.Errorf("%+v, %v", welcome, err)
	}
}
