package room

import (
	"time"

	"liveroom/limit"
)

// place is what one user has in one room: a bucket, the last thing said, and combos. It outlives the user's sessions
// there until it says nothing any more.
type place struct {
	room    string // fixed
	subject limit.Subject

	// guarded by User.mu
	refs   int           // members and calls that use it
	hold   limit.Instant // until when what follows matters
	said   saying
	combos []combo
}

// saying is the last danmaku a user was admitted with in a room, or is about to be.
type saying struct {
	content uint64
	at      limit.Instant
	any     bool
}

// combo counts a gift given in a row.
type combo struct {
	gift  string
	count int
	at    limit.Instant
}

// maxCombos bounds the gifts that a user can have combos of in one room at a time.
const maxCombos = 8

// combine returns the combo's count with n more of a gift.
func (p *place) combine(now limit.Instant, within time.Duration, gift string, n int) int {
	kept := p.combos[:0]
	var c combo
	for _, old := range p.combos {
		switch {
		case now.Sub(old.at) >= within:
		case old.gift == gift:
			c = old
		default:
			kept = append(kept, old)
		}
	}
	if len(kept) == maxCombos {
		kept = append(kept[:0], kept[1:]...)
	}
	c = combo{gift, c.count + n, now}
	p.combos = append(kept, c)
	p.hold = max(p.hold, now.Add(within))
	return c.count
}

// takeBack undoes a combine whose gift was not stored.
func (p *place) takeBack(gift string, n int) {
	for i := range p.combos {
		if p.combos[i].gift == gift {
			p.combos[i].count = max(0, p.combos[i].count-n)
		}
	}
}

// quiet reports whether the place may be forgotten: a new one would decide the same.
func (p *place) quiet(now limit.Instant) bool {
	return p.refs == 0 && now >= p.hold && p.subject.Full(now)
}

// combine is [place.combine] under the user's lock.
func (u *User) combine(p *place, now limit.Instant, within time.Duration, gift string, n int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return p.combine(now, within, gift, n)
}

// takeBack is [place.takeBack] under the user's lock.
func (u *User) takeBack(p *place, gift string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.takeBack(gift, n)
}
