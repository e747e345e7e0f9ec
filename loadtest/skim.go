package main

import (
	"bytes"
	"encoding/binary"

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

// kindNames are in the order of the kinds.
var kindNames = [kinds]protocol.Event{"", protocol.EvWelcome, protocol.EvAck, protocol.EvDanmaku, protocol.EvGift, protocol.EvLike, protocol.EvOnline,
	protocol.EvMissed, protocol.EvError}

func kindOf(name []byte) kind {
	for k := kindOther + 1; k < kinds; k++ {
		if string(kindNames[k]) == string(name) {
			return k
		}
	}
	return kindOther
}

// digest is what one frame said to every viewer that got it.
type digest struct {
	payload  []byte
	trial    *trial // whose markers were looked for
	counts   [kinds]int64
	danmaku  []seenDanmaku
	gifts    []seenGift
	total    int64 // of the last like event, -1 for none
	missed   int64
	readable bool
	private  bool // holds events meant for one session: see [digest.read]
}

// seenDanmaku is one danmaku of this trial.
type seenDanmaku struct {
	attempt int
	ts      int64 // Unix milliseconds
}

// seenGift is one gift, of whomever.
type seenGift struct {
	seq, prev uint64
	attempt   int // -1 while the answer that names it has not come
	ts        int64
}

// read fills d from payload. Frames with a welcome or an answer are read event by event elsewhere.
func (d *digest) read(payload []byte, t *trial) {
	*d = digest{payload: append(d.payload[:0], payload...), trial: t, danmaku: d.danmaku[:0], gifts: d.gifts[:0], total: -1}
	d.readable = events(d.payload, d.event)
}

func (d *digest) event(name, event []byte) {
	k := kindOf(name)
	d.counts[k]++
	switch k {
	case kindDanmaku:
		if d.trial == nil {
			return
		}
		if n := d.trial.tag.marked(text(event, keyText)); n >= 0 && n < len(d.trial.due) {
			ts, _ := number(event, keyTS)
			d.danmaku = append(d.danmaku, seenDanmaku{attempt: n, ts: ts})
		}
	case kindGift:
		seq, _ := number(event, keySeq)
		prev, _ := number(event, keyPrev)
		ts, _ := number(event, keyTS)
		d.gifts = append(d.gifts, seenGift{seq: uint64(seq), prev: uint64(prev), attempt: -1, ts: ts})
	case kindLike:
		d.total, _ = number(event, keyTotal)
	case kindMissed:
		n, _ := number(event, keyDanmaku)
		d.missed += n
	case kindWelcome, kindAck, kindError:
		d.private = true
	}
}

// digestSlots is how many different frames a reader remembers: enough for viewers that lag by a second of ticks.
const digestSlots = 64

// digests remembers the frames a reader met last. A room's frame is the same bytes for all its viewers, so that all but
// the first cost one comparison of memory.
type digests struct {
	slots [digestSlots]digest
}

// of returns what payload says. It is valid until the next call.
func (c *digests) of(payload []byte, t *trial) *digest {
	d := &c.slots[slotOf(payload)]
	if d.trial == t && bytes.Equal(d.payload, payload) {
		return d
	}
	d.read(payload, t)
	return d
}

// slotOf hashes the length and eight bytes of the first event's mid, which differ from frame to frame.
func slotOf(payload []byte) uint64 {
	const midAt = len(`[{"ev":"danmaku","mid":"`) + 3 // the last eight of eleven
	h := uint64(len(payload)) * 0x9e3779b97f4a7c15
	if len(payload) >= midAt+8 {
		h ^= binary.LittleEndian.Uint64(payload[midAt:])
	}
	h *= 0x9e3779b97f4a7c15
	return h >> 58
}
