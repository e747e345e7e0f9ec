package preview

import (
	"strings"
	"sync/atomic"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// The table of connections: sets of ways places. In a full set the connection that joined first makes room; its frames
// are then counted as nobody's, its messages are not touched.
const (
	ownerSets = 1 << 12
	ownerWays = 8
)

// owner tells whose a connection is: its frames are asked before anybody has read a user out of them.
type owner struct {
	conn   uintptr
	hash   uint64
	name   string
	joined limit.Instant
}

// owners is read for each frame, without a lock, and written for each join of a sampled user.
type owners struct {
	sets [ownerSets][ownerWays]ownerPlace

	mu lock.Mutex[lock.Leaf] // guards writes; a leaf
}

type ownerPlace struct {
	conn  atomic.Uintptr // of owner, to look for without following it
	owner atomic.Pointer[owner]
}

func (o *owners) set(conn uintptr) *[ownerWays]ownerPlace {
	return &o.sets[mix(uint64(conn))%ownerSets]
}

func (o *owners) find(conn uintptr) *owner {
	set := o.set(conn)
	for i := range set {
		if set[i].conn.Load() != conn {
			continue
		}
		if own := set[i].owner.Load(); own != nil && own.conn == conn {
			return own
		}
	}
	return nil
}

// note takes down who joined by a connection. An address may have belonged to somebody else before.
func (o *owners) note(conn uintptr, name string, hash uint64, sampled bool, now limit.Instant) {
	if !sampled && o.find(conn) == nil || len(name) > maxName {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	set := o.set(conn)
	at := &set[0]
	for i := range set {
		p := &set[i]
		if own := p.owner.Load(); own == nil || own.conn == conn {
			at = p
			if own != nil {
				break
			}
		} else if was := at.owner.Load(); was != nil && was.conn != conn && own.joined < was.joined {
			at = p
		}
	}
	own := at.owner.Load()
	known := own != nil && own.conn == conn
	switch {
	case !sampled && known:
		at.conn.Store(0)
		at.owner.Store(nil)
		return
	case !sampled, known && own.hash == hash:
		return
	}
	at.owner.Store(&owner{conn: conn, hash: hash, name: strings.Clone(name), joined: now})
	at.conn.Store(conn)
}
