package protocol

import "testing"

func TestForgotten(t *testing.T) {
	ann, bob := User{ID: "ann", Name: "Nick", Role: RoleHost, Attrs: `{"level":3}`}, User{ID: "bob", Name: "Bob"}
	bare := User{ID: "ann", Role: RoleHost}
	danmaku := func(by User, to *User, ts int64) string {
		return string(AppendDanmaku(nil, Danmaku{MID: "m", User: by, Text: `"user":{"id":"ann","name":"Nick"}`, Reply: "r", ReplyTo: to, TS: ts}))
	}
	gift := func(by User, ts int64) string {
		return string(AppendGift(nil, Gift{User: by, Gift: "rose", Count: 2, TS: ts}))
	}
	held := func(to *User) string {
		event, err := (&Held{MID: "m", User: bob, Text: "t", ReplyTo: to, TS: 9}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(event)
	}
	for name, c := range map[string]struct{ event, want string }{
		"a gift":                  {gift(ann, 10), gift(bare, 10)},
		"a gift given later":      {gift(ann, 11), gift(ann, 11)},
		"somebody else's":         {gift(bob, 5), gift(bob, 5)},
		"an answer":               {danmaku(bob, &ann, 9), danmaku(bob, &bare, 9)},
		"an answer of the erased": {danmaku(ann, &bob, 9), danmaku(bare, &bob, 9)},
		"to oneself":              {danmaku(ann, &ann, 9), danmaku(bare, &bare, 9)},
		"a held answer":           {held(&ann), held(&bare)},
		"an act":                  {`{"time":9,"by":"mia","action":"drop","user":"ann","text":"words"}`, `{"time":9,"by":"mia","action":"drop","user":"ann","text":""}`},
		"an act upon another":     {`{"time":9,"by":"ann","action":"drop","user":"bob","text":"words"}`, `{"time":9,"by":"ann","action":"drop","user":"bob","text":"words"}`},
		"an announcement":         {`{"time":9,"by":"ann","action":"announce","text":"words"}`, `{"time":9,"by":"ann","action":"announce","text":""}`},
		"a later act":             {`{"time":11,"by":"ann","action":"announce","text":"words"}`, `{"time":11,"by":"ann","action":"announce","text":"words"}`},
		"a number":                {"7", "7"},
		"nothing":                 {"", ""},
	} {
		got := Forgotten([]byte(c.event), func(user string) int64 { return map[string]int64{"ann": 10}[user] })
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
