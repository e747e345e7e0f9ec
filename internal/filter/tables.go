package filter

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"liveroom/protocol"
)

// Each table has a line for each form: the form, and the characters that are folded to it. A test holds them to the libraries that they are of:
// confusables of Unicode (UTS 39), OpenCC (Apache-2.0), go-pinyin (MIT).
var (
	//go:embed tables/alike.txt
	alikeText string
	//go:embed tables/traditional.txt
	traditionalText string
	//go:embed tables/pinyin.txt
	pinyinText string
)

// The Han characters that have variants and readings.
const (
	firstHan = 0x3400
	lastHan  = 0x9FFF
)

// What a character is folded to, as tables have it, beside a character.
const (
	nothing = -1 // it stands between letters
	several = -2 // and less: several characters
)

// tables are by what texts are folded. They are made once, by [Warm] or when they are first asked for, and take some 400 KB.
type tables struct {
	plane   [1 << 16]rune // what the characters of the first plane are
	more    []string      // of those that are several
	alike   map[rune]rune
	simple  [lastHan - firstHan + 1]uint16 // the simplified form, 0: itself
	reading [lastHan - firstHan + 1]uint16 // one of sounds, 0: none
	sounds  []string
}

var theTables = sync.OnceValue(func() *tables {
	t := &tables{alike: map[rune]rune{'@': 'a', '$': 's'}, sounds: []string{""}}
	each(alikeText, func(form string, r rune) { t.alike[r] = rune(form[0]) })
	each(traditionalText, func(form string, r rune) { t.simple[r-firstHan] = uint16([]rune(form)[0]) })
	each(pinyinText, func(form string, r rune) {
		if t.sounds[len(t.sounds)-1] != form {
			t.sounds = append(t.sounds, form)
		}
		t.reading[r-firstHan] = uint16(len(t.sounds) - 1)
	})
	for r := range rune(len(t.plane)) {
		switch s := t.foldOne(r); {
		case s == "":
			t.plane[r] = nothing
		case len([]rune(s)) == 1:
			t.plane[r] = []rune(s)[0]
		default:
			t.plane[r] = several - rune(len(t.more))
			t.more = append(t.more, s)
		}
	}
	return t
})

// Warm makes what texts are folded by, so that no message waits for it.
func Warm() { theTables() }

func each(text string, f func(form string, r rune)) {
	for line := range strings.Lines(text) {
		form, all, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		for _, r := range all {
			f(form, r)
		}
	}
}

// foldOne is what one character is folded to, by the rules; "" for what stands between letters.
func (t *tables) foldOne(r rune) string {
	if r >= firstHan && r <= lastHan {
		return string(r)
	}
	var out []rune
	for _, c := range strings.ToLower(norm.NFKC.String(string(r))) {
		if to, ok := t.alike[c]; ok {
			out = append(out, to)
			continue
		}
		if base := []rune(norm.NFD.String(string(c))); len(base) > 1 && unicode.In(base[0], unicode.Latin, unicode.Greek, unicode.Cyrillic) {
			c = base[0] // what is left are accents
			if to, ok := t.alike[c]; ok {
				c = to
			}
		}
		if !between(c) {
			out = append(out, c)
		}
	}
	return string(out)
}

// between reports whether a character is none of a word's.
func between(r rune) bool {
	switch {
	case protocol.Invisible(r), r == 'ـ': // a line that lengthens Arabic letters
		return true
	case unicode.IsMark(r): // of Latin, Arabic, Hebrew they are left out when somebody is in a hurry; elsewhere they are vowels
		return unicode.In(r, unicode.Inherited, unicode.Arabic, unicode.Hebrew)
	}
	return !unicode.IsLetter(r) && !unicode.IsNumber(r)
}
