package client

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/klauspost/compress/flate"

	"liveroom/protocol"
)

// event is what this tool reads of an event, of whatever kind.
type event struct {
	Ev           protocol.Event
	ID           string
	Code         int
	Reason       string
	Outcome      string
	Duplicate    bool
	Text         string
	TS           int64 // Unix milliseconds, as is Time
	Seq, Prev    uint64
	Total        int64
	Counted      int64
	Danmaku      int64
	RetryAfterMS int64 `json:"retry_after_ms"`
	Time         int64
	Node         string
	Cursor       struct{ Gift uint64 }
}

// digest is what one frame said to every viewer that got it.
type digest struct {
	raw      []byte // as it came
	deflated bool
	plain    int    // bytes, inflated
	trial    *Trial // whose markers were looked for

	readable bool
	counts   Counters // of events alone
	danmaku  []seenDanmaku
	gifts    []event
	private  []event // welcomes and answers, meant for one session
	total    int64   // of the last like event, -1 for none
}

// seenDanmaku is one danmaku of this trial.
type seenDanmaku struct {
	attempt int
	ts      int64 // Unix milliseconds
}

// read fills d from plain, which raw holds.
func (d *digest) read(raw []byte, deflated bool, plain []byte, t *Trial) {
	*d = digest{raw: append(d.raw[:0], raw...), deflated: deflated, plain: len(plain), trial: t, danmaku: d.danmaku[:0], gifts: d.gifts[:0], total: -1}
	var all []event
	d.readable = json.Unmarshal(plain, &all) == nil
	for i := range all {
		d.event(&all[i])
	}
}

func (d *digest) event(e *event) {
	d.counts.Events++
	switch e.Ev {
	case protocol.EvDanmaku:
		d.counts.Danmaku++
		if d.trial == nil {
			return
		}
		if n := d.trial.tag.marked(e.Text); n >= 0 && n < len(d.trial.Due) {
			d.danmaku = append(d.danmaku, seenDanmaku{n, e.TS})
		}
	case protocol.EvGift:
		d.counts.gifts++
		d.gifts = append(d.gifts, *e)
	case protocol.EvLike:
		d.counts.likeEvents++
		d.total = e.Total
	case protocol.EvMissed:
		d.counts.Missed += e.Danmaku
	case protocol.EvWelcome, protocol.EvAck:
		d.private = append(d.private, *e)
	}
}

// What a reader remembers: viewers that lag by a second of ticks read 40 frames in turns, and reading one anew costs as much as
// handing it to ten viewers, so that two of them must not drive each other out.
const (
	digestSets = 64
	digestWays = 8
)

// digests remembers the frames a reader met last. A room's frame is the same bytes for all its viewers, so that all but
// the first cost one comparison of memory.
type digests struct {
	sets     [digestSets]digestSet
	single   digest // of the frame that is for one session alone
	in       bytes.Reader
	inflater io.Reader
	plain    bytes.Buffer
}

// digestSet holds frames of one hash; the one that came first goes first.
type digestSet struct {
	ways [digestWays]digest
	next int
}

// find returns what is remembered of a frame, or the place for it (false).
func (s *digestSet) find(raw []byte, deflated bool, t *Trial) (*digest, bool) {
	for i := range s.ways {
		if d := &s.ways[i]; d.trial == t && d.deflated == deflated && bytes.Equal(d.raw, raw) {
			return d, true
		}
	}
	d := &s.ways[s.next]
	s.next = (s.next + 1) % digestWays
	return d, false
}

var (
	ackHead     = []byte(`[{"ev":"ack"`)
	welcomeHead = []byte(`[{"ev":"welcome"`)
)

// of returns what a message says. It is valid until the next call.
func (c *digests) of(raw []byte, deflated bool, t *Trial) *digest {
	d := &c.single
	if deflated || !bytes.HasPrefix(raw, ackHead) && !bytes.HasPrefix(raw, welcomeHead) {
		known := false
		if d, known = c.sets[setOf(raw)].find(raw, deflated, t); known {
			return d
		}
	}
	plain := raw
	if deflated {
		plain = c.inflate(raw)
	}
	d.read(raw, deflated, plain, t)
	return d
}

// inflateTail ends a message for the decompressor: what each one leaves out, and a final empty block.
const inflateTail = protocol.DeflateTail + "\x01\x00\x00\xff\xff"

// inflate returns nothing for what is no DEFLATE, or too much.
func (c *digests) inflate(raw []byte) []byte {
	c.in.Reset(append(bytes.Clone(raw), inflateTail...))
	if c.inflater == nil {
		c.inflater = flate.NewReader(&c.in)
	} else if c.inflater.(flate.Resetter).Reset(&c.in, nil) != nil {
		return nil
	}
	c.plain.Reset()
	if n, err := io.Copy(&c.plain, io.LimitReader(c.inflater, maxFrameBytes+1)); err != nil || n > maxFrameBytes {
		return nil
	}
	return c.plain.Bytes()
}

// setOf hashes the length and eight bytes of the first event's mid, which differ from frame to frame.
func setOf(payload []byte) uint64 {
	const midAt = len(`[{"ev":"danmaku","mid":"`) + 3 // the last eight of eleven
	h := uint64(len(payload)) * 0x9e3779b97f4a7c15
	if len(payload) >= midAt+8 {
		h ^= binary.LittleEndian.Uint64(payload[midAt:])
	}
	h *= 0x9e3779b97f4a7c15
	return h >> 58
}
