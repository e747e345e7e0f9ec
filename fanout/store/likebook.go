package store

import (
	"fmt"
	"maps"
	"time"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// likeWindow is how long the counters remember an increment's id, the stream's duplicate window.
const likeWindow = 2 * time.Minute

// likeBook holds the likes on their way to the store: per room what waits, and one increment whose answer is awaited.
type likeBook struct {
	soon link.Wake // something waits

	mu      lock.Mutex[lock.Leaf]
	tallies map[string]*tally
	totals  map[string]int64 // stored, not announced yet
	count   uint64           // of increments, for their ids
}

type tally struct {
	waiting int64
	sent    increment // delta 0: none
	since   time.Time // when sent was taken first
	tried   bool      // sent has left this process and may have been counted
}

// increment is one write to a room's counter; the same id counts once.
type increment struct {
	room, id string
	delta    int64
}

func newLikeBook() *likeBook {
	return &likeBook{soon: link.NewWake(), tallies: map[string]*tally{}, totals: map[string]int64{}}
}

func (b *likeBook) add(room string, delta int64) {
	b.mu.Lock()
	t := b.tallies[room]
	if t == nil {
		t = &tally{}
		b.tallies[room] = t
	}
	t.waiting += delta
	b.mu.Unlock()
	b.soon.Soon()
}

// take returns one increment per room: the one without an answer again under its id, else what waits under a new id.
// An increment that is older than the counters' memory is given up instead: it may have been counted, and a total
// that is a second of likes too low is better than one that counts them twice.
func (b *likeBook) take(now time.Time, idPrefix string) []increment {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []increment
	for room, t := range b.tallies {
		if t.sent.delta > 0 && now.Sub(t.since) > likeWindow*9/10 {
			t.sent = increment{}
		}
		if t.sent.delta == 0 && t.waiting > 0 {
			b.count++
			t.sent = increment{room, fmt.Sprintf("%s/%d", idPrefix, b.count), t.waiting}
			t.waiting, t.since, t.tried = 0, now, false
		}
		if t.sent.delta > 0 {
			batch = append(batch, t.sent)
		} else {
			delete(b.tallies, room)
		}
	}
	return batch
}

// unsent takes back increments that never left this process in this attempt. One that left it in an earlier attempt
// keeps its id.
func (b *likeBook) unsent(batch []increment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, inc := range batch {
		if t := b.tallies[inc.room]; t != nil && t.sent.id == inc.id && !t.tried {
			t.waiting += t.sent.delta
			t.sent = increment{}
		}
	}
}

// trying notes that an increment has left this process.
func (b *likeBook) trying(inc increment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tallies[inc.room]; t != nil && t.sent.id == inc.id {
		t.tried = true
	}
}

// stored notes that an increment is in its counter. A total of 0 is unknown and not announced.
func (b *likeBook) stored(inc increment, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tallies[inc.room]; t != nil && t.sent.id == inc.id {
		t.sent = increment{}
		if t.waiting == 0 {
			delete(b.tallies, inc.room)
		}
	}
	if total > 0 {
		b.totals[inc.room] = max(b.totals[inc.room], total)
	}
}

// known are the totals of rooms that were stored and not announced yet.
func (b *likeBook) known() map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.totals)
}

// due returns the totals to announce and forgets them.
func (b *likeBook) due() map[string]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	totals := b.totals
	b.totals = map[string]int64{}
	return totals
}

// notAnnounced takes them back.
func (b *likeBook) notAnnounced(totals map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for room, total := range totals {
		b.totals[room] = max(b.totals[room], total)
	}
}

// waiting returns the likes that are not known to be stored.
func (b *likeBook) waiting() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, t := range b.tallies {
		n += t.waiting + t.sent.delta
	}
	return n
}
