package protocol

import "sync"

// Batch gathers a room's events of one tick, in order. The zero value is empty and ready. One goroutine owns it.
type Batch struct {
	events  [][]byte
	classes []Class
	counts  [NumClasses]int
	size    int
}

// Add appends an encoded event and keeps the slice, which must not change any more.
func (b *Batch) Add(c Class, event []byte) {
	b.events = append(b.events, event)
	b.classes = append(b.classes, c)
	b.counts[c]++
	b.size += len(event) + 1
}

// Len is the number of events gathered.
func (b *Batch) Len() int { return len(b.events) }

// Essential returns how many events were gathered that a viewer gets in any case.
func (b *Batch) Essential() int {
	n := 0
	for c := range NumClasses {
		if c.Essential() {
			n += b.counts[c]
		}
	}
	return n
}

// Size is the payload that [Batch.Build] would make, in bytes.
func (b *Batch) Size() int { return b.size + 1 }

// Build makes the tick's broadcast, nil when nothing was gathered, and leaves b empty.
func (b *Batch) Build() *Broadcast {
	if len(b.events) == 0 {
		return nil
	}
	out := &Broadcast{counts: b.counts, events: b.events, classes: b.classes}
	out.full = joinFrame(b.events, nil, b.Size())
	*b = Batch{}
	return out
}

// Broadcast is what a tick sends to every viewer of a room. Its frames are shared, each is built at most once, and it is
// safe for concurrent use.
type Broadcast struct {
	// fixed before it is shared
	full   *Frame
	counts [NumClasses]int
	plain  bool
	// kept to build the essential form, which most ticks never need
	events  [][]byte
	classes []Class

	essential         lazyFrame
	fullDeflated      lazyFrame
	essentialDeflated lazyFrame
}

// lazyFrame is built by the first who asks; the others wait for it.
type lazyFrame struct {
	once  sync.Once
	frame *Frame
}

// KeepPlain makes the deflated forms the plain ones, for a room in which too few want them to be worth making. It is
// called before b is shared.
func (b *Broadcast) KeepPlain() { b.plain = true }

// Full returns the frame with all events.
func (b *Broadcast) Full() *Frame { return b.full }

// FullDeflated returns the frame with all events for clients that have negotiated permessage-deflate; see [Deflate].
func (b *Broadcast) FullDeflated() *Frame {
	if b.plain {
		return b.full
	}
	d := &b.fullDeflated
	d.once.Do(func() { d.frame = Deflate(b.full) })
	return d.frame
}

// Count returns how many events of class c the full frame carries.
func (b *Broadcast) Count(c Class) int { return b.counts[c] }

// Events returns the events of class c, which must not be changed.
func (b *Broadcast) Events(c Class) [][]byte {
	events := make([][]byte, 0, b.counts[c])
	for i, e := range b.events {
		if b.classes[i] == c {
			events = append(events, e)
		}
	}
	return events
}

// Essential returns the frame with gifts and control alone; nil when there are none.
func (b *Broadcast) Essential() *Frame {
	d := &b.essential
	d.once.Do(func() {
		size := 1
		for i, e := range b.events {
			if b.classes[i].Essential() {
				size += len(e) + 1
			}
		}
		if size == 1 {
			return
		}
		d.frame = joinFrame(b.events, b.classes, size)
	})
	return d.frame
}

// EssentialDeflated returns what [Broadcast.Essential] does, for clients that have negotiated permessage-deflate.
func (b *Broadcast) EssentialDeflated() *Frame {
	f := b.Essential()
	if b.plain || f == nil {
		return f
	}
	d := &b.essentialDeflated
	d.once.Do(func() { d.frame = Deflate(f) })
	return d.frame
}

// joinFrame writes the array of events; with classes given, only of essential ones. size is the payload's length.
func joinFrame(events [][]byte, classes []Class, size int) *Frame {
	out := AppendFrameHeader(make([]byte, 0, maxHeader+size), size)
	h := len(out)
	for i, e := range events {
		if classes != nil && !classes[i].Essential() {
			continue
		}
		if len(out) == h {
			out = append(out, '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return &Frame{bytes: append(out, ']'), header: h}
}
