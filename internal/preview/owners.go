package preview

import (
	"strings"
	"sync/atomic"
)

// ownerSlots bounds how many connections of sampled users are known by their address; of two that meet in a slot, the
// later one is.
const ownerSlots = 1 << 14

// owner tells whose a connection is: its frames are asked before anybody has read a user out of them.
type owner struct {
	conn uintptr
	hash uint64
	name string
}

// owners is read for each frame, without a lock.
type owners struct {
	slots [ownerSlots]atomic.Pointer[owner]
}

func (o *owners) slot(conn uintptr) *atomic.Pointer[owner] {
	return &o.slots[mix(uint64(conn))>>50]
}

func (o *owners) find(conn uintptr) *owner {
	if own := o.slot(conn).Load(); own != nil && own.conn == conn {
		return own
	}
	return nil
}

// note takes down who joined by a connection. An address may have belonged to somebody else before.
func (o *owners) note(conn uintptr, name string, hash uint64, sampled bool) {
	slot := o.slot(conn)
	was := slot.Load()
	switch {
	case sampled && (was == nil || was.conn != conn || was.hash != hash):
		slot.Store(&owner{conn: conn, hash: hash, name: strings.Clone(name)})
	case !sampled && was != nil && was.conn == conn:
		slot.Store(nil)
	}
}
