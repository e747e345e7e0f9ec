package main

import (
	"bytes"

	"liveroom/protocol"
)

// Skimming reads events by looking for keys instead of decoding JSON. That is exact for what package protocol writes:
// every event begins with {"ev":"…", and inside a JSON string a quote is always escaped, so no text that a viewer sends
// can look like a key. The fuzz test compares it with encoding/json.

var (
	eventHead = []byte(`{"ev":"`)
	eventNext = []byte(`},{"ev":"`) // a nested event (a pinned one) follows a colon, never a comma
)

// events calls visit for each event of a frame's array, with its name and its bytes, and reports whether the frame
// looked like such an array.
func events(payload []byte, visit func(name, event []byte)) bool {
	n := len(payload)
	if n < 2 || payload[0] != '[' || payload[n-1] != ']' {
		return false
	}
	rest := payload[1 : n-1]
	for len(rest) > 0 {
		if !bytes.HasPrefix(rest, eventHead) {
			return false
		}
		name := rest[len(eventHead):]
		end := bytes.IndexByte(name, '"')
		if end < 0 {
			return false
		}
		name = name[:end]
		event := rest
		if i := bytes.Index(rest, eventNext); i >= 0 {
			event, rest = rest[:i+1], rest[i+2:]
		} else {
			rest = nil
		}
		visit(name, event)
	}
	return true
}

// number finds the integer behind key, which is written with quotes and colon.
func number(event, key []byte) (n int64, ok bool) {
	i := bytes.Index(event, key)
	if i < 0 {
		return 0, false
	}
	b := event[i+len(key):]
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<58 {
			break
		}
		n, ok = n*10+int64(c-'0'), true
	}
	if negative {
		n = -n
	}
	return n, ok
}

// text finds the string behind key, which is written with quotes and colon, escapes left as they are.
func text(event, key []byte) []byte {
	i := bytes.Index(event, key)
	if i < 0 || i+len(key) >= len(event) || event[i+len(key)] != '"' {
		return nil
	}
	b := event[i+len(key)+1:]
	for j := 0; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return b[:j]
		}
	}
	return nil
}

// Keys, as they stand on the wire.
var (
	keyID         = []byte(`"id":`)
	keyCode       = []byte(`"code":`)
	keyReason     = []byte(`"reason":`)
	keyOutcome    = []byte(`"outcome":`)
	keyTS         = []byte(`"ts":`)
	keyTime       = []byte(`"time":`)
	keyText       = []byte(`"text":`)
	keySeq        = []byte(`"seq":`)
	keyPrev       = []byte(`"prev":`)
	keyTotal      = []byte(`"total":`)
	keyCounted    = []byte(`"counted":`)
	keyDanmaku    = []byte(`"danmaku":`)
	keyRetryAfter = []byte(`"retry_after_ms":`)
	keyCursorGift = []byte(`"cursor":{"gift":`)
	keyNode       = []byte(`"node":`)
	keyDuplicate  = []byte(`"duplicate":true`)
)

// kind is an event's name as a small number.
type kind uint8

const (
	kindOther kind = iota
	kindWelcome
	kindAck
	kindDanmaku
	kindGift
	kindLike
	kindOnline
	kindMissed
	kindError
	kinds
)

func kindOf(name []byte) kind {
	switch protocol.Event(name) {
	case protocol.EvDanmaku:
		return kindDanmaku
	case protocol.EvAck:
		return kindAck
	case protocol.EvGift:
		return kindGift
	case protocol.EvLike:
		return kindLike
	case protocol.EvOnline:
		return kindOnline
	case protocol.EvMissed:
		return kindMissed
	case protocol.EvWelcome:
		return kindWelcome
	case protocol.EvError:
		return kindError
	}
	return kindOther
}
