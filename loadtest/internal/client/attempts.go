package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Outcome is what became of an attempt.
type Outcome uint8

const (
	Planned   Outcome = iota // not due yet; at the end: the run was cut short
	Waiting                  // sent, no answer yet; at the end: unanswered
	unsent                   // its sender's socket was gone or full
	Admitted                 // 200
	Duplicate                // 200 for something stored before
	Degraded                 // 202
	Limited                  // 429
	Busy                     // 503
	Rejected                 // any other code
)

// String is the outcome's name in reports.
func (o Outcome) String() string {
	return [...]string{"planned", "unanswered", "unsent", "admitted", "duplicate", "degraded", "limited", "busy", "rejected"}[o]
}

// outcomeOf maps an answer's code.
func outcomeOf(code int, isDuplicate bool) Outcome {
	switch {
	case code == 200 && isDuplicate:
		return Duplicate
	case code == 200:
		return Admitted
	case code == 202:
		return Degraded
	case code == 429:
		return Limited
	case code == 503:
		return Busy
	}
	return Rejected
}

// Trial is one schedule of attempts and what became of each.
type Trial struct {
	// fixed before the first attempt
	tag   tag
	Due   Arrivals // since start, nanoseconds
	class []Class
	From  int       // attempts before this one warm up and are not measured
	Start time.Time // of the schedule

	// by attempt: an outcome, set by the speaker and then by the reader that owns its sender's session
	Outcome []atomic.Uint32

	// by attempt; owned by that reader, read when all readers have stopped
	Stamp []int64 // instant of admission, Unix milliseconds

	// by attempt; owned by the speaker, read when it has stopped, or where outcome says that the attempt was sent
	room   []uint16
	Sender []*Session

	// by attempt; the instant of admission as others than the sender were told it, Unix milliseconds, 0: by nobody; nil
	// where only answers are asked
	Heard []atomic.Int64

	gifts giftBook
}

// NewTrial lays out attempts; those due before warm are not measured.
func NewTrial(t tag, due Arrivals, class []Class, warm time.Duration) *Trial {
	tr := &Trial{tag: t, Due: due, class: class,
		Outcome: make([]atomic.Uint32, len(due)), Stamp: make([]int64, len(due)), room: make([]uint16, len(due)), Sender: make([]*Session, len(due))}
	for tr.From < len(due) && due[tr.From] < int64(warm) {
		tr.From++
	}
	tr.gifts.stored, tr.gifts.again = map[uint64]storedGift{}, map[int]time.Time{}
	return tr
}

// Hear notes that s was told of attempt k with an instant of admission.
func (t *Trial) Hear(s *Session, k int, ts int64) {
	if Outcome(t.Outcome[k].Load()) != Planned && t.Sender[k] != s && t.Heard[k].Load() == 0 {
		t.Heard[k].Store(ts)
	}
}

// Admission is the instant at which attempt k was admitted, in Unix milliseconds; false when it was not, or nobody knows.
// A node that was killed may have told others what it no longer told the sender.
func (t *Trial) Admission(k int) (ts int64, ok bool) {
	if t.class[k] != Danmaku {
		return 0, false
	}
	if o := Outcome(t.Outcome[k].Load()); (o == Admitted || o == Duplicate) && t.Stamp[k] != 0 {
		return t.Stamp[k], true
	}
	if t.Heard != nil {
		ts = t.Heard[k].Load()
	}
	return ts, ts != 0
}

// measured reports whether attempt k counts.
func (t *Trial) measured(k int) bool { return k >= t.From }

// dueAt is the instant at which attempt k should be sent.
func (t *Trial) dueAt(k int) time.Time { return t.Start.Add(time.Duration(t.Due[k])) }

