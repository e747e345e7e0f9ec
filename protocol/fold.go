package protocol

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FoldText returns what two texts that look the same have in common: s, as [CleanText] returned it, without the
// characters that show nothing ([shows], derived from the Unicode tables of the Go release), its spaces single and trimmed
// again. Joiners go as well, so a family and its members side by side are the same; the tags that make a flag stay. It is
// for comparing, never for showing, and returns s itself, without allocating, when there is nothing to leave out.
func FoldText(s string) string {
	at := strings.IndexFunc(s, ignorable)
	if at < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	flag := 0 // where the tags of the flag that is being read end
	for i, r := range s {
		if r == blackFlag {
			flag = i + flagBytes(s[i:])
		}
		switch {
		case i >= flag && ignorable(r):
		case r == ' ' && (len(out) == 0 || out[len(out)-1] == ' '):
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return norm.NFC.String(strings.TrimSuffix(string(out), " "))
}

// ignorable reports whether r shows nothing and is no space. Most texts are of characters below the first such one or in
// the two widest gaps between them (Han, Hangul; emoji), and need no table.
func ignorable(r rune) bool {
	if r < 0xAD || r > 0x3164 && r < 0xFE00 || r > 0x1D17A && r < tagOffset {
		return false
	}
	return !shows(r) && !isSpace(r)
}

// Invisible reports whether [FoldText] leaves r out, unless it is of a flag.
func Invisible(r rune) bool { return ignorable(r) }

// Tag characters (UTS #51, section 2.2 and annex C): a black flag, three to six letters and digits of a CLDR subdivision,
// and a terminator are the flag of that subdivision. Anywhere else tags show nothing.
const (
	blackFlag = 0x1F3F4
	tagOffset = 0xE0000
	tagEnd    = 0xE007F
)

// flagBytes is the length of the flag that s begins with, its tags included, 0 when these make none.
func flagBytes(s string) int {
	tags := 0
	for i, r := range s {
		switch t := r - tagOffset; {
		case i == 0:
		case r == tagEnd && tags >= 3:
			return i + utf8.RuneLen(r)
		case tags < 6 && (t >= 'a' && t <= 'z' || t >= '0' && t <= '9'):
			tags++
		default:
			return 0
		}
	}
	return 0
}
