package client

import (
	"math/rand/v2"
	"sync"
	"time"

	"liveroom/protocol"
)

// Counters only grow, over all trials of a run.
type Counters struct {
	Frames, Bytes int64
	Saved         int64 // bytes that deflated frames would have had more
	Events        int64
	Danmaku       int64 // events, as the next two
	gifts         int64
	likeEvents    int64
	Missed        int64 // danmaku that the server said it dropped
	Unreadable    int64 // frames that were not what the contract says
	Skew          int64 // events from the future: the server's clock and ours disagree
	likes         int64 // taps that the server said it counted
	LikeFalls     int64 // like totals that were lower than one seen before
	AnsweredTwice int64
}

// Add adds d so many times.
func (c *Counters) Add(d *Counters, times int64) {
	for _, f := range []struct{ to, from *int64 }{{&c.Frames, &d.Frames}, {&c.Bytes, &d.Bytes}, {&c.Saved, &d.Saved}, {&c.Events, &d.Events},
		{&c.Danmaku, &d.Danmaku}, {&c.gifts, &d.gifts}, {&c.likeEvents, &d.likeEvents}, {&c.Missed, &d.Missed}, {&c.Unreadable, &d.Unreadable},
		{&c.Skew, &d.Skew}, {&c.likes, &d.likes}, {&c.LikeFalls, &d.LikeFalls}, {&c.AnsweredTwice, &d.AnsweredTwice}} {
		*f.to += times * *f.from
	}
}

// Deliveries counts the events for everybody that viewers have read.
func (c *Counters) Deliveries() int64 { return c.Danmaku + c.gifts + c.likeEvents }

// sink is where one reader records what its sessions receive. The reader holds mu for a batch of reads; the collector
// takes it a few times a second.
type sink struct {
	mu sync.Mutex // guards everything below; never taken while another sink's is held

	now     time.Time // of the read that is being handled
	digests digests
	pong    *Writer

	trial     *Trial
	delivered []uint32 // by attempt of trial: how many stable sessions got it
	gifts     []giftReceived
	lat       Latencies
	count     Counters
	closes    map[string]int64 // by close code, 1006 when there was none; only what we did not ask for
	reasons   map[string]int64 // refusals by reason
}

// giftReceived waits for the answer which tells whose gift it was.
type giftReceived struct {
	seq uint64
	at  time.Time
}

// maxGifts bounds the receipts that wait, per reader.
const maxGifts = 1 << 19

func newSink(seed uint64) *sink {
	return &sink{pong: NewWriter(rand.New(rand.NewPCG(seed, 1))), closes: map[string]int64{}, reasons: map[string]int64{}}
}

// begin makes t the trial; mu is held.
func (k *sink) begin(t *Trial) {
	k.trial, k.delivered, k.gifts = t, nil, k.gifts[:0]
	if t != nil {
		k.delivered = make([]uint32, len(t.Due))
	}
}

// read takes the next bytes of a session's stream; mu is held.
func (k *sink) read(s *Session, data []byte) error {
	k.now = time.Now()
	return s.in.feed(data, s)
}

// control encodes a control frame.
func (k *sink) control(opcode byte, payload []byte) []byte {
	k.pong.body = append(k.pong.body[:0], payload...)
	return k.pong.frame(opcode)
}

// message takes one array of events. Counted are the bytes that came, and beside them those that deflating saved.
func (k *sink) message(s *Session, payload []byte, deflated bool) {
	d := k.digests.of(payload, deflated, k.trial)
	k.count.Frames++
	k.count.Bytes += int64(len(payload))
	k.count.Saved += int64(d.plain - len(payload))
	if !d.readable {
		k.count.Unreadable++
		return
	}
	for i := range d.private {
		switch e := &d.private[i]; e.Ev {
		case protocol.EvWelcome:
			k.welcome(s, e)
		case protocol.EvAck:
			k.answer(s, e)
		}
	}
	k.shared(s, d)
}

