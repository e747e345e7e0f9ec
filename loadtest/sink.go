package main

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"time"
)

// counters only grow, over all trials of a run.
type counters struct {
	frames, bytes int64
	saved         int64 // bytes that deflated frames would have had more
	events        [kinds]int64
	pings         int64
	unreadable    int64 // frames that were not what the contract says
	skew          int64 // events from the future: the server's clock and ours disagree
	likes         int64 // taps that the server said it counted
	likeFalls     int64 // like totals that were lower than one seen before
	missed        int64 // danmaku that the server said it dropped
	answeredTwice int64
	tooLate       int64 // gifts whose attempt never became known
}

// add sums c and d.
func (c *counters) add(d *counters) {
	from := d.fields()
	for i, n := range c.fields() {
		*n += *from[i]
	}
}

// fields lists all counters.
func (c *counters) fields() []*int64 {
	out := []*int64{&c.frames, &c.bytes, &c.saved, &c.pings, &c.unreadable, &c.skew, &c.likes, &c.likeFalls, &c.missed, &c.answeredTwice, &c.tooLate}
	for i := range c.events {
		out = append(out, &c.events[i])
	}
	return out
}

// sink is where one reader records what its sessions receive. The reader holds mu for a batch of reads; the collector
// takes it a few times a second.
type sink struct {
	mu sync.Mutex // guards everything below; never taken while another sink's is held

	now        time.Time // of the read that is being handled
	digests    digests
	inflations inflations
	single     digest // of the frame that is for one session alone
	pong       *writer

	trial     *trial
	delivered []uint32 // by attempt of trial: how many stable sessions got it
	deferred  []deferredGift
	lat       latencies
	count     counters
	closes    map[string]int64 // by close code, 1006 when there was none; only what we did not ask for
	reasons   map[string]int64 // refusals by reason
}

// deferredGift is a receipt that waits for the answer which tells whose gift it was.
type deferredGift struct {
	seq uint64
	at  time.Time
}

// maxDeferred bounds the receipts that wait, per reader.
const maxDeferred = 1 << 19

func newSink(seed uint64) *sink {
	return &sink{pong: newWriter(rand.New(rand.NewPCG(seed, 1))), closes: map[string]int64{}, reasons: map[string]int64{}}
}

// begin makes t the trial whose messages are looked for; nil ends the last one.
func (k *sink) begin(t *trial) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trial, k.delivered, k.deferred = t, nil, k.deferred[:0]
	if t != nil {
		k.delivered = make([]uint32, len(t.due))
	}
}

// read takes the next bytes of a session's stream; mu is held.
func (k *sink) read(s *session, data []byte) error {
	k.now = time.Now()
	return s.in.feed(data, s)
}

// control encodes a control frame.
func (k *sink) control(opcode byte, payload []byte) []byte {
	k.pong.body = append(k.pong.body[:0], payload...)
	return k.pong.frame(opcode)
}

var (
	ackHead     = []byte(`[{"ev":"ack"`)
	welcomeHead = []byte(`[{"ev":"welcome"`)
)

// message takes one array of events.
func (k *sink) message(s *session, payload []byte) {
	k.count.frames++
	k.count.bytes += int64(len(payload))
	var d *digest
	if bytes.HasPrefix(payload, ackHead) || bytes.HasPrefix(payload, welcomeHead) {
		d = &k.single
		d.read(payload, k.trial)
	} else {
		d = k.digests.of(payload, k.trial)
	}
	if !d.readable {
		k.count.unreadable++
		return
	}
	if d.private {
		events(payload, func(name, event []byte) { k.private(s, kindOf(name), event) })
	}
	k.shared(s, d)
}

