package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// StoredGift is a gift as the ledger keeps it.
type StoredGift struct {
	Seq   uint64    // grows over the whole ledger
	Prev  uint64    // sequence of the room's gift before this one, 0 for its first
	Event []byte    // as [AppendGift] made it, without mid, seq and prev
	Time  time.Time // when the ledger stored it
	Paid  Payment   // zero of one that nobody was asked to pay for
}

// Payment is what the ledger keeps of who paid for a gift. Viewers are not told.
type Payment struct {
	Attempt uint64 `json:"attempt"`           // under which the platform reserved it; 0: it was not asked
	Charged int64  `json:"charged,omitempty"` // what it took, in the catalogue's unit; 0: the price
	Ref     string `json:"ref,omitempty"`     // its own name for it
}

// Receipt is the ledger's answer to a gift.
type Receipt struct {
	Seq       uint64
	Duplicate bool // this (room, user, id) was stored before; Seq is the first one's
}

// Gift is the content of a gift event.
type Gift struct {
	User  User   `json:"user"`
	Gift  string `json:"gift"`
	Count int    `json:"count"`
	Combo int    `json:"combo"` // how many of this gift the user has given in a row, this one included
	TS    int64  `json:"ts"`    // instant of admission, Unix milliseconds
}

const giftHead = `{"ev":"gift",`

// AppendGift appends the event of an admitted gift that the ledger has not numbered yet.
func AppendGift(dst []byte, g Gift) []byte {
	dst = append(dst, giftHead...)
	dst = appendUser(dst, g.User)
	dst = append(dst, `,"gift":`...)
	dst = appendString(dst, g.Gift)
	dst = append(dst, `,"count":`...)
	dst = strconv.AppendInt(dst, int64(g.Count), 10)
	dst = append(dst, `,"combo":`...)
	dst = strconv.AppendInt(dst, int64(g.Combo), 10)
	return appendTS(dst, g.TS)
}

// AppendStoredGift appends the event as viewers see it, with mid, seq and prev.
func AppendStoredGift(dst []byte, g StoredGift) []byte {
	dst = append(appendNumber(dst, g.Seq), `,"prev":`...)
	return appendGiven(strconv.AppendUint(dst, g.Prev, 10), g)
}

func appendNumber(dst []byte, seq uint64) []byte {
	dst = append(append(dst, giftHead...), `"mid":"g`...)
	dst = strconv.AppendUint(dst, seq, 10)
	return strconv.AppendUint(append(dst, `","seq":`...), seq, 10)
}

func appendGiven(dst []byte, g StoredGift) []byte {
	return append(append(dst, ','), bytes.TrimPrefix(g.Event, []byte(giftHead))...)
}

// AppendLedgerGift appends the event as the platform reads it in the ledger: what viewers see, and how it was paid.
func AppendLedgerGift(dst []byte, g StoredGift) []byte {
	return appendPaid(AppendStoredGift(dst, g), g)
}

// AppendLoggedGift is AppendLedgerGift for who reads all rooms at once, and does not know prev.
func AppendLoggedGift(dst []byte, g StoredGift) []byte {
	return appendPaid(appendGiven(appendNumber(dst, g.Seq), g), g)
}

func appendPaid(dst []byte, g StoredGift) []byte {
	if g.Paid.Attempt == 0 {
		return dst
	}
	return append(appendJSON(append(dst[:len(dst)-1], `,"paid":`...), g.Paid), '}')
}

// LoggedGift is a gift as [AppendLoggedGift] wrote it.
type LoggedGift struct {
	Gift
	Paid Payment `json:"paid"`
}

// ParseLoggedGift reads back what [AppendLoggedGift] wrote.
func ParseLoggedGift(event []byte) (g LoggedGift, err error) {
	if err := json.Unmarshal(event, &g); err != nil {
		return LoggedGift{}, fmt.Errorf("logged gift: %w", err)
	}
	return g, nil
}

// ParseGift reads back what [AppendGift] wrote.
func ParseGift(event []byte) (Gift, error) {
	var g Gift
	if err := json.Unmarshal(event, &g); err != nil {
		return Gift{}, fmt.Errorf("gift event: %w", err)
	}
	return g, nil
}
