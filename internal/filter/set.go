package filter

import (
	"fmt"
	"regexp"
	"sync"
	"unicode/utf8"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"

	"liveroom/protocol"
)

// Bounds of lists.
const (
	maxWordBytes = 256
	// PlatformWords and PlatformBytes bound the platform's list, RoomWords and RoomBytes one of a room. Bytes are those of the words.
	PlatformWords, PlatformBytes = 50_000, 1 << 20
	RoomWords, RoomBytes         = 500, 8 << 10
)

// Set is a list, compiled. Nil has no words.
type Set struct {
	// fixed
	how     how
	written finder
	sound   *finder // nil: how words sound is not asked for
	words   int
	pool    sync.Pool // *folded
}

// entry is one word of a list.
type entry struct {
	word   string
	action protocol.FilterAction
	run    []uint8  // how many of each byte's character the text must have in a row
	from   []uint16 // of how it sounds: what each byte comes from
	whole  bool
}

// finder finds entries by their folded form.
type finder struct {
	all    [][]entry // by form
	find   ahocorasick.AhoCorasick
	begins bitmap
}

// expression is what is pasted by who takes words for regular expressions.
var expression = regexp.MustCompile(`\\[a-zA-Z.(\[{*+?^$|]|[.\])][*+?]|\.\{|\[\^?[^\]\s]-[^\]\s]|\(\?[:=!<iPms]|\([^)\s]*\|[^)\s]*\)|^\^.+\$$|^/.+/[gimsuy]*$`)

// Compile makes a list ready, of at most so many words and bytes of words. What is wrong with it is told with its path, the first fault and how
// many there are.
func Compile(list *protocol.WordList, maxWords, maxBytes int) (*Set, *protocol.Error) {
	if list == nil || len(list.Words) == 0 {
		return nil, nil
	}
	if n := len(list.Words); n > maxWords {
		return nil, protocol.BadField("words", fmt.Sprintf("a list of at most %d", maxWords), fmt.Sprint(n))
	}
	c := compiler{t: theTables(), s: &Set{how: how{simple: list.Traditional}, words: len(list.Words)}, written: forms{}, sound: forms{}, sounds: list.Pinyin}
	bytes := 0
	for i, w := range list.Words {
		bytes += len(w.Word)
		c.add(fmt.Sprintf("words[%d]", i), w)
	}
	if bytes > maxBytes {
		return nil, protocol.BadField("words", fmt.Sprintf("at most %d bytes of words", maxBytes), fmt.Sprint(bytes))
	}
	if c.fault != nil {
		if c.faults > 1 {
			c.fault.Detail += fmt.Sprintf("; %d more are wrong", c.faults-1)
		}
		return nil, c.fault
	}
	c.s.written = c.written.finder()
	if len(c.sound) > 0 {
		f := c.sound.finder()
		c.s.sound = &f
	}
	return c.s, nil
}

// Words is how many the list has.
func (s *Set) Words() int {
	if s == nil {
		return 0
	}
	return s.words
}

// forms are entries by their folded form.
type forms map[string][]entry

type compiler struct {
	t              *tables
	s              *Set
	written, sound forms
	sounds         bool
	f              folded
	fault          *protocol.Error // the first
	faults         int
}

func (c *compiler) wrong(err *protocol.Error) {
	if c.faults++; c.fault == nil {
		c.fault = err
	}
}

