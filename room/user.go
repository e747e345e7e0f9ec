package room

import (
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
	"liveroom/protocol"
)

// User is one user on this node, over all its sessions and rooms here. The [Hub] keeps it after its last session has
// left until its buckets are full and its answers have aged, so that reconnecting refills nothing.
type User struct {
	// fixed
	id      string
	subject limit.Subject
	abuse   limit.Abuse // of all sessions together

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
	return &User{id: id, subject: limit.Subject{Scope: limit.ScopeUser}, answers: answers{most: cfg.AnswersKept}}
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
	p := &place{room: room, subject: limit.Subject{Scope: limit.ScopeUserRoom}, refs: 1}
	u.places = append(u.places, p)
	return p
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
	content := contentOf(req)
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
