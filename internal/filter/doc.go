// Package filter finds words in what people say, however they write them.
//
// The one idea: words and texts are folded alike, and what is found in the folded text is told by its place in the text itself. A fold goes
// on where [protocol.FoldText] ends: compatible forms (NFKC) and widths are one, so are cases, letters that look like Latin ones, and
// letters with and without accents; what stands between letters goes, and a letter that is repeated counts as one that knows how often.
// Traditional characters are their simplified forms, and Han is how it sounds, where a list asks for it.
//
// What keeps honest words out: a word that was written with something between its letters begins and ends where a word does; a letter twice
// in a word is there twice in the text; no hit begins or ends within a character. A word of the list may ask to be whole.
//
// One Aho–Corasick automaton (petar-dambovaliev/aho-corasick) finds all words of a list, and a second one what they sound like. Most texts
// have nothing that begins as a word does, which a bitmap tells; only the others are handed to it.
//
// Concurrency: a [Set] is immutable; all its methods may be called from any goroutine.
//
// What it does not do: it knows no rooms, and takes no regular expressions: they could take any time.
//
// Files: fold.go (how texts are folded), tables.go with tables/ (by what), set.go (lists compiled), hits.go (what is found), book.go (the list of a platform, kept in editions).
package filter
