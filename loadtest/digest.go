package main

import (
	"bytes"
	"encoding/binary"
)

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