// shared records what a frame says to everybody.
func (k *sink) shared(s *session, d *digest) {
	for i, n := range d.counts {
		k.count.events[i] += n
	}
	k.count.missed += d.missed
	if d.total >= 0 {
		if d.total < s.likeTotal {
			k.count.likeFalls++
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

func (k *sink) danmaku(s *session, m *seenDanmaku) {
	if k.trial.heard != nil {
		k.trial.hear(s, m.attempt, m.ts)
	}
	if !s.stable || m.ts < s.since {
		return
	}
	k.delivered[m.attempt]++
	s.seen.add(k.trial, m.attempt)
	if !s.timed || !k.trial.measured(m.attempt) || outcome(k.trial.outcome[m.attempt].Load()) == degraded {
		return
	}
	k.lat.record(toReceipt, k.now.Sub(k.trial.dueAt(m.attempt)))
	k.lat.record(toAdmission, k.sinceStamp(m.ts))
}

// sinceStamp is the time since an instant of the server's, which is cut to whole milliseconds: half of one is added, so
// that the mean is right.
func (k *sink) sinceStamp(ts int64) time.Duration {
	d := time.Duration(k.now.UnixMicro()-ts*1000)*time.Microsecond - 500*time.Microsecond
	if d < -2*time.Millisecond {
		k.count.skew++
	}
	return d
}

func (k *sink) gift(s *session, g *seenGift) {
	if g.ts < s.since && g.seq <= s.lastGift {
		return // history
	}
	s.gift(g.seq, g.prev)
	if !s.stable || k.trial == nil {
		return
	}
	if g.attempt < 0 {
		g.attempt = k.trial.gifts.find(g.seq)
	}
	switch {
	case !s.timed:
	case g.attempt >= 0:
		k.giftReceipt(g.attempt, k.now)
	case len(k.deferred) < maxDeferred:
		k.deferred = append(k.deferred, deferredGift{g.seq, k.now})
	default:
		k.count.tooLate++
	}
}

func (k *sink) giftReceipt(attempt int, at time.Time) {
	if k.trial.measured(attempt) {
		k.lat.record(giftReceipt, at.Sub(k.trial.dueAt(attempt)))
	}
}

// resolve records the gifts whose attempts have become known. Those of other people stay until the trial ends.
func (k *sink) resolve() {
	kept := k.deferred[:0]
	for _, d := range k.deferred {
		if a := k.trial.gifts.find(d.seq); a >= 0 {
			k.giftReceipt(a, d.at)
		} else {
			kept = append(kept, d)
		}
	}
	k.deferred = kept
}

// private records an event that was meant for one session.
func (k *sink) private(s *session, kd kind, event []byte) {
	switch kd {
	case kindWelcome:
		k.welcome(s, event)
	case kindAck:
		k.answer(s, event)
	}
}

func (k *sink) welcome(s *session, event []byte) {
	now, ok := number(event, keyTime)
	if !ok {
		k.count.unreadable++
		return
	}
	cursor, _ := number(event, keyCursorGift)
	s.since, s.lastGift = now, uint64(cursor)
	if s.stage.CompareAndSwap(stageNew, stageJoined) {
		k.lat.record(join, k.now.Sub(s.opened))
		s.node = s.crowd.welcomed(text(event, keyNode))
	}
}

// answer records what became of an attempt.
func (k *sink) answer(s *session, event []byte) {
	t := k.trial
	if t == nil {
		return
	}
	id := text(event, keyID)
	n := t.tag.attempt(id)
	if n < 0 || n >= len(t.due) {
		return
	}
	code, _ := number(event, keyCode)
	what := outcomeOf(code, bytes.Contains(event, keyDuplicate))
	before := outcome(t.outcome[n].Swap(uint32(what)))
	if before != waiting && !(t.class[n] == gift && before == busy) {
		k.count.answeredTwice++
	}
	if ts, ok := number(event, keyTS); ok {
		t.stamp[n] = ts
	}
	if what == limited || what == busy || what == rejected || what == degraded {
		k.reasons[string(text(event, keyReason))]++
	}
	k.latencyOf(t, n, what)
	switch t.class[n] {
	case gift:
		k.giftAnswer(s, n, what, event)
	case like:
		k.likeAnswer(n, what, event)
	}
}

func (k *sink) latencyOf(t *trial, n int, what outcome) {
	if !t.measured(n) {
		return
	}
	m := toAck
	if t.class[n] == gift {
		if what != admitted && what != duplicate {
			return
		}
		m = giftAck
	}
	k.lat.record(m, k.now.Sub(t.dueAt(n)))
}

func (k *sink) giftAnswer(s *session, n int, what outcome, event []byte) {
	switch what {
	case admitted, duplicate:
		if seq, ok := number(event, keySeq); ok {
			k.trial.gifts.store(uint64(seq), n, s.room)
		}
	case busy:
		if string(text(event, keyOutcome)) == "unknown" {
			wait, _ := number(event, keyRetryAfter)
			k.trial.gifts.retry(n, k.now.Add(time.Duration(wait)*time.Millisecond))
		}
	}
}

func (k *sink) likeAnswer(n int, what outcome, event []byte) {
	switch what {
	case admitted:
		k.count.likes += int64(tapsOf(n))
	case degraded:
		counted, _ := number(event, keyCounted)
		k.count.likes += counted
	}
}

// tapsOf is how many taps a like attempt carries: 1 to 5.
func tapsOf(k int) int { return 1 + k%5 }
