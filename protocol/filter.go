package protocol

import "slices"

// FilterAction is what becomes of a danmaku that has a word of a list.
type FilterAction string

// Actions of a filter.
const (
	FilterReplace    FilterAction = "replace"     // the word is shown as stars
	FilterSenderOnly FilterAction = "sender_only" // its sender alone sees it
	FilterHold       FilterAction = "hold"        // it waits for staff
	FilterRefuse     FilterAction = "refuse"
)

// FilterActions lists them, the strictest last.
func FilterActions() []FilterAction {
	return []FilterAction{FilterReplace, FilterSenderOnly, FilterHold, FilterRefuse}
}

// Valid reports whether it is one of them.
func (a FilterAction) Valid() bool { return slices.Contains(FilterActions(), a) }

// Stricter reports whether a goes before b where a text has words of both.
func (a FilterAction) Stricter(b FilterAction) bool {
	return slices.Index(FilterActions(), a) > slices.Index(FilterActions(), b)
}

// Word is a word or a phrase of a list.
type Word struct {
	Word   string       `json:"word"`
	Action FilterAction `json:"action"`
	Whole  bool         `json:"whole,omitempty"` // not within a longer word
}

// WordList is a filter as people write it.
type WordList struct {
	Words       []Word `json:"words,omitempty"`
	Traditional bool   `json:"traditional,omitempty"` // traditional characters are their simplified forms
	Pinyin      bool   `json:"pinyin,omitempty"`      // words of two Han characters or more are found by how they sound
}
