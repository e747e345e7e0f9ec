package conn

import (
	"sync/atomic"

	"liveroom/protocol"
)

// dropReason says why a message did not get to a viewer, or with overload to anybody. It is also the metric's label.
type dropReason uint8

const (
	dropSlow     dropReason = iota // the viewer's queue was over its bound
	dropReplaced                   // a newer like took its place
	dropClosed                     // it waited in the queue of a session that ended
	dropOverload                   // its sender was refused because the node was behind
	numDropReasons
)

func (r dropReason) String() string {
	return [numDropReasons]string{"slow", "replaced", "closed", "overload"}[r]
}

// counters are one stripe of the totals. A session keeps to one stripe, so that workers on different cores seldom meet in
// the same cache line.
type counters struct {
	frames    atomic.Uint64
	bytes     atomic.Uint64
	inflated  atomic.Uint64 // bytes of deflated frames as they would have been
	deflated  atomic.Uint64 // and as they were; in bytes as well
	delivered [protocol.NumClasses]atomic.Uint64
	dropped   [protocol.NumClasses][numDropReasons]atomic.Uint64
	_         [64]byte
}

// sentFull counts a whole broadcast that the kernel took.
func (c *counters) sentFull(b *protocol.Broadcast, bytes int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(bytes))
	c.shrunk(b.Full(), bytes)
	for class := range protocol.NumClasses {
		if n := b.Count(class); n != 0 {
			c.delivered[class].Add(uint64(n))
		}
	}
}

// sent counts an entry of the queue that the kernel took whole.
func (c *counters) sent(e *entry) {
	if e.kind == kindWire {
		c.bytes.Add(uint64(e.size))
		return
	}
	c.frames.Add(1)
	c.bytes.Add(uint64(e.size))
	switch e.kind {
	case kindFull:
		c.shrunk(e.b.Full(), e.size)
	case kindEssential:
		c.shrunk(e.b.Essential(), e.size)
	}
	for class := range protocol.NumClasses {
		if n := e.count(class); n != 0 {
			c.delivered[class].Add(uint64(n))
		}
	}
}

// shrunk counts what deflating has saved of a frame that went out with so many bytes.
func (c *counters) shrunk(plain *protocol.Frame, bytes int) {
	if n := plain.Len(); n != bytes {
		c.inflated.Add(uint64(n))
		c.deflated.Add(uint64(bytes))
	}
}

// drop counts the messages of an entry that will not be sent.
func (c *counters) drop(e *entry, why dropReason) {
	for class := range protocol.NumClasses {
		if n := e.count(class); n != 0 {
			c.dropped[class][why].Add(uint64(n))
		}
	}
}
