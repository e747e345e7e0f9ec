package filter

import (
	"unicode"
	"unicode/utf8"

	"liveroom/protocol"
)

// folded is a text, folded, and where each byte of it comes from.
type folded struct {
	text []byte
	of   []origin // by byte of text
	last int      // where the last character begins
}

// origin is what a folded character was: it, or several of it in a row, which may lie apart.
type origin struct {
	from, to          uint16 // the first byte, and behind the last
	firstTo, lastFrom uint16 // where those before the first gap end, where those behind the last one begin
	run, first, last  uint8  // how many there are, before the first gap, behind the last
}

// longest is how many bytes of a text are looked at; a danmaku has at most 1,024.
const longest = 16 << 10

// how says how texts are folded.
type how struct {
	simple bool // traditional characters to simplified ones
	sound  bool // Han to what it sounds like
}

// fold replaces f's content by s, folded.
func (f *folded) fold(t *tables, s string, h how) {
	f.text, f.of, f.last = f.text[:0], f.of[:0], -1
	for i, r := range s {
		if i >= longest {
			return
		}
		end := i + utf8.RuneLen(r)
		if r == utf8.RuneError {
			end = i + 1
		}
		is := rune(nothing)
		if int(r) < len(t.plane) {
			is = t.plane[r]
		} else {
			for _, c := range t.foldOne(r) {
				f.add(c, i, end, h)
			}
		}
		switch {
		case is == nothing:
		case is <= several:
			for _, c := range t.more[several-is] {
				f.add(c, i, end, h)
			}
		case is >= firstHan && is <= lastHan:
			f.addHan(t, is, i, end, h)
		default:
			f.add(is, i, end, h)
		}
	}
}

// AppendLook appends to dst what s looks like: texts of which it is the same are taken for the same, whether somebody repeats
// himself or many say one thing. Letters are folded as a list's are; unlike there, what stands between them stays, so that a picture or a
// number differs from another one, and a letter is there at most twice in a row. Han are as they are written.
func AppendLook(dst []byte, s string) []byte {
	t := theTables()
	last, run := rune(-1), 0
	add := func(r rune) {
		if last != r {
			last, run = r, 0
		}
		if run++; run <= 2 || !unicode.IsLetter(r) || r >= firstHan && r <= lastHan {
			dst = utf8.AppendRune(dst, r)
		}
	}
	for _, r := range protocol.FoldText(s) {
		is := rune(nothing)
		if int(r) < len(t.plane) {
			is = t.plane[r]
		}
		switch {
		case is > several && is != nothing:
			add(is)
		case is <= several:
			for _, c := range t.more[several-is] {
				add(c)
			}
		case int(r) >= len(t.plane) && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			for _, c := range t.foldOne(r) {
				add(c)
			}
		default:
			add(r)
		}
	}
	return dst
}

func (f *folded) addHan(t *tables, r rune, from, to int, h how) {
	if h.sound {
		if s := t.sounds[t.reading[r-firstHan]]; s != "" {
			for _, c := range s {
				f.add(c, from, to, h)
			}
			return
		}
	}
	if is := t.simple[r-firstHan]; h.simple && is != 0 {
		r = rune(is)
	}
	f.add(r, from, to, h)
}

// add appends a character, unless it is the last one again. What sounds is not what is written: nothing is repeated there.
func (f *folded) add(r rune, from, to int, h how) {
	if f.last >= 0 && !h.sound {
		if last, _ := utf8.DecodeRune(f.text[f.last:]); last == r {
			o := f.of[f.last].again(uint16(from), uint16(to))
			for i := f.last; i < len(f.text); i++ {
				f.of[i] = o
			}
			return
		}
	}
	f.last = len(f.text)
	f.text = utf8.AppendRune(f.text, r)
	for range len(f.text) - f.last {
		f.of = append(f.of, origin{uint16(from), uint16(to), uint16(to), uint16(from), 1, 1, 1})
	}
}

// again is o with one more.
func (o origin) again(from, to uint16) origin {
	const most = 250
	switch {
	case o.to != from:
		o.lastFrom, o.last = from, 1
	case o.lastFrom == o.from: // no gap yet
		o.firstTo, o.first, o.last = to, min(o.first, most)+1, min(o.last, most)+1
	default:
		o.last = min(o.last, most) + 1
	}
	o.to, o.run = to, min(o.run, most)+1
	return o
}

// begins is where a character begins as the first of a word that needs so many of it, and whether they lie apart; ends is where one ends as
// the last.
func (o origin) begins(need uint8) (from uint16, split bool) {
	if o.last >= need {
		return o.lastFrom, false
	}
	return o.from, true
}

func (o origin) ends(need uint8) (to uint16, split bool) {
	if o.first >= need {
		return o.firstTo, false
	}
	return o.to, true
}

// runs and froms are what is kept of a folded word.
func (f *folded) runs() []uint8 {
	out := make([]uint8, len(f.of))
	for i, o := range f.of {
		out[i] = o.run
	}
	return out
}

func (f *folded) froms() []uint16 {
	out := make([]uint16, len(f.of))
	for i, o := range f.of {
		out[i] = o.from
	}
	return out
}

// joins reports whether a character is of a word that ends at spaces: Han and others have none between words.
func joins(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// apart reports whether no word goes on over an edge of s.
func apart(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	return at == 0 || at == len(s) || !joins(before) || !joins(after)
}
