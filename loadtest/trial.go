package main

import (
	"context"
	"math/rand/v2"
	"slices"
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

// giftBook knows which stored gift was which attempt, and which ones must be sent again under the same id, since the server
// did not know what became of them.
type giftBook struct {
	mu     sync.Mutex
	stored map[uint64]storedGift // by seq; guarded by mu
	again  []retry               // guarded by mu
}

type storedGift struct {
	attempt int
	room    uint16
}

type retry struct {
	attempt int
	at      time.Time
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

// retry notes that attempt k must be sent again.
func (b *giftBook) retry(k int, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.again = append(b.again, retry{k, at})
}

// ready takes out one whose time has come, -1 for none; left is how many wait then.
func (b *giftBook) ready(now time.Time) (attempt, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.again, func(r retry) bool { return !r.at.After(now) })
	if i < 0 {
		return -1, len(b.again)
	}
	attempt = b.again[i].attempt
	b.again = slices.Delete(b.again, i, i+1)
	return attempt, len(b.again)
}

// speaker sends a trial's attempts on time, whatever the server does: one goroutine, no waiting for answers.
type speaker struct {
	trial   *trial
	senders []*session           // attempt k is sent by sender k mod n
	pick    func(k int) *session // or by whom this says when its time comes; nil: nobody
	gift    string               // what is given
	texts   []string
	out     *writer
	rng     *rand.Rand
	lag     latencies // how late each attempt left, owned by the speaker until it has stopped
	sent    int
}

func newSpeaker(t *trial, senders []*session, giftID string, rng *rand.Rand) *speaker {
	return &speaker{trial: t, senders: senders, gift: giftID, texts: corpus(), out: newWriter(rng), rng: rng}
}

// run sends until the schedule's end, or ctx's, whose error it returns.
func (s *speaker) run(ctx context.Context) error {
	for k := range s.trial.due {
		if s.sent&15 == 0 {
			s.repeat()
		}
		at := s.trial.dueAt(k)
		if time.Now().Before(at) {
			if err := waitUntil(ctx, at); err != nil {
				return err
			}
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
		s.attempt(k)
		s.sent++
		if s.trial.measured(k) {
			s.lag.record(sendLag, time.Since(at))
		}
	}
	return nil
}

// attempt sends attempt k; also a second time under the same id.
func (s *speaker) attempt(k int) {
	from := s.choose(k)
	if from == nil || !from.joined() {
		s.trial.outcome[k].Store(uint32(unsent))
		return
	}
	s.trial.room[k] = from.room
	s.trial.outcome[k].Store(uint32(waiting))
	if from.wire.write(s.encode(k)) != nil {
		s.trial.outcome[k].CompareAndSwap(uint32(waiting), uint32(unsent))
	}
}

// choose picks the sender of attempt k; a second time it is the same.
func (s *speaker) choose(k int) *session {
	if s.pick != nil && s.trial.sender[k] == nil {
		s.trial.sender[k] = s.pick(k)
	}
	return s.senderOf(k)
}

// senderOf is who sent attempt k, nil for nobody.
func (s *speaker) senderOf(k int) *session {
	if s.pick != nil {
		return s.trial.sender[k]
	}
	return s.senders[k%len(s.senders)]
}

func (s *speaker) encode(k int) []byte {
	switch t := s.trial; t.class[k] {
	case gift:
		return s.out.gift(t.tag, k, s.gift)
	case like:
		return s.out.like(t.tag, k, tapsOf(k))
	default:
		return s.out.danmaku(t.tag, k, s.texts[s.rng.IntN(len(s.texts))])
	}
}

// repeat sends again the gifts whose outcome the server did not know, when their time has come, and reports whether more wait.
func (s *speaker) repeat() (more bool) {
	now := time.Now()
	k, left := s.trial.gifts.ready(now)
	for ; k >= 0; k, left = s.trial.gifts.ready(now) {
		s.attempt(k)
	}
	return left > 0
}

// await waits until everything is answered and nothing moves any more, or until ctx's end.
func (s *speaker) await(ctx context.Context, moved func() bool) {
	const settled = 500 * time.Millisecond
	for quiet := time.Now(); time.Since(quiet) < settled; {
		more := s.repeat()
		if moved() || s.open() || more {
			quiet = time.Now()
		}
		if waitFor(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

// open reports whether an attempt of the schedule's last seconds waits for its answer.
func (s *speaker) open() bool {
	const lookBack = 50_000
	for k := max(0, s.sent-lookBack); k < s.sent; k++ {
		if outcome(s.trial.outcome[k].Load()) == waiting && s.senderOf(k).joined() {
			return true
		}
	}
	return false
}
