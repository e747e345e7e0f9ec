package protocol

import (
	"strings"
	"testing"
	"unicode"
)

const (
	england  = "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F"
	scotland = "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F"
	family   = "👨\u200d👩\u200d👧"
)

// What is added and not seen makes no other text.
func TestWhatLooksTheSameFoldsToTheSame(t *testing.T) {
	for _, base := range []string{"hi", "hi there", "你好", "سلام", "é", family, england} {
		for _, r := range "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u206f\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\U0001d173\U000e0000\U000e0001\U000e0041\U000e007f\U000e0100" {
			x := string(r)
			for _, text := range []string{base + x, base + " " + x, x + base, base + strings.Repeat(x, 9), base + x + " " + x} {
				if got := FoldText(text); got != FoldText(base) {
					t.Errorf("%q with %U: %q folds to %q", base, r, text, got)
				}
			}
		}
	}
	if a, b := FoldText("h\u034fi\U000e0001 \u2060 there"), "hi there"; a != b {
		t.Errorf("in the middle: %q", a)
	}
	if a := FoldText("e\u034f\u0301"); a != "é" {
		t.Errorf("a mark behind a joiner: %q", a)
	}
}

// What is seen makes another one.
func TestWhatLooksDifferentFoldsApart(t *testing.T) {
	texts := []string{
		"hi", "Hi", "hi there", "hithere", "你好", "你好吗", england, scotland, "🏴", england + scotland, family, "👨\u200d👩\u200d👦",
		"👍", "👍🏽", "🇩🇪", "🇫🇷", "e", "é",
	}
	seen := map[string]string{}
	for _, text := range texts {
		clean, err := CleanText(text, MaxTextGraphemes)
		if err != nil || clean != text {
			t.Errorf("%q is not shown as it is: %q, %v", text, clean, err)
		}
		key := FoldText(clean)
		if FoldText(key) != key {
			t.Errorf("%q: folding again changes %q", text, key)
		}
		if other, yes := seen[key]; yes {
			t.Errorf("%q is taken for %q", text, other)
		}
		seen[key] = text
	}
}

// The short cuts hold for every character of the tables in use.
func TestNoShortCutMissesACharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if want := !shows(r) && !isSpace(r); ignorable(r) != want {
			t.Errorf("%U: ignorable is %t", r, ignorable(r))
		}
	}
}

func TestFoldingAllocatesOnlyWhatItChanges(t *testing.T) {
	for _, text := range []string{"hello there", strings.Repeat("弹幕", 50), "🎉🎉👍🏽"} {
		if n := testing.AllocsPerRun(100, func() { FoldText(text) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

func BenchmarkFoldText(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": strings.Repeat("hello ", 16), "han": strings.Repeat("弹", 100), "emoji": strings.Repeat("🎉", 100), "tail": "hi\U000e0000",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				FoldText(text)
			}
		})
	}
}
