package protocol

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"golang.org/x/text/unicode/norm"
)

// Limits of a danmaku's text. The page applies the same ones; testdata/text.json holds both to the same verdicts.
const (
	MaxTextGraphemes = 100  // extended grapheme clusters (UAX #29), after normalisation; the default, configurable
	MaxTextBytes     = 1024 // UTF-8 bytes, after normalisation
	// MaxMarks is how many combining marks may follow one another. Living scripts need up to four; more is a tower that
	// covers the lines above.
	MaxMarks = 4
)

// MaxNameGraphemes and MaxNameBytes bound a display name.
const (
	MaxNameGraphemes = 32
	MaxNameBytes     = 128
)

// CleanText returns s as every viewer will see it: composed (NFC), white space of any kind folded to single spaces and
// trimmed, invisible fillers removed. It refuses what would disturb other viewers or was damaged on its way: an empty
// text, control characters, bidirectional overrides and isolates, more than [MaxMarks] marks in a row, U+FFFD and
// invalid UTF-8 (a lone surrogate arrives as one of the two), and a text over maxGraphemes or [MaxTextBytes].
func CleanText(s string, maxGraphemes int) (string, *Error) {
	return clean("text", s, maxGraphemes, MaxTextBytes)
}

// CleanName is [CleanText] for a display name from a token. A name that can't be shown becomes fallback, the user's id,
// since its owner can't mend it in the page; of a long one the beginning.
func CleanName(s, fallback string) string {
	if name, err := clean("name", s, MaxNameGraphemes, MaxNameBytes); err == nil {
		return name
	}
	if len(fallback) <= MaxIdentifier {
		return fallback
	}
	short, n := 0, 0
	for g := graphemes.FromString(fallback); n < MaxNameGraphemes-1 && g.Next() && short+len(g.Value()) <= MaxNameBytes; n++ {
		short += len(g.Value())
	}
	if short == len(fallback) {
		return fallback
	}
	return fallback[:short] + "…"
}

func clean(field, s string, maxGraphemes, maxBytes int) (string, *Error) {
	if len(s) > 16*maxBytes { // normalising what can never fit is work for nothing
		return "", tooLong(field, fmt.Sprintf("%d bytes", maxBytes), fmt.Sprintf("%d bytes", len(s)))
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return "", &Error{Reason: ReasonBadRequest, Detail: field + ": allowed is valid Unicode; received a damaged character (U+FFFD or a lone surrogate)"}
	}
	folded, err := foldSpace(field, s)
	if err != nil {
		return "", err
	}
	text := norm.NFC.String(folded)
	if !strings.ContainsFunc(text, shows) {
		return "", &Error{Reason: ReasonBadRequest, Detail: field + ": allowed is at least one visible character; received none"}
	}
	marks := 0
	for _, r := range text {
		if !unicode.Is(unicode.M, r) {
			marks = 0
		} else if marks++; marks > MaxMarks {
			return "", &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("%s: allowed are %d combining marks in a row; received more", field, MaxMarks)}
		}
	}
	if len(text) > maxBytes {
		return "", tooLong(field, fmt.Sprintf("%d bytes", maxBytes), fmt.Sprintf("%d bytes", len(text)))
	}
	if n := CountGraphemes(text); n > maxGraphemes {
		return "", tooLong(field, fmt.Sprintf("%d characters", maxGraphemes), fmt.Sprintf("%d characters", n))
	}
	return text, nil
}

func tooLong(field, allowed, received string) *Error {
	return &Error{Reason: ReasonTooLong, Detail: field + ": allowed are " + allowed + "; received " + received}
}

// foldSpace folds white space, drops invisible fillers and refuses characters that act on others.
func foldSpace(field, s string) (string, *Error) {
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		switch {
		case isSpace(r):
			space = b.Len() > 0
			continue
		case isInvisible(r):
			continue
		case unicode.Is(unicode.Cc, r):
			return "", &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("%s: allowed are no control characters; received U+%04X", field, r)}
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return "", &Error{Reason: ReasonBadRequest, Detail: fmt.Sprintf("%s: allowed are no direction overrides; received U+%04X", field, r)}
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}

// shows tells whether r leaves anything to see, alone or on others: joiners, variation selectors and tags don't without
// something to work on (the property Default_Ignorable_Code_Point, as UAX #44 derives it), nor does an empty braille cell.
func shows(r rune) bool {
	switch {
	case isSpace(r), r == 0x2800, r >= 0xE0000 && r <= 0xE0FFF:
		return false
	case unicode.In(r, unicode.Prepended_Concatenation_Mark), r >= 0xFFF9 && r <= 0xFFFB, r >= 0x13430 && r <= 0x13440:
		return true
	}
	return !unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// isSpace is the Unicode property White_Space, spelled out so that the page can have the same list.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

// isInvisible lists fillers that show nothing and join nothing: soft hyphen, Hangul fillers, zero-width space, word
// joiner, byte order mark. The joiners U+200C and U+200D stay: Persian, Indic scripts and emoji need them.
func isInvisible(r rune) bool {
	switch r {
	case 0xAD, 0x115F, 0x1160, 0x200B, 0x2060, 0x3164, 0xFEFF, 0xFFA0:
		return true
	}
	return false
}

// CountGraphemes counts extended grapheme clusters (UAX #29), what a reader calls characters.
func CountGraphemes(s string) int {
	n := 0
	for it := graphemes.FromString(s); it.Next(); {
		n++
	}
	return n
}