func (c *compiler) add(path string, w protocol.Word) {
	const plain = "a word or a phrase as people write it"
	if !w.Action.Valid() {
		c.wrong(protocol.BadField(path+".action", "refuse, hold, sender_only or replace", string(w.Action)))
		return
	}
	switch {
	case w.Word == "":
		c.wrong(protocol.BadField(path+".word", plain, ""))
		return
	case len(w.Word) > maxWordBytes:
		c.wrong(protocol.BadField(path+".word", fmt.Sprintf("at most %d bytes", maxWordBytes), fmt.Sprintf("%d bytes", len(w.Word))))
		return
	case !utf8.ValidString(w.Word):
		c.wrong(protocol.BadField(path+".word", "valid Unicode", w.Word))
		return
	case expression.MatchString(w.Word):
		c.wrong(protocol.BadField(path+".word", plain+", and no regular expression", w.Word))
		return
	}
	c.f.fold(c.t, w.Word, c.s.how)
	switch n := utf8.RuneCount(c.f.text); {
	case n == 0:
		c.wrong(protocol.BadField(path+".word", "a word with letters or digits, since all else is between words", w.Word))
		return
	case n == 1 && c.f.text[0] < utf8.RuneSelf && c.f.of[0].run == 1 && !w.Whole:
		c.wrong(protocol.BadField(path+".word", `more than one letter, or "whole": true`, w.Word))
		return
	}
	e := entry{word: w.Word, action: w.Action, run: c.f.runs(), whole: w.Whole}
	if !c.put(c.written, path, e) || !c.sounds || !spoken(w.Word) {
		return
	}
	c.f.fold(c.t, w.Word, how{sound: true})
	e.run, e.from = c.f.runs(), c.f.froms()
	key := string(c.f.text)
	c.sound[key] = append(c.sound[key], e)
}

// put adds an entry. The same again says nothing new; with another action it is a fault.
func (c *compiler) put(to forms, path string, e entry) bool {
	key := string(c.f.text)
	for _, old := range to[key] {
		if string(old.run) == string(e.run) && old.whole == e.whole {
			if old.action != e.action {
				c.wrong(protocol.BadField(path+".action", string(old.action)+`, as for "`+old.word+`", which is the same word`, string(e.action)))
			}
			return false
		}
	}
	to[key] = append(to[key], e)
	return true
}

// spoken reports whether a word is of Han and long enough for what it sounds like to be no accident.
func spoken(word string) bool {
	n := 0
	for _, r := range word {
		if r >= firstHan && r <= lastHan {
			n++
		}
	}
	return n >= 2
}

func (f forms) finder() finder {
	out := finder{all: make([][]entry, 0, len(f)), begins: newBitmap(len(f))}
	keys := make([]string, 0, len(f))
	for key, entries := range f {
		keys, out.all = append(keys, key), append(out.all, entries)
		out.begins.add(key)
	}
	b := ahocorasick.NewAhoCorasickBuilder(ahocorasick.Opts{MatchKind: ahocorasick.StandardMatch})
	out.find = b.Build(keys)
	return out
}

// bitmap says how words begin (a Bloom filter): it has all their beginnings up to eight characters, and by two hashes where they end. So a text is left at the first character with which no word goes on.
type bitmap struct {
	bits    []uint64
	shift   uint
	lengths [beginning + 1]bool // that words have, in characters
}

const (
	beginning   = 8
	bitsPerWord = 256 // of which six or so are set
	wordEnds    = -1  // it and the one below are no characters
)

func newBitmap(words int) bitmap {
	size := uint(10)
	for 1<<size < bitsPerWord*words {
		size++
	}
	return bitmap{bits: make([]uint64, 1<<size/64), shift: 64 - size}
}

// mix goes on with a hash: multiplicative (Knuth), of a number that is made of all before.
func mix(h uint64, r rune) uint64 { return (h ^ uint64(r)) * 0x9E3779B97F4A7C15 }

func (b *bitmap) set(h uint64) {
	h >>= b.shift
	b.bits[h/64] |= 1 << (h % 64)
}

func (b *bitmap) has(h uint64) bool {
	h >>= b.shift
	return b.bits[h/64]>>(h%64)&1 != 0
}

func (b *bitmap) add(word string) {
	h, n := uint64(0), 0
	for _, r := range word {
		h = mix(h, r)
		b.set(h)
		if n++; n == beginning {
			break
		}
	}
	b.lengths[n] = true
	b.set(mix(h, wordEnds))
	b.set(mix(h, wordEnds-1))
}

// at reports whether a text begins as a word does.
func (b *bitmap) at(text []byte) bool {
	h := uint64(0)
	for n, at := 1, 0; at < len(text); n++ {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		at += size
		h = mix(h, r)
		if n == 1 && !b.lengths[1] {
			continue // nearly every character begins some word of a long list
		}
		if !b.has(h) {
			return false
		}
		if n == beginning || b.lengths[n] && b.has(mix(h, wordEnds)) && b.has(mix(h, wordEnds-1)) {
			return true
		}
	}
	return false
}
