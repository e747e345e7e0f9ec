package protocol

import (
	"encoding/json"
	"os"
	"testing"
)

// textCase is one verdict that server and page share; see testdata/text.json.
type textCase struct {
	Name   string `json:"name"`
	In     string `json:"in"`
	Out    string `json:"out"`
	Reason Reason `json:"reason"`
}

func textCases(t testing.TB) []textCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/text.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []textCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestCleanTextGolden(t *testing.T) {
	for _, c := range textCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			got, err := CleanText(c.In, MaxTextGraphemes)
			switch {
			case c.Reason == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case c.Reason == "" && got != c.Out:
				t.Fatalf("got %+q, want %+q", got, c.Out)
			case c.Reason != "" && (err == nil || err.Reason != c.Reason):
				t.Fatalf("got %+q, %v; want %s", got, err, c.Reason)
			}
		})
	}
}

func TestCleanNameFallsBack(t *testing.T) {
	for in, want := range map[string]string{"  Ann  ": "Ann", "": "u1", "a\u202eb": "u1", "x\x00": "u1"} {
		if got := CleanName(in, "u1"); got != want {
			t.Errorf("CleanName(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzCleanText: what was cleaned once is clean, so a message survives being sent again.
func FuzzCleanText(f *testing.F) {
	for _, c := range textCases(f) {
		f.Add(c.In)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := CleanText(s, MaxTextGraphemes)
		if err != nil {
			if err.Reason != ReasonBadRequest && err.Reason != ReasonTooLong {
				t.Fatalf("reason %q", err.Reason)
			}
			return
		}
		if len(once) > MaxTextBytes || CountGraphemes(once) > MaxTextGraphemes {
			t.Fatalf("%q is over the limits", once)
		}
		twice, err := CleanText(once, MaxTextGraphemes)
		if err != nil || twice != once {
			t.Fatalf("%+q became %+q, %v", once, twice, err)
		}
	})
}
