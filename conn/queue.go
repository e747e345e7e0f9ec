package conn

import (
	"bytes"
	"fmt"

	"liveroom/protocol"
)

// kind tells what an entry of the queue is, and thereby how it is counted.
type kind uint8

const (
	kindWire      kind = iota // ping, pong or close: counted by nobody
	kindControl               // events for this one session
	kindFull                  // a broadcast's full frame
	kindEssential             // a broadcast's essential frame
	kindCatchUp               // missed, and the newest like
)

// entry is one whole frame that waits, or the rest of one.
type entry struct {
	bytes []byte              // still to be written; shared, never changed
	b     *protocol.Broadcast // of kindFull, kindEssential and, for the like, kindCatchUp
	size  int                 // of the whole frame
	kind  kind
}

// wireEntry is a control frame.
func wireEntry(f []byte) entry { return entry{bytes: f, size: len(f), kind: kindWire} }

// eventEntry is a frame of events for one session, joined by commas.
func eventEntry(events []byte) entry {
	f := protocol.NewEventFrame(events)
	return entry{bytes: f.Bytes(), size: f.Len(), kind: kindControl}
}

// shared reports whether the entry is a broadcast, which the bounds of the queue are about.
func (e *entry) shared() bool { return e.kind == kindFull || e.kind == kindEssential }

// count returns how many messages of a class the viewer gets by the entry.
func (e *entry) count(c protocol.Class) int {
	switch e.kind {
	case kindControl:
		if c == protocol.ClassControl {
			return 1
		}
	case kindFull:
		return e.b.Count(c)
	case kindEssential:
		if c.Essential() {
			return e.b.Count(c)
		}
	case kindCatchUp:
		switch {
		case c == protocol.ClassControl:
			return 1
		case c.Kind().Behind == protocol.Newest && e.b != nil:
			return e.b.Count(c)
		}
	}
	return 0
}

// queue holds what one session's socket did not take. It exists only while there is something in it. It is guarded by the
// session's mutex.
type queue struct {
	inflight []entry // what the writer is writing, in order
	urgent   []entry // ping, pong, and answers before the session is open
	control  []entry // events for this session, and its close frame as the last one
	data     []entry // broadcasts; those before head are gone
	head     int

	controlBytes int
	frames       int // of broadcasts, in flight included
	bytes        int

	writing bool                // a writer goroutine owns the wire
	lagging bool                // over the bound and not caught up since
	missed  int                 // left out since, to be announced
	newest  *protocol.Broadcast // the newest one of whose kind the newest counts, left out since
}

// room reports whether another frame of n bytes stays within the bounds.
func (q *queue) room(n, maxFrames, maxBytes int) bool {
	return q.frames < maxFrames && q.bytes+n <= maxBytes
}

func (q *queue) pushData(e entry) {
	q.data = append(q.data, e)
	q.frames++
	q.bytes += e.size
}

// lag leaves out what a viewer who has fallen behind does not get of a broadcast. It returns how many are announced as missed.
func (q *queue) lag(b *protocol.Broadcast, c *counters) (missed int) {
	q.lagging = true
	for class := range protocol.NumClasses {
		n := b.Count(class)
		if n == 0 {
			continue
		}
		switch class.Kind().Behind {
		case protocol.Missed:
			missed += n
			c.dropped[class][dropSlow].Add(uint64(n))
		case protocol.LeftOut:
			c.dropped[class][dropSlow].Add(uint64(n))
		case protocol.Newest:
			q.dropNewest(c, dropReplaced)
			q.newest = b
		}
	}
	q.missed += missed
	return missed
}

func (q *queue) dropNewest(c *counters, why dropReason) {
	if q.newest == nil {
		return
	}
	for class := range protocol.NumClasses {
		if class.Kind().Behind == protocol.Newest {
			c.dropped[class][why].Add(uint64(q.newest.Count(class)))
		}
	}
	q.newest = nil
}

// A step of the writer is bounded, so that the write timeout means progress.
const (
	maxStepFrames = 16
	maxStepBytes  = 64 << 10
)

// take moves the next step into flight: urgent frames first, then the session's own events, then broadcasts. Before the
// session is open only urgent ones may go.
func (q *queue) take(opened bool) {
	n := 0
	move := func(lane []entry) int {
		i := 0
		for i < len(lane) && len(q.inflight) < maxStepFrames && (n == 0 || n+lane[i].size <= maxStepBytes) {
			n += lane[i].size
			q.inflight = append(q.inflight, lane[i])
			i++
		}
		return i
	}
	q.urgent = shift(q.urgent, move(q.urgent))
	if !opened || len(q.urgent) > 0 {
		return
	}
	k := move(q.control)
	for _, e := range q.control[:k] {
		q.controlBytes -= e.size
	}
	q.control = shift(q.control, k)
	if len(q.control) > 0 {
		return
	}
	k = move(q.data[q.head:])
	clear(q.data[q.head : q.head+k])
	if q.head += k; q.head == len(q.data) {
		q.data, q.head = q.data[:0], 0
	}
}

