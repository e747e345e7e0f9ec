package room

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room/people"
)

// User is one user on this node, over all its sessions and rooms here. The [Hub] keeps it after its last session has
// left until its buckets are full and its answers have aged, so that reconnecting refills nothing.
type User struct {
	// fixed
	id      string
	hash    people.Hash
	subject limit.Subject
	abuse   limit.Abuse // of all sessions together
	clock   func() time.Time

	refs int // members and calls that use it; guarded by Hub.mu

	// mu guards the rest.
	mu      lock.Mutex[lock.User]
	places  []*place // few: one per room
	answers answers
}

// maxPlaces bounds the rooms in which one user is remembered at a time. Only a platform's back end that speaks for a
// user in many rooms comes near it.
const maxPlaces = 128

func newUser(id string, cfg *Config) *User {
	return &User{id: id, hash: people.HashOf(id), subject: limit.Subject{Scope: limit.ScopeUser}, clock: cfg.Now, answers: answers{most: cfg.AnswersKept}}
}

// ID is the user's id.
func (u *User) ID() string { return u.id }

// enter returns the user's place in a room, which stays until leave; nil when the user is remembered in too many.
func (u *User) enter(now limit.Instant, room string) *place {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.places {
		if p.room == room {
			p.refs++
			return p
		}
	}
	if len(u.places) >= maxPlaces && !u.tidyLocked(now) {
		return nil
	}
	p := &place{room: room, subject: limit.Subject{Scope: limit.ScopeUserRoom}, since: u.clock(), refs: 1}
	u.places = append(u.places, p)
	return p
}

// placeIn returns the user's place in a room, nil when it is not remembered.
func (u *User) placeIn(room string) *place {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, p := range u.places {
		if p.room == room {
			return p
		}
	}
	return nil
}

func (u *User) leave(p *place) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.refs--
}

// tidyLocked forgets places that say nothing any more and reports whether there is room for another.
func (u *User) tidyLocked(now limit.Instant) bool {
	kept := u.places[:0]
	for _, p := range u.places {
		if !p.quiet(now) {
			kept = append(kept, p)
		}
	}
	clear(u.places[len(kept):])
	u.places = kept
	return len(kept) < maxPlaces
}

// quiet reports whether a user without sessions may be forgotten; if not, looking again before the instant is no use.
func (u *User) quiet(now limit.Instant) (quiet bool, again limit.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers.expire(now)
	if again = u.answers.last(); again > now {
		return false, again
	}
	u.tidyLocked(now)
	for _, p := range u.places {
		again = max(again, p.hold)
	}
	return len(u.places) == 0 && u.subject.Full(now) && u.abuse.Muted(now) == 0, again
}

// begin looks a request up in the memory of first answers. See [answers.begin].
func (u *User) begin(now limit.Instant, room string, req *protocol.Request, keep time.Duration) (*answer, found, chan struct{}) {
	content := req.Content()
	u.mu.Lock()
	defer u.mu.Unlock()
	e, what := u.answers.begin(now, room, req.ID, content, keep)
	if what == foundWork {
		return e, what, e.done
	}
	return e, what, nil
}

// end settles what begin started.
func (u *User) end(e *answer, ack protocol.Ack) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers.end(e, ack)
}

// answer returns what e was settled with.
func (u *User) answer(e *answer) protocol.Ack {
	u.mu.Lock()
	defer u.mu.Unlock()
	return e.ack
}

// place is what one user has in one room: a bucket, the last thing said, and combos. It outlives the user's sessions
// there until it says nothing any more.
type place struct {
	room    string // fixed
	subject limit.Subject
	since   time.Time // fixed

	// admitted and refused count messages.
	admitted, refused atomic.Uint32

	// guarded by User.mu
	refs   int           // members and calls that use it
	seats  int           // members
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

// awake is before every instant, never after every one.
const (
	awake = limit.Instant(math.MinInt64)
	never = limit.Instant(math.MaxInt64)
)

// answers is a user's memory of what it was answered: the same id sent again gets the first answer again, and the same
// id with another content is a conflict. Only answers that stand for an effect are remembered (200, 202, and a gift
// whose outcome is unknown); a refusal may be sent again as it is. Bounded in number and age. Guarded by User.mu.
type answers struct {
	list []*answer // by the time they began
	most int
}

// answer is one request's.
type answer struct {
	room, id string
	content  uint64
	expires  limit.Instant
	state    answerState
	done     chan struct{} // closed when settled; made by the first who waits
	ack      protocol.Ack
	gift     *pendingGift // of a gift whose outcome is unknown, to store again without asking the gate again
}

type answerState uint8

const (
	inFlight answerState = iota // somebody works on it
	unknown                     // a gift that may have been stored: whoever comes next works on it
	settled
)

// found tells what the memory had.
type found uint8

const (
	foundNothing  found = iota // a new entry: the caller works on it and ends it
	foundUnknown               // the caller takes the work up again
	foundAnswer                // entry.ack is the first answer
	foundWork                  // somebody works on it: wait for entry.done
	foundConflict              // the id was used for something else
	foundFull                  // everything remembered is still in flight
)

// begin looks an id up and makes an entry when there is none. keep is how long a new entry stays.
func (a *answers) begin(now limit.Instant, room, id string, content uint64, keep time.Duration) (*answer, found) {
	a.expire(now)
	for i := len(a.list) - 1; i >= 0; i-- {
		e := a.list[i]
		if e.id != id || e.room != room {
			continue
		}
		switch {
		case e.content != content:
			return e, foundConflict
		case e.state == settled:
			return e, foundAnswer
		case e.state == unknown:
			e.state = inFlight
			return e, foundUnknown
		}
		if e.done == nil {
			e.done = make(chan struct{})
		}
		return e, foundWork
	}
	if len(a.list) >= a.most && !a.evict() {
		return nil, foundFull
	}
	e := &answer{room: room, id: id, content: content, expires: now.Add(keep)}
	a.list = append(a.list, e)
	return e, foundNothing
}

// end settles e with ack, wakes who waits, and forgets what had no effect.
func (a *answers) end(e *answer, ack protocol.Ack) {
	e.ack = ack
	e.state = settled
	switch {
	case ack.Code == protocol.OK || ack.Code == protocol.Degraded:
		e.gift = nil
	case e.gift != nil:
		e.state = unknown
		e.expires = e.gift.until
	default:
		a.forget(e)
	}
	if e.done != nil {
		close(e.done)
		e.done = nil
	}
}

func (a *answers) forget(e *answer) {
	if i := slices.Index(a.list, e); i >= 0 {
		a.remove(i)
	}
}

// evict drops the oldest settled entry, else the oldest unknown one, whose gift the ledger still knows.
func (a *answers) evict() bool {
	for _, state := range []answerState{settled, unknown} {
		for i, e := range a.list {
			if e.state == state {
				a.remove(i)
				return true
			}
		}
	}
	return false
}

func (a *answers) remove(i int) { a.list = slices.Delete(a.list, i, i+1) }

// last returns when the last of them is over its age.
func (a *answers) last() limit.Instant {
	last := awake
	for _, e := range a.list {
		last = max(last, e.expires)
	}
	return last
}

// expire drops what is over its age and not in flight.
func (a *answers) expire(now limit.Instant) {
	over := func(e *answer) bool { return e.state != inFlight && e.expires <= now }
	if !slices.ContainsFunc(a.list, over) { // the usual case writes nothing
		return
	}
	if a.list = slices.DeleteFunc(a.list, over); len(a.list) == 0 {
		a.list = nil
	}
}
