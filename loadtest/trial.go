package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what became of an attempt.
type outcome uint8

const (
	planned   outcome = iota // not due yet; at the end: the run was cut short
	waiting                  // sent, no answer yet; at the end: unanswered
	unsent                   // its sender's socket was gone or full
	admitted                 // 200
	duplicate                // 200 for something stored before
	degraded                 // 202
	limited                  // 429
	busy                     // 503
	rejected                 // any other code
	outcomes
)

// String is the outcome's name in reports.
func (o outcome) String() string {
	return [...]string{"planned", "unanswered", "unsent", "admitted", "duplicate", "degraded", "limited", "busy", "rejected"}[o]
}

// outcomeOf maps an answer's code.
func outcomeOf(code int64, isDuplicate bool) outcome {
	switch {
	case code == 200 && isDuplicate:
		return duplicate
	case code == 200:
		return admitted
	case code == 202:
		return degraded
	case code == 429:
		return limited
	case code == 503:
		return busy
	}
	return rejected
}

// trial is one schedule of attempts and what became of each.
type trial struct {
	// fixed before the first attempt
	tag   tag
	due   arrivals // since start, nanoseconds
	class []class
	from  int       // attempts before this one warm up and are not measured
	start time.Time // of the schedule

	// by attempt: an outcome, set by the speaker and then by the reader that owns its sender's session
	outcome []atomic.Uint32

	// by attempt; owned by that reader, read when all readers have stopped
	stamp []int64 // instant of admission, Unix milliseconds

	// by attempt; owned by the speaker, read when it has stopped, or where outcome says that the attempt was sent
	room   []uint16
	sender []*session // nil where they take turns

	// by attempt; the instant of admission as others than the sender were told it, Unix milliseconds, 0: by nobody; nil
	// where only answers are asked
	heard []atomic.Int64

	gifts giftBook
	again retries
}

// newTrial lays out attempts; those due before warm are not measured.
func newTrial(t tag, due arrivals, class []class, warm time.Duration) *trial {
	tr := &trial{tag: t, due: due, class: class,
		outcome: make([]atomic.Uint32, len(due)), stamp: make([]int64, len(due)), room: make([]uint16, len(due))}
	for tr.from < len(due) && due[tr.from] < int64(warm) {
		tr.from++
	}
	tr.gifts.stored = map[uint64]storedGift{}
	return tr
}

// witness makes the trial remember who sent each attempt, and what others were told of it.
func (t *trial) witness() {
	t.sender, t.heard = make([]*session, len(t.due)), make([]atomic.Int64, len(t.due))
}

// hear notes that s was told of attempt k with an instant of admission.
func (t *trial) hear(s *session, k int, ts int64) {
	if outcome(t.outcome[k].Load()) != planned && t.sender[k] != s && t.heard[k].Load() == 0 {
		t.heard[k].Store(ts)
	}
}

// admission is the instant at which attempt k was admitted, in Unix milliseconds; false when it was not, or nobody knows.
// A node that was killed may have told others what it no longer told the sender.
func (t *trial) admission(k int) (ts int64, ok bool) {
	if t.class[k] != danmaku {
		return 0, false
	}
	if o := outcome(t.outcome[k].Load()); (o == admitted || o == duplicate) && t.stamp[k] != 0 {
		return t.stamp[k], true
	}
	if t.heard != nil {
		ts = t.heard[k].Load()
	}
	return ts, ts != 0
}

// measured reports whether attempt k counts.
func (t *trial) measured(k int) bool { return k >= t.from }

// dueAt is the instant at which attempt k should be sent.
func (t *trial) dueAt(k int) time.Time { return t.start.Add(time.Duration(t.due[k])) }

// giftBook knows which stored gift was which attempt.
type giftBook struct {
	mu     sync.Mutex
	stored map[uint64]storedGift // by seq
}

type storedGift struct {
	attempt int
	room    uint16
}

// store notes that attempt k became seq in room.
func (b *giftBook) store(seq uint64, k int, room uint16) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored[seq] = storedGift{k, room}
}

// find returns the attempt that became seq, -1 when no answer has said so yet.
func (b *giftBook) find(seq uint64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g, ok := b.stored[seq]; ok {
		return g.attempt
	}
	return -1
}

// retries are gifts whose outcome the server did not know: they must be sent again under the same id.
type retries struct {
	mu   sync.Mutex
	list []retry
}

type retry struct {
	attempt int
	at      time.Time
}

func (r *retries) add(k int, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, retry{k, at})
}

// ready takes out one that is due, -1 for none.
func (r *retries) ready(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range r.list {
		if !x.at.After(now) {
			r.list = append(r.list[:i], r.list[i+1:]...)
			return x.attempt
		}
	}
	return -1
}

// empty reports whether nothing waits to be sent again.
func (r *retries) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list) == 0
}
