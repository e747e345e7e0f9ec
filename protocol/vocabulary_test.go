package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEveryReasonHasACodeAndItsMessages(t *testing.T) {
	if len(Reasons()) != len(codeOf) {
		t.Fatalf("%d reasons, %d codes", len(Reasons()), len(codeOf))
	}
	for l, said := range sentences {
		if len(said) != len(Reasons())+len([]string{"detail", "limits_stay", "catalogue_stays", "filter_stays"}) {
			t.Errorf("%s: %d sentences for %d reasons", Lang(l), len(said), len(Reasons()))
		}
	}
	for _, r := range Reasons() {
		if _, ok := codeOf[r]; !ok {
			t.Errorf("%s has no code", r)
		}
		for l, said := range sentences {
			if said[string(r)] == "" {
				t.Errorf("%s lacks a message in %s", r, Lang(l))
			}
		}
	}
	if Reason("no such").Code() != Internal || Message(English, "no such", "") != Message(English, ReasonInternal, "") {
		t.Error("an unknown reason must be internal")
	}
}

func TestCloseReasonFits(t *testing.T) {
	for _, c := range CloseCodes() {
		r := Refusal{Code: c, Reconnect: 24 * time.Hour, Detail: strings.Repeat(`"é\`, 20) + strings.Repeat("x", 80)}.Reason()
		if len(r) > 123 || !json.Valid([]byte(r)) {
			t.Errorf("%d bytes: %s", len(r), r)
		}
		for i := range len(r) {
			if r[i] >= 0x80 {
				t.Errorf("not ASCII: %s", r)
			}
		}
		if _, ok := closeWords[c]; !ok {
			t.Errorf("%d has no word", c)
		}
	}
	if got := (Refusal{Code: CloseGoingAway, Reconnect: 1200 * time.Millisecond}).Reason(); got != `{"reason":"drain","reconnect_in_ms":1200}` {
		t.Error(got)
	}
}

func TestRefusedHelloIsAnswered(t *testing.T) {
	for want, r := range map[string]Refusal{
		"401 unauthenticated: expired":            {Code: CloseToken, Detail: "expired"},
		"403 banned":                              {Code: CloseForbidden, Detail: "banned"},
		"403 forbidden: other rooms":              {Code: CloseForbidden, Detail: "other rooms"},
		"404 not_found: room":                     {Code: CloseNoRoom},
		"503 unavailable":                         {Code: CloseOverloaded, Reconnect: time.Second, Detail: "rate_limited"},
		"429 rate_limited by room rule join-room": {Code: CloseOverloaded, Reconnect: time.Second, Scope: "room", Rule: "join-room"},
		"500 internal":                            {Code: CloseInternal},
	} {
		if err := r.Answer(); err.Error() != want || err.RetryAfter != r.Reconnect {
			t.Errorf("%d: %v, retry after %s", r.Code, err, err.RetryAfter)
		}
	}
}

func TestComeBack(t *testing.T) {
	for c, want := range map[CloseCode]bool{CloseGoingAway: true, CloseSlowConsumer: true, CloseAbuse: true, CloseToken: false, CloseForbidden: false, CloseNoRoom: false, CloseNotText: false} {
		if c.ComeBack() != want {
			t.Errorf("%d", c)
		}
	}
}

// TestTokenIsOneToOne: two identifiers never share a token, and a token is safe in subjects and keys.
func TestTokenIsOneToOne(t *testing.T) {
	id := rapid.StringMatching(`[A-Za-z0-9_.:@|=%/李é -]{1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := id.Draw(t, "a"), id.Draw(t, "b")
		if !ValidUser(a) {
			t.Fatal(a)
		}
		if (Token(a) == Token(b)) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
		if strings.ContainsAny(Token(a), ".:@*> /") {
			t.Fatalf("%q", Token(a))
		}
	})
}

func TestIdentifiers(t *testing.T) {
	for s, want := range map[string][2]bool{"a": {true, true}, "a.b": {false, true}, "": {false, false}, "a b": {false, false},
		strings.Repeat("x", 64): {true, true}, strings.Repeat("x", 65): {false, false}, "房": {false, false}, "u:1@x": {false, true}, "a*": {false, false}} {
		if ValidRoom(s) != want[0] || ValidID(s) != want[1] {
			t.Errorf("%q: %v %v", s, ValidRoom(s), ValidID(s))
		}
	}
	for s, want := range map[string]bool{"auth0|5f7c": true, "a b": true, "房": true, strings.Repeat("x", 255): true, "https://id.test/u?x=1": true,
		"": false, strings.Repeat("x", 256): false, "a\nb": false, "a\u202eb": false, "a\u200bb": false, "\xff": false, "\ufffd": false} {
		if ValidUser(s) != want {
			t.Errorf("user %q: %v", s, ValidUser(s))
		}
	}
}

func TestMIDsAreUniqueAndShort(t *testing.T) {
	m, seen := NewMIDs(), map[string]bool{}
	for range 100_000 {
		id := m.Next()
		if len(id) != 11 || !ValidID(id) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
	if first := NewMIDs().Next(); NewMIDs().Next() == first {
		t.Error("two processes share a prefix")
	}
}

func TestParseLang(t *testing.T) {
	chinese := ParseLang("zh")
	if chinese.String() != "zh" || English.String() != "en" {
		t.Fatalf("%v, %v", chinese, English)
	}
	for s, want := range map[string]Lang{"": English, "zh": chinese, "zh-CN,zh;q=0.9,en;q=0.8": chinese, "en-US,en;q=0.9,zh;q=0.1": English,
		"zh-TW": chinese, "zz;;;": English, strings.Repeat("z", 5000): English} {
		if got := ParseLang(s); got != want {
			t.Errorf("%.30q: %v", s, got)
		}
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{Reason: ReasonRateLimited, Scope: "user", Rule: "danmaku-user", Detail: "x"}
	if e.Error() != "429 rate_limited by user rule danmaku-user: x" {
		t.Error(e)
	}
	if d := BadField("f", "x", strings.Repeat("好", 50)).Detail; !strings.HasSuffix(d, "…") || len(d) > 100 {
		t.Error(d)
	}
}

func TestReviewIsChecked(t *testing.T) {
	for v, path := range map[Review]string{
		{9, ActionDrop}: "review.seconds", {86_401, ActionDrop}: "review.seconds", {60, "burn"}: "review.then", {10, ActionDrop}: "", {86_400, ActionRelease}: "",
	} {
		_, err := Settings{Review: &v}.Clean()
		if path == "" && err != nil || path != "" && (err == nil || !strings.HasPrefix(err.Detail, path)) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}
