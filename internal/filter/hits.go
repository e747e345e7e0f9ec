package filter

import (
	"strings"
	"unicode"

	"liveroom/protocol"
)

// Hit is a word that was found in a text.
type Hit struct {
	Word     string                `json:"word"` // as the list has it
	Action   protocol.FilterAction `json:"action"`
	From, To int                   `json:"-"` // its bytes in the text
	Found    string                `json:"found"`
	Sound    bool                  `json:"sound,omitempty"` // it sounds like it
}

// Hits appends what a text has of the list, in no order; words may overlap.
func (s *Set) Hits(text string, hits []Hit) []Hit {
	if s == nil {
		return hits
	}
	f, _ := s.pool.Get().(*folded)
	if f == nil {
		f = &folded{}
	}
	defer s.pool.Put(f)
	t := theTables()
	f.fold(t, text, s.how)
	hits = s.written.hits(text, f, hits, false)
	if s.sound != nil {
		f.fold(t, text, how{sound: true})
		hits = s.sound.hits(text, f, hits, true)
	}
	return hits
}

// may reports whether something in the folded text begins as a word does.
func (n *finder) may(f *folded) bool {
	for at := range f.text {
		if (at == 0 || f.of[at].from != f.of[at-1].from) && n.begins.at(f.text[at:]) {
			return true
		}
	}
	return false
}

func (n *finder) hits(text string, f *folded, hits []Hit, sound bool) []Hit {
	if !n.may(f) {
		return hits
	}
	for found := n.find.IterOverlappingByte(f.text); ; {
		m := found.Next()
		if m == nil {
			return hits
		}
		for _, e := range n.all[m.Pattern()] {
			if from, to, yes := f.holds(text, m.Start(), m.End(), &e); yes {
				hits = append(hits, Hit{e.word, e.action, from, to, text[from:to], sound})
			}
		}
	}
}

// holds reports whether what was found in the folded text is the word in the text, and where: see the package's comment.
func (f *folded) holds(text string, start, end int, e *entry) (from, to int, yes bool) {
	if start > 0 && f.of[start-1].from == f.of[start].from || end < len(f.of) && f.of[end].from == f.of[end-1].from {
		return 0, 0, false
	}
	first, last := f.of[start], f.of[end-1]
	begin, broken := first.begins(e.run[0])
	stop, split := last.ends(e.run[len(e.run)-1])
	broken = broken || split
	if first == last { // one character, wherever there are enough of it
		begin, stop = first.from, last.to
	}
	for i := start; i < end; i++ {
		o := f.of[i]
		if o.run < e.run[i-start] {
			return 0, 0, false
		}
		if i == start {
			continue
		}
		if before := f.of[i-1]; o != before {
			broken = broken || o.from > before.to || o != last && o.lastFrom != o.from
		} else if e.from != nil && e.from[i-start] != e.from[i-start-1] {
			return 0, 0, false // one character sounds like two of the word
		}
	}
	from, to = int(begin), int(stop)
	return from, to, !broken && !e.whole || apart(text, from) && apart(text, to)
}

// Judge returns the strictest action of the hits, "" for none, the word that asks for it, and the text with what is to be replaced in stars.
func Judge(text string, hits []Hit) (action protocol.FilterAction, word, shown string) {
	starred := false
	for _, h := range hits {
		if h.Action.Stricter(action) {
			action, word = h.Action, h.Word
		}
		starred = starred || h.Action == protocol.FilterReplace
	}
	if !starred {
		return action, word, text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case !covered(hits, i):
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte(' ')
		case !unicode.IsMark(r) && !protocol.Invisible(r):
			b.WriteByte('*')
		}
	}
	return action, word, b.String()
}

func covered(hits []Hit, at int) bool {
	for _, h := range hits {
		if h.Action == protocol.FilterReplace && at >= h.From && at < h.To {
			return true
		}
	}
	return false
}

// Folded is how the list folds a text, for people who wonder what it does; how it sounds is "" where nobody asks for that.
func (s *Set) Folded(text string) (written, sound string) {
	f, h := folded{}, how{simple: true}
	if s != nil {
		h = s.how
	}
	f.fold(theTables(), text, h)
	written = string(f.text)
	if s != nil && s.sound != nil {
		f.fold(theTables(), text, how{sound: true})
		sound = string(f.text)
	}
	return written, sound
}
