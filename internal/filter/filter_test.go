package filter

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liveroom/protocol"
)

func listOf(action protocol.FilterAction, words ...string) *protocol.WordList {
	l := &protocol.WordList{}
	for _, w := range words {
		l.Words = append(l.Words, protocol.Word{Word: w, Action: action})
	}
	return l
}

func compiled(t testing.TB, l *protocol.WordList) *Set {
	t.Helper()
	s, err := Compile(l, PlatformWords, PlatformBytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A word is found however it is written, replaced where it stands, and not found where it is no word.
func TestWordsAreFoundHoweverTheyAreWritten(t *testing.T) {
	l := listOf(protocol.FilterReplace, "shit", "ass", "蠢货", "法轮", "bad word", "ab12", "bush", "fuck")
	l.Words = append(l.Words, protocol.Word{Word: "cunt", Action: protocol.FilterReplace, Whole: true}, protocol.Word{Word: "x", Action: protocol.FilterReplace, Whole: true})
	l.Traditional = true
	s := compiled(t, l)
	for text, want := range map[string]string{
		"shit":             "****",
		"oh SHIT!":         "oh ****!",
		"ｓｈｉｔ":             "****",
		"ѕһіt":             "****", // Cyrillic
		"shíţ":             "****",
		"s\u200dh\u200dit": "****",
		"s.h.i.t":          "*******",
		"s h i t":          "* * * *",
		"shiiiiit":         "********",
		"𝓼𝓱𝓲𝓽 happens":     "**** happens",
		"bullshit":         "bull****",
		"this hit":         "this hit",
		"push it":          "push it",
		"this shit":        "this ****",
		"as":               "as",
		"a$$":              "***",
		"aasss":            "*****",
		"a s s":            "* * *",
		"was so":           "was so",
		"class":            "cl***",
		"蠢货":               "**",
		"你这个蠢 货啊":          "你这个* *啊",
		"蠢😀货":              "***",
		"蠢貨":               "**",
		"法輪":               "**",
		"badword":          "*******",
		"a bad  word here": "a ***  **** here",
		"scunthorpe cunt":  "scunthorpe ****",
		"xx x":             "** *",
		"AB-12":            "*****",
		"shi\u0301t 好":     "**** 好",
		"nothing to see":   "nothing to see",
		"shit shit":        "**** ****",
		"":                 "",
		"ﬁx":               "ﬁx",
	} {
		if _, _, got := Judge(text, s.Hits(text, nil)); got != want {
			written, _ := s.Folded(text)
			t.Errorf("%q (folded %q): %q, want %q", text, written, got, want)
		}
	}
}

// How a word sounds is found where that is asked for, and only between whole characters.
func TestWordsAreFoundByTheirSound(t *testing.T) {
	l := listOf(protocol.FilterRefuse, "法轮", "西安")
	for _, c := range []struct {
		text   string
		pinyin bool
		want   int
	}{
		{"发论", false, 0}, {"发论", true, 1}, {"falun", true, 1}, {"FA LUN", true, 1}, {"falung", true, 1}, {"法轮", true, 2}, {"先", true, 0}, {"喜按", true, 1},
	} {
		l.Pinyin = c.pinyin
		if got := compiled(t, l).Hits(c.text, nil); len(got) != c.want {
			t.Errorf("%q, %v: %+v", c.text, c.pinyin, got)
		}
	}
}

// The strictest action decides, and replaced words are replaced unless nobody is shown anything.
func TestTheStrictestActionDecides(t *testing.T) {
	s := compiled(t, &protocol.WordList{Words: []protocol.Word{{Word: "soft", Action: "replace"}, {Word: "mine", Action: "sender_only"}, {Word: "later", Action: "hold"}, {Word: "never", Action: "refuse"}}})
	for text, want := range map[string]string{
		"soft": "replace soft ****", "soft mine": "sender_only mine **** mine", "later soft mine": "hold later later **** mine", "never later": "refuse never never later", "fine": "  fine",
	} {
		action, word, shown := Judge(text, s.Hits(text, nil))
		if got := fmt.Sprint(action, " ", word, " ", shown); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	many, long := &protocol.WordList{}, listOf("refuse")
	for i := range 11 {
		many.Words = append(many.Words, protocol.Word{Word: fmt.Sprint("word", i), Action: "refuse"})
	}
	for range 4 {
		long.Words = append(long.Words, protocol.Word{Word: strings.Repeat("long", 20), Action: "refuse"})
	}
	for _, c := range []struct {
		list *protocol.WordList
		want string
	}{
		{listOf("refuse", "good", ""), "words[1].word: allowed is a word or a phrase as people write it; received nothing"},
		{listOf("refuse", "..!", "😀"), "words[0].word: allowed is a word with letters or digits, since all else is between words; received \"..!\"; 1 more are wrong"},
		{listOf("refuse", "e"), `words[0].word: allowed is more than one letter, or "whole": true; received "e"`},
		{listOf("refuse", "fu.*k"), "words[0].word: allowed is a word or a phrase as people write it, and no regular expression; received \"fu.*k\""},
		{listOf("refuse", `\bass\b`), "no regular expression"},
		{listOf("refuse", `(foo|bar)`), "no regular expression"},
		{listOf("refuse", `[a-z]+`), "no regular expression"},
		{listOf("refuse", `(?i)foo`), "no regular expression"},
		{listOf("refuse", `/foo/i`), "no regular expression"},
		{listOf("refuse", "x1", strings.Repeat("x", 257)), "words[1].word: allowed is at most 256 bytes; received \"257 bytes\""},
		{listOf("refuse", "\xff"), "words[0].word: allowed is valid Unicode"},
		{listOf("burn", "good"), "words[0].action: allowed is refuse, hold, sender_only or replace; received \"burn\""},
		{&protocol.WordList{Words: []protocol.Word{{Word: "Shit", Action: "refuse"}, {Word: "shít", Action: "hold"}}}, `words[1].action: allowed is refuse, as for "Shit", which is the same word; received "hold"`},
		{many, "words: allowed is a list of at most 10; received \"11\""},
		{long, "words: allowed is at most 300 bytes of words; received \"320\""},
	} {
		_, err := Compile(c.list, 10, 300)
		if err == nil || err.Reason != protocol.ReasonBadRequest || !strings.Contains(err.Detail, c.want) {
			t.Errorf("%.60v: %v, want %s", c.list, err, c.want)
		}
	}
	for _, word := range []string{"什么?!", "wtf...", "a.b", "50%", "(lol)", "3/4", "http://x.example/a/b", "^^ hi", "[spam]", "what?"} {
		if _, err := Compile(listOf("refuse", word), 10, 200); err != nil {
			t.Errorf("%q is refused: %v", word, err.Detail)
		}
	}
	if s, err := Compile(listOf("refuse", "abc", "ABC", "a.b.c", "abcd", "bc"), 10, 200); err != nil || len(s.Hits("abcd", nil)) != 3 {
		t.Errorf("the same and overlapping words: %v", err)
	}
	if s, err := Compile(&protocol.WordList{}, 10, 200); s != nil || err != nil || len(s.Hits("anything", nil)) != 0 || s.Words() != 0 {
		t.Errorf("an empty list: %v, %v", s, err)
	}
}

// What is found is what a plain scan of the folded text finds, in all texts of few letters; and texts stay texts.
func TestHitsAreThoseOfAPlainScan(t *testing.T) {
	letters := []rune("aаAbβ.  é法輪轮s$\u200d")
	text := rapid.StringOfN(rapid.SampledFrom(letters), 0, 24, -1)
	rapid.Check(t, func(t *rapid.T) {
		l := &protocol.WordList{Traditional: rapid.Bool().Draw(t, "traditional"), Pinyin: rapid.Bool().Draw(t, "pinyin")}
		for _, w := range rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom(letters), 1, 4, -1), 1, 6).Draw(t, "words") {
			l.Words = append(l.Words, protocol.Word{Word: w, Action: "replace", Whole: rapid.Bool().Draw(t, "whole")})
		}
		s, err := Compile(l, 10, 1000)
		if err != nil {
			return // a word of nothing
		}
		in := text.Draw(t, "text")
		var got, want []string
		for _, h := range s.Hits(in, nil) {
			got = append(got, fmt.Sprint(h.Word, h.From, h.To, h.Sound))
			if in[h.From:h.To] != h.Found || h.Found == "" {
				t.Fatalf("%q: %+v", in, h)
			}
		}
		scan := func(n *finder, how how, sound bool) {
			var f folded
			f.fold(theTables(), in, how)
			keys := map[string][]entry{}
			for _, all := range n.all {
				for _, e := range all {
					var k folded
					k.fold(theTables(), e.word, how)
					keys[string(k.text)] = all
				}
			}
			for key, all := range keys {
				for at := 0; at+len(key) <= len(f.text); at++ {
					if string(f.text[at:at+len(key)]) != key {
						continue
					}
					for _, e := range all {
						if from, to, yes := f.holds(in, at, at+len(key), &e); yes {
							want = append(want, fmt.Sprint(e.word, from, to, sound))
						}
					}
				}
			}
		}
		scan(&s.written, s.how, false)
		if s.sound != nil {
			scan(s.sound, how{sound: true}, true)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %+v: %v, want %v", in, l, got, want)
		}
	})
}

// thousands are words as lists have them: three of four of Han.
func thousands(n int) *protocol.WordList {
	r, l := rand.New(rand.NewPCG(1, 2)), &protocol.WordList{Traditional: true}
	for i := range n {
		var b strings.Builder
		if i%4 == 0 {
			for range 5 + r.IntN(6) {
				b.WriteByte(byte('a' + r.IntN(26)))
			}
		} else {
			for range 2 + r.IntN(3) {
				b.WriteRune(rune(0x4E00 + r.IntN(3000)))
			}
		}
		l.Words = append(l.Words, protocol.Word{Word: b.String(), Action: protocol.FilterReplace})
	}
	return l
}

// danmaku are 5 to 30 characters, a quarter of them letters.
func danmaku(n int) []string {
	r, out := rand.New(rand.NewPCG(3, 4)), make([]string, n)
	for i := range out {
		var b strings.Builder
		for range 5 + r.IntN(26) {
			if r.IntN(4) == 0 {
				b.WriteByte(byte('a' + r.IntN(26)))
			} else {
				b.WriteRune(rune(0x4E00 + r.IntN(3000)))
			}
		}
		out[i] = b.String()
	}
	return out
}

func TestATextWithoutWordsAllocatesNothing(t *testing.T) {
	s := compiled(t, listOf("refuse", "shit", "蠢货"))
	var f folded // of the pool, which may be emptied at any time
	text := "你好 hello there, 大家好！"
	f.fold(theTables(), text, s.how)
	if n := testing.AllocsPerRun(200, func() {
		if f.fold(theTables(), text, s.how); len(s.written.hits(text, &f, nil, false)) > 0 {
			t.Error("it has words")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHits(b *testing.B) {
	texts := danmaku(1000)
	for _, n := range []int{500, 50_000} {
		for _, sound := range []bool{false, true} {
			b.Run(fmt.Sprint(n, "/pinyin=", sound), func(b *testing.B) {
				l := thousands(n)
				l.Pinyin = sound
				heap := func() float64 {
					runtime.GC()
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					return float64(m.HeapAlloc)
				}
				theTables()
				before := heap()
				s := compiled(b, l)
				b.ReportMetric((heap()-before)/(1<<20), "MiB")
				b.ReportAllocs()
				var hits [8]Hit
				i, found := 0, 0
				for b.Loop() {
					found += len(s.Hits(texts[i%len(texts)], hits[:0]))
					i++
				}
				b.ReportMetric(float64(found)/float64(i), "hits/text")
			})
		}
	}
}

// BenchmarkPlainScan is what 50,000 words cost one by one, in a text that is folded already.
func BenchmarkPlainScan(b *testing.B) {
	l, texts := thousands(50_000), danmaku(1000)
	i := 0
	for b.Loop() {
		for _, w := range l.Words {
			_ = strings.Contains(texts[i%len(texts)], w.Word)
		}
		i++
	}
}

func BenchmarkCompile(b *testing.B) {
	l := thousands(50_000)
	for b.Loop() {
		compiled(b, l)
	}
}

// What looks alike is the same for whoever compares texts; pictures, numbers and what stands between letters are not taken for nothing.
func TestAppendLook(t *testing.T) {
	look := func(s string) string { return string(AppendLook(nil, s)) }
	for _, same := range [][]string{
		{"hello", "HELLO", "hеllo", "ｈｅｌｌｏ", "𝐡𝐞𝐥𝐥𝐨", "héllo", "hel\u200dlo", "hello\U000e0000", "helllllo"},
		{"哈哈哈", "哈哈哈\u034f"}, {"", "\u200d"},
	} {
		for _, s := range same {
			if look(s) != look(same[0]) {
				t.Errorf("%q is %q, %q is %q", s, look(s), same[0], look(same[0]))
			}
		}
	}
	other := []string{"1", "11", "111", "2", "+1", "😂", "🎉", "😂😂", "a b", "ab", "a.b", "?", "!", "哈", "哈哈", "哈哈哈", "國", "国"}
	for i, a := range other {
		for _, b := range other[:i] {
			if look(a) == look(b) {
				t.Errorf("%q and %q are both %q", a, b, look(a))
			}
		}
	}
	dst := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { dst = AppendLook(dst[:0], "Hello, 你好 😂 666") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendLook(b *testing.B) {
	dst := make([]byte, 0, 256)
	for b.Loop() {
		dst = AppendLook(dst[:0], "主播好厉害 what a goal 😂😂 666")
	}
}