// shared records what a frame says to everybody.
func (k *sink) shared(s *Session, d *digest) {
	k.count.Events += d.counts.Events
	k.count.Danmaku += d.counts.Danmaku
	k.count.gifts += d.counts.gifts
	k.count.likeEvents += d.counts.likeEvents
	k.count.Missed += d.counts.Missed
	if d.total >= 0 {
		if d.total < s.likeTotal {
			k.count.LikeFalls++
		}
		s.likeTotal = d.total
	}
	if s.since == 0 {
		return
	}
	for i := range d.danmaku {
		k.danmaku(s, &d.danmaku[i])
	}
	for i := range d.gifts {
		k.gift(s, &d.gifts[i])
	}
}

func (k *sink) danmaku(s *Session, m *seenDanmaku) {
	if k.trial.Heard != nil {
		k.trial.Hear(s, m.attempt, m.ts)
	}
	if !s.stable || m.ts < s.since {
		return
	}
	k.delivered[m.attempt]++
	s.seen.add(k.trial, m.attempt)
	if !s.timed || !k.trial.measured(m.attempt) || Outcome(k.trial.Outcome[m.attempt].Load()) == Degraded {
		return
	}
	k.lat.Record(ToReceipt, k.now.Sub(k.trial.dueAt(m.attempt)))
	k.lat.Record(toAdmission, k.sinceStamp(m.ts))
}

// sinceStamp is the time since an instant of the server's, which is cut to whole milliseconds: half of one is added, so
// that the mean is right.
func (k *sink) sinceStamp(ts int64) time.Duration {
	d := time.Duration(k.now.UnixMicro()-ts*1000)*time.Microsecond - 500*time.Microsecond
	if d < -2*time.Millisecond {
		k.count.Skew++
	}
	return d
}

func (k *sink) gift(s *Session, g *event) {
	if g.TS < s.since && g.Seq <= s.lastGift {
		return // history
	}
	s.gift(g.Seq, g.Prev)
	if s.stable && s.timed && k.trial != nil && len(k.gifts) < maxGifts {
		k.gifts = append(k.gifts, giftReceived{g.Seq, k.now})
	}
}

// resolve records the gifts whose attempts have become known. Those of other people stay until the trial ends.
func (k *sink) resolve() {
	kept := k.gifts[:0]
	for _, g := range k.gifts {
		switch a := k.trial.gifts.find(g.seq); {
		case a < 0:
			kept = append(kept, g)
		case k.trial.measured(a):
			k.lat.Record(GiftReceipt, g.at.Sub(k.trial.dueAt(a)))
		}
	}
	k.gifts = kept
}

func (k *sink) welcome(s *Session, e *event) {
	s.since, s.lastGift = e.Time, e.Cursor.Gift
	if s.stage.CompareAndSwap(stageNew, stageJoined) {
		k.lat.Record(Join, k.now.Sub(s.opened))
		s.Node = s.crowd.welcomed(e.Node)
	}
}

// answer records what became of an attempt.
func (k *sink) answer(s *Session, e *event) {
	t := k.trial
	if t == nil {
		return
	}
	n := t.tag.attempt(e.ID)
	if n < 0 || n >= len(t.Due) {
		return
	}
	what, class := outcomeOf(e.Code, e.Duplicate), t.class[n]
	before := Outcome(t.Outcome[n].Swap(uint32(what)))
	if before != Waiting && !(class == Gift && before == Busy) {
		k.count.AnsweredTwice++
	}
	if e.TS != 0 {
		t.Stamp[n] = e.TS
	}
	if e.Reason != "" {
		k.reasons[e.Reason]++
	}
	stored := what == Admitted || what == Duplicate
	switch {
	case class == Gift && stored:
		t.gifts.store(e.Seq, n, s.Room)
		k.answered(giftAck, n)
	case class == Gift && what == Busy && e.Outcome == "unknown":
		t.gifts.retry(n, k.now.Add(time.Duration(e.RetryAfterMS)*time.Millisecond))
	case class == Like && what == Admitted:
		k.count.likes += int64(tapsOf(n))
	case class == Like && what == Degraded:
		k.count.likes += e.Counted
	}
	if class != Gift {
		k.answered(toAck, n)
	}
}

func (k *sink) answered(m measure, n int) {
	if k.trial.measured(n) {
		k.lat.Record(m, k.now.Sub(k.trial.dueAt(n)))
	}
}

// tapsOf is how many taps a like attempt carries: 1 to 5.
func tapsOf(k int) int { return 1 + k%5 }
