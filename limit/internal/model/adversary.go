package model

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

// Adversary plays nodes that keep the store's contract to the letter and hurt
// as much as it lets them, over a link that does the same: they hoard and spend
// at the last instant, give back what they have just been granted, give up
// calls that are executed later, and repeat others. It runs on a clock of its
// own, event by event, and needs no engine: what it proves is the contract.
type Adversary struct {
	Seed   uint64
	Bound  Bound
	Nodes  int
	Length time.Duration
	// Steps and Failovers befall the server's clock and its memory at random.
	Steps, Failovers bool
}

const adversaryKey = "lr:{room:x}:quota"

// fiend is one such node.
type fiend struct {
	name               string
	names              int
	seq                int64
	hold               int64
	until              time.Duration
	received, returned int64
	seen               int64
	seenSent, seenGot  time.Duration
	calling            int64 // seq under way, 0 for none
	last               time.Duration
}

type arena struct {
	a      Adversary
	r      *rand.Rand
	now    time.Duration
	queue  happenings
	count  int
	book   *ledger.Ledger
	fiends []*fiend
	spent  []Admission
	recent []executed
	lost   int64
}

// happening is something due at an instant; ties go by who came first.
type happening struct {
	at    time.Duration
	order int
	do    func()
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }

func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// Run plays and returns everything that was spent, what fail-overs lost, and
// the first fault that the store found in itself.
func (a Adversary) Run() (spent []Admission, lost int64, err error) {
	w := &arena{a: a, r: newStream(a.Seed, purposeScenario, 1).rand}
	origin := time.Unix(1_790_000_000, 0)
	w.book = ledger.New(func() time.Time { return origin.Add(w.now) }, "s")
	for i := range a.Nodes {
		f := &fiend{name: fmt.Sprintf("n%d#x-", i)}
		w.fiends = append(w.fiends, f)
		w.after(w.some(20*time.Millisecond), func() { w.act(f) })
	}
	if a.Steps || a.Failovers {
		w.after(w.some(time.Second), w.befall)
	}
	for w.queue.Len() > 0 && err == nil {
		h := heap.Pop(&w.queue).(happening)
		w.now = h.at
		h.do()
		err = w.book.Check()
	}
	return w.spent, w.lost, err
}

// some is a time of up to d, in whole microseconds as the store counts.
func (w *arena) some(d time.Duration) time.Duration {
	return time.Duration(w.r.Int64N(int64(d/time.Microsecond)+1)) * time.Microsecond
}

func (w *arena) after(d time.Duration, do func()) {
	if w.now+d > w.a.Length {
		return
	}
	w.count++
	heap.Push(&w.queue, happening{w.now + d, w.count, do})
}

// befall does something to the server.
func (w *arena) befall() {
	if w.a.Steps {
		by := w.some(2*time.Hour) - time.Hour
		w.book.Step("s", by)
	}
	if w.a.Failovers && w.r.IntN(3) == 0 {
		lag := w.some(300 * time.Millisecond)
		for _, e := range w.recent {
			if at := e.at.Sub(time.Time{}); w.now-at < lag {
				w.lost += e.granted
			}
		}
		w.recent = nil
		w.book.FailOver("s", lag, 0)
	}
	w.after(w.some(2*time.Second), w.befall)
}

// act lets a node do something, and again later.
func (w *arena) act(f *fiend) {
	if w.now >= f.until {
		f.hold = 0
	}
	switch w.r.IntN(4) {
	case 0:
		w.spend(f, f.hold)
	case 1:
		if f.hold > 0 {
			w.spend(f, 1+w.r.Int64N(f.hold))
		}
	default:
		if f.calling == 0 {
			w.call(f)
		}
	}
	pause := 30 * time.Millisecond
	if w.r.IntN(50) == 0 {
		pause = 15 * time.Second // silent beyond the store's memory
	}
	w.after(w.some(pause), func() { w.act(f) })
	if f.until > w.now && w.r.IntN(2) == 0 {
		w.after(f.until-w.now-time.Microsecond, func() { w.spend(f, f.hold) })
	}
}

func (w *arena) spend(f *fiend, n int64) {
	if n = min(n, f.hold); n > 0 && w.now < f.until {
		f.hold -= n
		w.spent = append(w.spent, Admission{At: w.now, Cost: n})
	}
}

const fiendLease = 250 * time.Millisecond

// call sends a draw whose fate is drawn: in time, late, lost, unheard, twice.
func (w *arena) call(f *fiend) {
	if w.now-f.last > 8*time.Second || f.names == 0 {
		f.names++
		f.seq, f.received, f.returned, f.hold = 0, 0, 0, 0
	}
	f.last = w.now
	f.seq++
	if f.hold > 0 && w.r.IntN(3) == 0 {
		back := 1 + w.r.Int64N(f.hold)
		f.hold, f.returned = f.hold-back, f.returned+back
	}
	b := w.a.Bound
	num, den := b.Rate, int64(b.Per/time.Microsecond)
	c := cluster.Call{
		Op: cluster.OpDraw, Key: adversaryKey, Node: fmt.Sprint(f.name, f.names), Seq: f.seq, Stay: true,
		Tiers:    []limit.Terms{{Kind: limit.KindBucket, Size: b.Burst, Num: num / gcd(num, den), Den: den / gcd(num, den), Start: b.Burst}},
		Received: f.received, Returned: f.returned, Hold: f.hold,
		Ask: w.r.Int64N(b.Burst + 1), Lease: 2 * fiendLease,
	}
	c.Least = min(c.Ask, 1+w.r.Int64N(3))
	c.Lost = w.now > 0 && w.a.Steps
	if f.seen > 0 {
		c.Seen, c.LeastSince, c.MostSince, c.Lost = f.seen, w.now-f.seenGot, w.now-f.seenSent, true
	}
	f.calling = f.seq
	sent, seq := w.now, f.seq
	w.after(60*time.Millisecond, func() { f.giveUp(seq) })
	there := w.some(3 * time.Millisecond)
	switch w.r.IntN(12) {
	case 0:
		return // lost
	case 1:
		there += w.some(time.Second) // late: perhaps overtaken
	case 2:
		w.after(there+w.some(12*time.Second), func() { again := c; w.execute(&again) })
	}
	unheard := w.r.IntN(10) == 0
	w.after(there, func() {
		w.execute(&c)
		if !unheard && c.Err == nil {
			w.after(w.some(3*time.Millisecond), func() { w.heard(f, seq, sent, &c) })
		}
	})
}

func (f *fiend) giveUp(seq int64) {
	if f.calling == seq {
		f.calling = 0
	}
}

func (w *arena) execute(c *cluster.Call) {
	w.book.Do(context.Background(), []*cluster.Call{c})
	if c.Err == nil && c.Reply.Granted > 0 {
		w.recent = append(w.recent, executed{at: time.Time{}.Add(w.now), granted: c.Reply.Granted})
	}
}

// heard takes a grant in hand, unless the call was given up.
func (w *arena) heard(f *fiend, seq int64, sent time.Duration, c *cluster.Call) {
	if f.calling != seq {
		return
	}
	f.calling = 0
	if w.now >= f.until {
		f.hold = 0
	}
	f.hold += c.Reply.Granted
	f.received += c.Reply.Granted
	f.until = sent + fiendLease
	f.seen, f.seenSent, f.seenGot = c.Reply.Now, sent, w.now
	if w.r.IntN(3) == 0 {
		w.spend(f, f.hold)
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