// giftBook knows which stored gift was which attempt, and which ones must be sent again under the same id, since the server
// did not know what became of them.
type giftBook struct {
	mu     sync.Mutex
	stored map[uint64]storedGift // by seq; guarded by mu
	again  map[int]time.Time     // when each attempt is to be sent again; guarded by mu
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

// StoredGifts are the sequences of all gifts that were acknowledged.
func (t *Trial) StoredGifts() map[uint64]bool {
	t.gifts.mu.Lock()
	defer t.gifts.mu.Unlock()
	all := make(map[uint64]bool, len(t.gifts.stored))
	for seq := range t.gifts.stored {
		all[seq] = true
	}
	return all
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
	b.again[k] = at
}

// ready takes out those whose time has come; left is how many wait then.
func (b *giftBook) ready(now time.Time) (attempts []int, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, at := range b.again {
		if !at.After(now) {
			attempts = append(attempts, k)
			delete(b.again, k)
		}
	}
	return attempts, len(b.again)
}

// speaker sends a trial's attempts on time, whatever the server does: one goroutine, no waiting for answers.
type speaker struct {
	trial *Trial
	pick  func(k int) *Session // who sends attempt k, when its time comes; nil: nobody
	gift  string               // what is given
	texts []string
	out   *Writer
	rng   *rand.Rand
	Lag   Latencies // how late each attempt left, owned by the speaker until it has stopped
	sent  int
}

func NewSpeaker(t *Trial, pick func(k int) *Session, giftID string, rng *rand.Rand) *speaker {
	return &speaker{trial: t, pick: pick, gift: giftID, texts: corpus(), out: NewWriter(rng), rng: rng}
}

// InTurns lets each of them send, one after the other.
func InTurns(senders []*Session) func(k int) *Session {
	return func(k int) *Session { return senders[k%len(senders)] }
}

// Run sends until the schedule's end, or ctx's, whose error it returns.
func (s *speaker) Run(ctx context.Context) error {
	for k := range s.trial.Due {
		if s.sent&15 == 0 {
			s.repeat()
		}
		at := s.trial.dueAt(k)
		if time.Now().Before(at) {
			if err := WaitUntil(ctx, at); err != nil {
				return err
			}
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
		s.attempt(k)
		s.sent++
		if s.trial.measured(k) {
			s.Lag.Record(sendLag, time.Since(at))
		}
	}
	return nil
}

// attempt sends attempt k; also a second time under the same id.
func (s *speaker) attempt(k int) {
	t := s.trial
	if t.Sender[k] == nil {
		t.Sender[k] = s.pick(k)
	}
	from := t.Sender[k]
	if from == nil || !from.Joined() {
		t.Outcome[k].Store(uint32(unsent))
		return
	}
	t.room[k] = from.Room
	t.Outcome[k].Store(uint32(Waiting))
	if from.Wire.Write(s.encode(k)) != nil {
		t.Outcome[k].CompareAndSwap(uint32(Waiting), uint32(unsent))
	}
}

func (s *speaker) encode(k int) []byte {
	switch t := s.trial; t.class[k] {
	case Gift:
		return s.out.gift(t.tag, k, s.gift)
	case Like:
		return s.out.like(t.tag, k, tapsOf(k))
	default:
		return s.out.Danmaku(t.tag, k, s.texts[s.rng.IntN(len(s.texts))])
	}
}

// repeat sends again the gifts whose outcome the server did not know, when their time has come, and reports whether more wait.
func (s *speaker) repeat() (more bool) {
	attempts, left := s.trial.gifts.ready(time.Now())
	for _, k := range attempts {
		s.attempt(k)
	}
	return left > 0
}

// Await waits until everything is answered and nothing moves any more, or until ctx's end.
func (s *speaker) Await(ctx context.Context, moved func() bool) {
	const settled = 500 * time.Millisecond
	for quiet := time.Now(); time.Since(quiet) < settled; {
		more := s.repeat()
		if moved() || s.open() || more {
			quiet = time.Now()
		}
		if WaitFor(ctx, 20*time.Millisecond) != nil {
			return
		}
	}
}

// open reports whether an attempt of the schedule's last seconds waits for its answer.
func (s *speaker) open() bool {
	const lookBack = 50_000
	for k := max(0, s.sent-lookBack); k < s.sent; k++ {
		if Outcome(s.trial.Outcome[k].Load()) == Waiting && s.trial.Sender[k].Joined() {
			return true
		}
	}
	return false
}
