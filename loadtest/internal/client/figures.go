package client

import "slices"

// Flow is what became of a class's attempts.
type Flow struct {
	Attempts   int64 `json:"attempts" col:"attempts" chart:"per second,attempts,/"`
	Admitted   int64 `json:"admitted" col:"admitted" chart:"per second,admitted,/"`
	Degraded   int64 `json:"degraded" col:"degraded" chart:"per second,degraded,/"`
	Refused    int64 `json:"refused" col:"refused" chart:"per second,refused,/"`
	Duplicate  int64 `json:"duplicate" col:"duplicate"` // stored before, and no second time
	Unanswered int64 `json:"unanswered" col:"unanswered"`
	Unsent     int64 `json:"unsent" col:"unsent"` // the sender's socket was gone
}

func (f *Flow) add(o Outcome) {
	f.Attempts++
	switch o {
	case Admitted:
		f.Admitted++
	case Duplicate:
		f.Duplicate++
	case Degraded:
		f.Degraded++
	case Limited, Busy, Rejected:
		f.Refused++
	case Waiting:
		f.Unanswered++
	case unsent:
		f.Unsent++
	}
}

// Flows adds the attempts from one to before another, by the name of their class.
func (t *Trial) Flows(from, to int) map[string]Flow {
	out := map[string]Flow{}
	for k := from; k < to; k++ {
		if o := Outcome(t.Outcome[k].Load()); o != Planned {
			f := out[t.class[k].String()]
			f.add(o)
			out[t.class[k].String()] = f
		}
	}
	return out
}

// Delivery compares what should have reached the viewers with what did. It is about those who were there from the
// first attempt to the last: one whom the server closed is counted among the closes, and comes back by resuming.
type Delivery struct {
	Viewers  int   `json:"viewers"`
	Expected int64 `json:"expected"` // admitted danmaku × viewers in their rooms, warm-up included
	Lost     int64 `json:"lost"`     // of which the server may have announced some as missed
	Missed   int64 `json:"missed"`   // announced by the server, to all sessions
	Twice    int64 `json:"twice"`    // arrived more than once
	Leaked   int64 `json:"leaked"`   // degraded danmaku that others than their sender saw
	Orders   int   `json:"orders"`   // viewers who saw their room's danmaku in another order than most on their node; -1 where that can't be told
	Gifts    int64 `json:"gifts"`    // expected receipts of stored gifts
	GiftLost int64 `json:"gift_lost"`
	GiftHole int64 `json:"gift_holes"` // breaks in the chain of prev, whether or not something was lost in them
	GiftDup  int64 `json:"gift_repeats"`
}

// owed is what the viewers of a trial should have seen, room by room.
type owed struct {
	danmaku map[uint16]int64
	gifts   map[uint16][]uint64 // sequences, ascending
	echoes  map[*Session]int64  // degraded danmaku that only their sender saw
}

// place is a room on a node: there it has one order.
type place struct {
	room uint16
	node string
}

// Delivered reads what the trial's attempts and the viewers' sessions tell, once all has come to rest.
func (r *Readers) Delivered(t *Trial, viewers []*Session) (d Delivery) {
	o := d.owed(t, viewers, r.arrived(len(t.Due)))
	orders := map[place]map[uint64]int{} // viewers by the hash of what they saw
	visit(viewers, func(v *Session) {
		if !v.Joined() {
			return
		}
		d.Viewers++
		d.Expected += o.danmaku[v.Room]
		d.Lost += max(0, o.danmaku[v.Room]-v.seen.of(t)+o.echoes[v])
		stored := o.gifts[v.Room]
		d.Gifts += int64(len(stored))
		d.GiftDup += v.repeats
		d.GiftHole += int64(len(v.holes))
		for _, h := range append(v.holes, hole{v.lastGift, ^uint64(0)}) {
			d.GiftLost += between(stored, h)
		}
		if at := (place{v.Room, v.Node}); v.seen.trial == t {
			if orders[at] == nil {
				orders[at] = map[uint64]int{}
			}
			orders[at][v.seen.hash]++
		}
	})
	// It can be told only where everybody saw everything, and nobody saw degraded danmaku of their own between the others'.
	if d.Orders = -1; d.Lost == 0 && d.Twice == 0 && len(o.echoes) == 0 && d.Expected > 0 {
		d.Orders = 0
		for _, same := range orders {
			all, most := 0, 0
			for _, n := range same {
				all, most = all+n, max(most, n)
			}
			d.Orders += all - most
		}
	}
	return d
}

// owed looks at who got each attempt, and counts in d what came too often.
func (d *Delivery) owed(t *Trial, viewers []*Session, arrived []uint32) owed {
	o := owed{map[uint16]int64{}, map[uint16][]uint64{}, map[*Session]int64{}}
	present := map[uint16]int64{}
	for _, v := range viewers {
		present[v.Room]++
	}
	for k, n := range arrived {
		room, n := t.room[k], int64(n)
		switch Outcome(t.Outcome[k].Load()) {
		case Admitted, Duplicate:
			if t.class[k] == Danmaku {
				o.danmaku[room]++
			}
			d.Twice += max(0, n-present[room])
		case Degraded:
			o.echoes[t.Sender[k]] += min(n, 1)
			d.Leaked += max(0, n-1)
		default: // the answer did not come, so that only its arrival tells whether it was admitted
			if 2*n > present[room] {
				o.danmaku[room]++
			}
		}
	}
	t.gifts.mu.Lock()
	defer t.gifts.mu.Unlock()
	for seq, g := range t.gifts.stored {
		o.gifts[g.room] = append(o.gifts[g.room], seq)
	}
	for _, seqs := range o.gifts {
		slices.Sort(seqs)
	}
	return o
}

// visit looks at sessions while their sinks stand still.
func visit(sessions []*Session, f func(*Session)) {
	for _, s := range sessions {
		s.sink.mu.Lock()
		f(s)
		s.sink.mu.Unlock()
	}
}

// between counts the sequences of stored, ascending, that lie inside h.
func between(stored []uint64, h hole) int64 {
	lo, found := slices.BinarySearch(stored, h.after)
	if found {
		lo++
	}
	hi, _ := slices.BinarySearch(stored, h.before)
	return int64(max(0, hi-lo))
}

// AdmittedStamps are the instants of admission in the room that admitted most, ascending.
func AdmittedStamps(t *Trial) (most []int64) {
	byRoom := map[uint16][]int64{}
	for k := range t.Due {
		if ts, ok := t.Admission(k); ok {
			byRoom[t.room[k]] = append(byRoom[t.room[k]], ts)
		}
	}
	for _, stamps := range byRoom {
		if len(stamps) > len(most) {
			most = stamps
		}
	}
	slices.Sort(most)
	return most
}
