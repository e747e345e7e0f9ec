package main

import "slices"

// Flow is what became of a class's attempts.
type Flow struct {
	Attempts int64 `json:"attempts" col:"attempts"`
	Admitted int64 `json:"admitted" col:"admitted"` // in ClassFigures without Duplicate
	Degraded int64 `json:"degraded" col:"degraded"`
	Refused  int64 `json:"refused" col:"refused"`
}

func (f *Flow) add(o outcome) {
	f.Attempts++
	switch o {
	case admitted, duplicate:
		f.Admitted++
	case degraded:
		f.Degraded++
	case limited, busy, rejected:
		f.Refused++
	}
}

// ClassFigures is what became of one class's measured attempts.
type ClassFigures struct {
	Flow
	Duplicate  int64            `json:"duplicate" col:"duplicate"`
	Unanswered int64            `json:"unanswered" col:"unanswered"`
	Unsent     int64            `json:"unsent" col:"unsent"` // the sender's socket was gone
	Outcomes   map[string]int64 `json:"outcomes"`

	name string
}

func (c ClassFigures) label() string { return c.name }

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

// figures sums a trial up.
type figures struct {
	classes  map[string]*ClassFigures
	delivery Delivery
	stamps   []int64 // of admitted danmaku in the room that admitted most, ascending, Unix milliseconds
}

// sumUp reads everything that the trial's attempts and the viewers' sessions tell, once all has come to rest.
func sumUp(t *trial, viewers []*session, sp *speaker, r *readers) figures {
	f := figures{classes: map[string]*ClassFigures{}}
	for c := range classes {
		f.classes[c.String()] = &ClassFigures{name: c.String(), Outcomes: map[string]int64{}}
	}
	for k := t.from; k < len(t.due); k++ {
		if o := outcome(t.outcome[k].Load()); o != planned {
			f.classes[t.class[k].String()].add(o)
		}
	}
	f.delivery.danmaku(t, viewers, sp, r)
	f.delivery.gifts(t, viewers, r)
	f.delivery.order(t, viewers, r, f.classes[danmaku.String()].Degraded)
	f.stamps = admittedStamps(t)
	return f
}

func (c *ClassFigures) add(o outcome) {
	c.Flow.add(o)
	c.Outcomes[o.String()]++
	switch o {
	case duplicate:
		c.Admitted--
		c.Duplicate++
	case waiting:
		c.Unanswered++
	case unsent:
		c.Unsent++
	}
}

// danmaku compares, for each viewer who stayed, how many of its room's danmaku it saw.
func (d *Delivery) danmaku(t *trial, viewers []*session, sp *speaker, r *readers) {
	present := map[uint16]int64{}
	for _, v := range viewers {
		present[v.room]++
	}
	expected := map[uint16]int64{} // danmaku of a room
	echoes := map[*session]int64{} // degraded ones that only their sender saw
	arrived := r.delivered(len(t.due))
	for k, n := range arrived {
		room, n := t.room[k], int64(n)
		switch outcome(t.outcome[k].Load()) {
		case admitted, duplicate:
			if t.class[k] == danmaku {
				expected[room]++
			}
			d.Twice += max(0, n-present[room])
		case degraded:
			echoes[sp.senderOf(k)] += min(n, 1)
			d.Leaked += max(0, n-1)
		default: // the answer did not come, so that only its arrival tells whether it was admitted
			if 2*n > present[room] {
				expected[room]++
			}
		}
	}
	for _, k := range r.sinks {
		k.mu.Lock()
		for _, v := range viewers {
			if v.sink == k && v.joined() {
				d.Viewers++
				d.Expected += expected[v.room]
				d.Lost += max(0, expected[v.room]-v.seen.of(t)+echoes[v])
			}
		}
		k.mu.Unlock()
	}
}

// gifts looks for stored gifts that a session did not see: in a hole of its chain, or after its last one.
func (d *Delivery) gifts(t *trial, viewers []*session, r *readers) {
	byRoom := map[uint16][]uint64{}
	t.gifts.mu.Lock()
	for seq, g := range t.gifts.stored {
		byRoom[g.room] = append(byRoom[g.room], seq)
	}
	t.gifts.mu.Unlock()
	for _, seqs := range byRoom {
		slices.Sort(seqs)
	}
	for _, k := range r.sinks {
		k.mu.Lock()
		for _, v := range viewers {
			if v.sink == k && v.joined() {
				d.giftsOf(v, byRoom[v.room])
			}
		}
		k.mu.Unlock()
	}
}

// order compares what the viewers of each room and node saw: a room has one order on a node. It can be told only where everybody saw everything, and where nobody
// saw degraded danmaku of their own between the others'.
func (d *Delivery) order(t *trial, viewers []*session, r *readers, degraded int64) {
	if d.Orders = -1; d.Lost > 0 || d.Twice > 0 || degraded > 0 || d.Expected == 0 {
		return
	}
	d.Orders = 0
	type place struct {
		room uint16
		node string
	}
	hashes := map[place]map[uint64]int{}
	for _, k := range r.sinks {
		k.mu.Lock()
		for _, v := range viewers {
			if v.sink != k || v.seen.trial != t || !v.joined() {
				continue
			}
			at := place{v.room, v.node}
			if hashes[at] == nil {
				hashes[at] = map[uint64]int{}
			}
			hashes[at][v.seen.hash]++
		}
		k.mu.Unlock()
	}
	for _, same := range hashes {
		all, most := 0, 0
		for _, n := range same {
			all, most = all+n, max(most, n)
		}
		d.Orders += all - most
	}
}

func (d *Delivery) giftsOf(v *session, stored []uint64) {
	d.Gifts += int64(len(stored))
	d.GiftDup += v.repeats
	for _, h := range append(v.holes, hole{v.lastGift, ^uint64(0)}) {
		d.GiftLost += between(stored, h)
	}
	d.GiftHole += int64(len(v.holes))
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

// admittedStamps are the instants of admission in the room that admitted most.
func admittedStamps(t *trial) []int64 {
	byRoom := map[uint16][]int64{}
	for k := range t.due {
		if ts, ok := t.admission(k); ok {
			byRoom[t.room[k]] = append(byRoom[t.room[k]], ts)
		}
	}
	var most []int64
	for _, stamps := range byRoom {
		if len(stamps) > len(most) {
			most = stamps
		}
	}
	slices.Sort(most)
	return most
}

// flows sorts the attempts of each class into the slots they were due in.
func flows(t *trial, slots []Slot) {
	k := 0
	for i := range slots {
		slots[i].Classes = map[string]Flow{}
		end := int64(slots[i].At * 1e9)
		for ; k < len(t.due) && (t.due[k] < end || i == len(slots)-1); k++ {
			if o := outcome(t.outcome[k].Load()); o != planned {
				name := t.class[k].String()
				f := slots[i].Classes[name]
				f.add(o)
				slots[i].Classes[name] = f
			}
		}
	}
}
