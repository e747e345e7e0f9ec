package people

import (
	"bytes"
	"encoding/base64"
	"slices"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
)

// Census is one room's persons on one node.
type Census struct {
	// fixed
	part string // who counts: one start of one node

	now     atomic.Int64           // persons there on all nodes
	version atomic.Uint64          // grows with each who comes or goes
	danmaku atomic.Int64           // shown since the last tick
	told    atomic.Pointer[[]Told] // as stored; nil: nothing is known

	// mu guards the rest. A leaf.
	mu        lock.Mutex[lock.Leaf]
	here      sample
	during    []passage // who came and went while those who are here are listed; nil: nobody lists them
	known     int64     // when the show began that the store knew last, Unix ms
	elsewhere int       // persons on other nodes alone
	guess     bool      // elsewhere is one
	first     int64     // when somebody came first, Unix ms; 0: nobody yet
	show      show
	past      []Told
	dirty     bool // somebody came who was not in the show, or was refused: to be stored soon
	moved     bool // less has changed: danmaku, or how many are there
	crowd     int  // who were there at the last tick
}

// How long after it was last stored a room's record is stored again. That costs a sync, and a platform has many rooms: what a node that is killed
// loses of the curves of its rooms is some 20 s, and of a room where nothing happens no more than how long it went on.
const (
	afterPerson = 5 * time.Second
	afterMove   = 20 * time.Second
	afterTime   = 5 * time.Minute // showGap is far longer
)

// New returns the census of a room where nobody is yet. Part names who counts, another with each start of each node.
func New(part string) *Census { return &Census{part: part} }

// Enter takes a person who was not here. now is Unix ms.
func (c *Census) Enter(h Hash, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here.enter(h)
	c.passLocked(passage{h, true})
	if c.running() && now-c.show.seen >= showGap.Milliseconds() { // over, unless the store knows better
		c.show, c.first = show{}, 0
	}
	if c.first == 0 {
		c.first = now
	}
	if c.show.end == 0 {
		c.dirty = c.show.people.add(h) || c.dirty
	}
	c.countLocked(now)
}

// Leave takes a person away who has no window here any more.
func (c *Census) Leave(h Hash, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here.leave(h)
	c.passLocked(passage{h, false})
	c.countLocked(now)
}

func (c *Census) passLocked(p passage) {
	c.version.Add(1)
	if c.during != nil {
		c.during = append(c.during, p)
	}
}

func (c *Census) countLocked(now int64) {
	c.now.Store(int64(c.here.all + c.elsewhere))
	c.noteLocked(now)
}

// noteLocked notes how many are there. With other nodes that waits for the tick, when all have been counted together.
func (c *Census) noteLocked(now int64) {
	if c.elsewhere == 0 && !c.guess && c.running() {
		c.show.crowd(now, c.here.all)
	}
}

// running reports whether there is a show, as far as is known. Caller holds mu.
func (c *Census) running() bool { return c.show.begin != 0 && c.show.end == 0 }

// Now is how many persons are in the room on all nodes, as far as this one knows.
func (c *Census) Now() int { return int(c.now.Load()) }

// Version grows with each who comes or goes here.
func (c *Census) Version() uint64 { return c.version.Load() }

// Danmaku counts one that was shown.
func (c *Census) Danmaku() { c.danmaku.Add(1) }

// Refuse counts a refusal.
func (c *Census) Refuse(r Refused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.show.end == 0 {
		c.show.refuse(c.part, r)
		c.dirty = true
	}
}

// Crowd is what other nodes are told.
func (c *Census) Crowd() Crowd {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here.crowd()
}

// Here is how many persons are here.
func (c *Census) Here() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here.all
}

// Elsewhere takes what the other nodes tell; guess: not all have told whom they have, and nothing is noted of the sum.
func (c *Census) Elsewhere(others []Crowd, guess bool, now int64) {
	if len(others) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.elsewhere, c.guess = 0, false
		c.countLocked(now)
		return
	}
	own := c.Crowd()
	all := Together(append(slices.Clone(others), own)...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elsewhere, c.guess = max(all-own.People, 0), guess
	c.countLocked(now)
}

// Tick notes the present minute. There are, asked without a lock, are those whom the room has here; a sample is drawn anew from them when most
// have left.
func (c *Census) Tick(now int64, there func() []Hash) {
	c.mu.Lock()
	coarse := c.here.coarse()
	if coarse {
		c.during = []passage{}
	}
	if c.running() {
		if !c.guess {
			c.show.crowd(now, c.here.all+c.elsewhere)
		}
		if n := c.here.all + c.elsewhere; n != c.crowd {
			c.crowd, c.moved = n, true
		}
		if n := c.danmaku.Swap(0); n > 0 {
			c.moved = true
			if m := c.show.minute(now); m != nil {
				m.Danmaku += int(n)
			}
		}
	}
	if c.show.end != 0 {
		c.danmaku.Store(0)
	}
	c.mu.Unlock()
	if !coarse {
		return
	}
	all := there()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here.again(all, c.during)
	c.during = nil
	c.version.Add(1)
}

