package limit

import (
	"net/netip"

	"liveroom/internal/lock"
)

// Table keeps the subjects of a scope that has no owner to keep them, such as
// networks and API keys. It holds at most so many. It forgets only what is
// full again, and a few of those at each arrival, so that it needs no
// goroutine; when every place is taken by a live one it refuses the unknown
// rather than forget a debt. It is safe for concurrent use.
type Table[K comparable] struct {
	scope Scope
	most  int

	mu      lock.Mutex[lock.Table]
	entries map[K]*Entry
}

// Entry is a Subject of a Table, held between Acquire and Release.
type Entry struct {
	Subject

	// guarded by the table's mu
	holders int
}

// How many entries an arrival looks at to find some to forget: a little while
// there is room, more when there is none.
const (
	sweepAtArrival = 4
	sweepWhenFull  = 64
)

// NewTable returns an empty Table of at most so many subjects of a scope,
// at least 1.
func NewTable[K comparable](scope Scope, most int) *Table[K] {
	return &Table[K]{scope: scope, most: max(most, 1), entries: map[K]*Entry{}}
}

// Acquire returns the subject of a key, to be given back with Release. It
// reports false when the key is unknown and no place is free, which the
// caller answers as a refusal.
func (t *Table[K]) Acquire(now Instant, key K) (*Entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	if e == nil {
		t.sweepLocked(now, sweepAtArrival)
		if len(t.entries) >= t.most {
			t.sweepLocked(now, sweepWhenFull)
		}
		if len(t.entries) >= t.most {
			return nil, false
		}
		e = &Entry{Subject: Subject{Scope: t.scope}}
		t.entries[key] = e
	}
	e.holders++
	return e, true
}

// Release gives a subject back.
func (t *Table[K]) Release(e *Entry) {
	t.mu.Lock()
	e.holders--
	t.mu.Unlock()
}

// Sweep forgets every subject that is full at now and that nobody holds, and
// returns how many remain.
func (t *Table[K]) Sweep(now Instant) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepLocked(now, len(t.entries))
	return len(t.entries)
}

// Len returns how many subjects the table holds.
func (t *Table[K]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries)
}

// sweepLocked looks at so many entries, from a random one on, as the iteration
// of a map begins.
func (t *Table[K]) sweepLocked(now Instant, looks int) {
	for key, e := range t.entries {
		if looks--; looks < 0 {
			return
		}
		if e.holders == 0 && e.Full(now) {
			delete(t.entries, key)
		}
	}
}

// HostPrefix returns what ScopeIP limits: an IPv4 address, or the /64 that one
// IPv6 subscriber has. An IPv4-mapped address counts as IPv4; zones are dropped.
func HostPrefix(addr netip.Addr) netip.Prefix { return prefixOf(addr, 32, 64) }

// NetPrefix returns what ScopeNet limits: the /24 or /48 around an address.
func NetPrefix(addr netip.Addr) netip.Prefix { return prefixOf(addr, 24, 48) }

func prefixOf(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}