// shift removes the first n entries and lets go of their frames.
func shift(lane []entry, n int) []entry {
	clear(lane[:n])
	return lane[n:]
}

// resume puts the rest of a frame that was begun in flight.
func (q *queue) resume(rest entry) {
	q.inflight = append(q.inflight, rest)
	if rest.shared() {
		q.frames++
		q.bytes += rest.size
	}
}

// landed counts the frames in flight of which the kernel has taken the last byte, and forgets them. n is how many bytes it
// took.
func (q *queue) landed(n int64, c *counters) {
	k := 0
	for k < len(q.inflight) && n >= int64(len(q.inflight[k].bytes)) {
		n -= int64(len(q.inflight[k].bytes))
		c.sent(&q.inflight[k])
		q.forget(&q.inflight[k])
		k++
	}
	clear(q.inflight[:k])
	if q.inflight = q.inflight[k:]; len(q.inflight) > 0 {
		q.inflight[0].bytes = q.inflight[0].bytes[n:]
	}
}

// dropInflight gives up what is in flight.
func (q *queue) dropInflight(c *counters) {
	for i := range q.inflight {
		c.drop(&q.inflight[i], dropClosed)
		q.forget(&q.inflight[i])
	}
	q.inflight = nil
}

// forget takes a broadcast off the sums.
func (q *queue) forget(e *entry) {
	if e.shared() {
		q.frames--
		q.bytes -= e.size
	}
}

// waiting reports whether anything is left to write.
func (q *queue) waiting(opened bool) bool {
	return len(q.inflight) > 0 || len(q.urgent) > 0 || opened && (len(q.control) > 0 || len(q.data) > q.head)
}

// catchUp ends the lagging and returns what announces it: a missed event, and the newest like.
// ok is false when there is nothing to tell.
func (q *queue) catchUp() (missed int, newest *protocol.Broadcast, ok bool) {
	missed, newest = q.missed, q.newest
	q.lagging, q.missed, q.newest = false, 0, nil
	return missed, newest, missed != 0 || newest != nil
}

// dropData empties the lane of broadcasts.
func (q *queue) dropData(c *counters) {
	for i := q.head; i < len(q.data); i++ {
		c.drop(&q.data[i], dropClosed)
		q.forget(&q.data[i])
	}
	q.data, q.head = nil, 0
	q.dropNewest(c, dropClosed)
	q.lagging, q.missed = false, 0
}

// dropControl empties the lane of the session's own events.
func (q *queue) dropControl(c *counters) {
	for i := range q.control {
		c.drop(&q.control[i], dropClosed)
	}
	q.control, q.controlBytes = nil, 0
}

// check holds the sums to the lanes.
func (q *queue) check() error {
	frames, size, control := 0, 0, 0
	for _, lane := range [][]entry{q.inflight, q.data[q.head:]} {
		for _, e := range lane {
			if e.shared() {
				frames++
				size += e.size
			}
		}
	}
	for _, e := range q.control {
		control += e.size
	}
	switch {
	case frames != q.frames || size != q.bytes:
		return fmt.Errorf("queue holds %d frames of %d bytes, says %d of %d", frames, size, q.frames, q.bytes)
	case control != q.controlBytes:
		return fmt.Errorf("control lane holds %d bytes, says %d", control, q.controlBytes)
	case !q.lagging && (q.missed != 0 || q.newest != nil):
		return fmt.Errorf("caught up, yet %d missed", q.missed)
	}
	return nil
}

// catchUpEntry makes the frame that tells a viewer what it has missed. The likes' deltas were for those who saw them; the
// total in the newest is what counts.
func catchUpEntry(missed int, newest *protocol.Broadcast) entry {
	var events [][]byte
	if missed > 0 {
		events = append(events, protocol.AppendMissed(nil, missed))
	}
	for class := range protocol.NumClasses {
		if newest != nil && class.Kind().Behind == protocol.Newest {
			events = append(events, newest.Events(class)...)
		}
	}
	f := protocol.NewEventFrame(bytes.Join(events, []byte{','}))
	return entry{bytes: f.Bytes(), b: newest, size: f.Len(), kind: kindCatchUp}
}
