package room

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
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

var contentSeed = maphash.MakeSeed()

// contentOf condenses what a request asks for. Two requests with one id and different content differ in it but for one
// case in 2^64.
func contentOf(req *protocol.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(contentSeed)
	for _, field := range [...]string{
		string(req.Op), req.Text, req.Color, string(req.Mode), req.Gift, string(req.Action), req.User, req.Reason, req.MID,
	} {
		h.WriteString(field)
		h.WriteByte(0)
	}
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:8], uint64(req.Count))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(req.Seconds))
	h.Write(numbers[:])
	return h.Sum64()
}

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
		a.cut(i)
	}
}

// evict drops the oldest settled entry, else the oldest unknown one, whose gift the ledger still knows.
func (a *answers) evict() bool {
	for _, state := range []answerState{settled, unknown} {
		for i, e := range a.list {
			if e.state == state {
				a.cut(i)
				return true
			}
		}
	}
	return false
}

func (a *answers) cut(i int) { a.list = slices.Delete(a.list, i, i+1) }

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