// Due returns how long after it was last stored the room's record is to be stored again, or a show to begin or to end; false: nothing is to
// be stored.
func (c *Census) Due(now int64, d Doors) (after time.Duration, yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, over := c.show.over(now, d)
	switch {
	case c.dirty, c.show.begin != 0 && (over && c.here.all > 0 || c.show.end == 0 && d.Closed > c.show.begin):
		return afterPerson, true
	case c.moved:
		return afterMove, true
	}
	return afterTime, c.running() && c.here.all > 0
}

// Shows are the room's shows as stored, the newest first; nil when nothing is known.
func (c *Census) Shows() []Told {
	if t := c.told.Load(); t != nil {
		return *t
	}
	return nil
}

// Stored takes what is stored of the room and was just read or written.
func (c *Census) Stored(value []byte, now int64) error {
	shows, err := Shows(value, now)
	if err != nil || len(shows) == 0 {
		return err
	}
	c.told.Store(&shows)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = shows[0].Begin
	return nil
}

// Meet merges what is stored with what this node knows, lets a show begin or end that is to, and returns what is to be stored instead, nil
// for nothing. There, asked without a lock when another show begins, are those whom the room has here. What can't be read is written over.
func (c *Census) Meet(stored []byte, now int64, d Doors, there func() []Hash) []byte {
	r, theirs, _ := parseRecord(stored)
	var all []Hash
	if c.turns(&theirs, now, d) {
		all = there()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty, c.moved = false, false
	if c.show.begin != c.known { // decided here, and not stored: somebody else may have been faster
		c.show.begin, c.show.minutes = 0, nil
	}
	early := c.meetLocked(r, &theirs, now, d)
	if c.show.begin == 0 && !c.beginLocked(now, d) {
		return nil
	}
	if d.Closed > c.show.begin && (c.show.end == 0 || d.Closed < c.show.end) {
		c.show.end = d.Closed
	}
	if next, over := c.show.over(now, d); over && c.here.all > 0 {
		c.past = pastOf(c.past, &c.show)
		c.show = show{begin: next, seen: next}
		c.show.merge(&early)
	}
	if c.running() {
		for _, h := range all {
			c.show.people.add(h)
		}
		c.noteLocked(now)
	}
	if value := encodeRecord(&c.show, c.past); !bytes.Equal(value, stored) {
		return value
	}
	return nil
}

// turns reports whether those who are here are to be counted in a show that this node has not counted yet.
func (c *Census) turns(theirs *show, now int64, d Doors) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := &c.show
	if theirs.begin > c.show.begin {
		newest = theirs
	}
	_, over := newest.over(now, d)
	return newest == theirs || over
}

// meetLocked makes c's the newer of two shows, or both of them together. What was counted before any show was known is of the stored one,
// unless that is over.
func (c *Census) meetLocked(r record, theirs *show, now int64, d Doors) (early show) {
	switch {
	case theirs.begin == 0:
	case c.show.begin == 0:
		early, c.show, c.past = c.show, *theirs, r.Past
		if _, over := theirs.over(now, d); !over && theirs.end == 0 {
			c.show.merge(&early)
		}
	case c.show.begin == theirs.begin:
		c.show.merge(theirs)
		c.past = r.Past
	case c.show.begin < theirs.begin:
		c.show, c.past = *theirs, r.Past
	default: // ours has begun since
		c.past = pastOf(r.Past, theirs)
	}
	return early
}

// beginLocked lets the first show begin that is known of the room, if somebody is there.
func (c *Census) beginLocked(now int64, d Doors) bool {
	if d.Shut || c.first == 0 {
		return false
	}
	c.show.begin = c.first
	if d.Opened > 0 && d.Opened < c.first && now-d.Opened < showGap.Milliseconds() {
		c.show.begin = d.Opened
	}
	c.show.seen = max(c.show.seen, c.first)
	return true
}

// pastOf adds a show that is over.
func pastOf(past []Told, s *show) []Told {
	if len(past) > 0 && past[len(past)-1].Begin >= s.begin {
		return past
	}
	past = append(slices.Clip(past), s.told(true))
	return past[max(len(past)-pastMost, 0):]
}

func encode64(b []byte) []byte { return base64.RawStdEncoding.AppendEncode(nil, b) }

func decode64(text []byte) ([]byte, error) { return base64.RawStdEncoding.AppendDecode(nil, text) }
