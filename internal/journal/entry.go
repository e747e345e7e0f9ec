package journal

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// Log is one of the logs that are merged.
type Log byte

// The logs, in the order in which they are merged when two took something in the same instant.
const (
	Acts    Log = iota // what moderators and hosts decided
	Limits             // sets of limits
	Gifts              // the ledger
	Said               // danmaku and what else is written behind: its end may be lost in a crash
	NumLogs            // how many there are
)

// letter begins the ids and positions of a log. It is for ever.
func (l Log) letter() byte { return "algd"[l] }

// Kind is what an entry tells of.
type Kind string

// The kinds. A gap is of no log and always told.
const (
	Announcement Kind = "announcement"
	Audience     Kind = "audience" // how many came and went
	Custom       Kind = "custom"
	Danmaku      Kind = "danmaku"
	Gift         Kind = "gift"
	Held         Kind = "held" // a danmaku that waits for staff, and what became of it
	Likes        Kind = "likes"
	LimitSet     Kind = "limits"
	Moderation   Kind = "moderation"
	Room         Kind = "room"    // made, opened, closed, set
	Session      Kind = "session" // who came and went
	Gap          Kind = "gap"
)

// Kinds lists those that can be asked for.
func Kinds() []Kind {
	return []Kind{Announcement, Audience, Custom, Danmaku, Gift, Held, Likes, LimitSet, Moderation, Room, Session}
}

// in reports whether a log has some of a kind.
func (k Kind) in(l Log) bool {
	switch k {
	case Announcement, Moderation:
		return l == Acts
	case Gift:
		return l == Gifts
	case LimitSet:
		return l == Limits
	case Room:
		return l == Acts || l == Said
	}
	return l == Said
}

// Record is a stored entry. Its Seq grows within its log.
type Record struct {
	Seq   uint64
	Time  time.Time // when the log took it
	Room  string    // "" of what is of no room
	Kind  Kind      // "" of what is none of a reader's business
	Event []byte    // JSON

	// Number and Before tell of a log that copies another whether the copy is whole: the number that this has in the original, and that of the
	// one of the same room before it. 0: it does not copy.
	Number, Before uint64
}

// State is how far a log reaches.
type State struct {
	Name        string    // tells it from any log that was there before
	First, Last uint64    // Last is First-1 of an empty one
	Time        time.Time // of the last one
	Erased      bool      // something was erased from its middle
	Asked       time.Time // by the clock of who answered
}

// Query asks a log for records.
type Query struct {
	From  uint64    // the least Seq
	Since time.Time // instead of From: the least Time
	Room  string    // of this room alone; "": of all. A log may disregard it
	Most  int
}

// Store has the logs.
type Store interface {
	// State asks who decides about the log; nothing acknowledged lies beyond its Last.
	State(ctx context.Context, l Log) (State, error)
	// Records returns what there is in order, nothing only if there is nothing.
	Records(ctx context.Context, l Log, q Query) ([]Record, error)
}

// Entry is what a reader gets.
type Entry struct {
	ID    string          `json:"id"` // one for each entry, for ever, whatever happens to the store
	Kind  Kind            `json:"kind"`
	Room  string          `json:"room,omitempty"`
	Time  int64           `json:"time"` // Unix milliseconds, when it was stored
	Event json.RawMessage `json:"event"`

	at Cursor // behind it
}

// Cursor is where a reader is who has this entry and all before it.
func (e Entry) Cursor() Cursor { return e.at }

// Why something is missing.
const (
	whyAged    = "aged_out" // older or more than is kept
	whyAnother = "another"  // the log is not the one that was read before
	whyErased  = "erased"   // somebody had it erased, or it was lost: told to readers of one room
	whyLost    = "lost"     // a crash took its end, or more came than could be written
)

// gap is the event of an entry of kind gap.
type gap struct {
	Of     []Kind `json:"of"`
	Why    string `json:"why"`
	Missed uint64 `json:"missed,omitempty"` // entries of all rooms at most; absent: not known
	Since  int64  `json:"since,omitempty"`  // Unix ms of the last entry before; absent: not known
	Until  int64  `json:"until,omitempty"`  // Unix ms of the first one behind; absent: there is none yet
}

func gapEntry(l Log, g gap, at uint64) Entry {
	for _, k := range Kinds() {
		if k.in(l) {
			g.Of = append(g.Of, k)
		}
	}
	event, _ := json.Marshal(g) // strings and numbers encode
	return Entry{ID: "gap-" + idOf(l, at, time.UnixMilli(g.Until)), Kind: Gap, Time: g.Until, Event: event}
}

// idOf names a record. A log that is written behind may give a number again after a crash, to something else at another instant.
func idOf(l Log, seq uint64, at time.Time) string {
	id := string(l.letter()) + strconv.FormatUint(seq, 10)
	if l == Said {
		id += "-" + strconv.FormatInt(at.UnixNano(), 36)
	}
	return id
}

// Filter is what a reader wants of it.
type Filter struct {
	Rooms []string // none: all, and what is of no room
	Kinds []Kind   // none: all
}

func (f Filter) wants(r Record) bool {
	return r.Kind != "" && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) &&
		(len(f.Rooms) == 0 || slices.Contains(f.Rooms, r.Room))
}

// logs are those that have something of the kinds.
func (f Filter) logs() (out []Log) {
	for l := range NumLogs {
		if len(f.Kinds) == 0 || slices.ContainsFunc(f.Kinds, func(k Kind) bool { return k.in(l) }) {
			out = append(out, l)
		}
	}
	return out
}

// room is the only one that is wanted, "" when there are several.
func (f Filter) room() string {
	if len(f.Rooms) == 1 {
		return f.Rooms[0]
	}
	return ""
}
