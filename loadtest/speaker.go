package main

import (
	"context"
	"math/rand/v2"
	"time"
)

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

// repeat sends again the gifts whose outcome the server did not know, when their time has come.
func (s *speaker) repeat() {
	now := time.Now()
	for k := s.trial.again.ready(now); k >= 0; k = s.trial.again.ready(now) {
		s.attempt(k)
	}
}

// await waits until everything is answered and nothing moves any more, or until ctx's end.
func (s *speaker) await(ctx context.Context, moved func() bool) {
	const settled = 500 * time.Millisecond
	for quiet := time.Now(); time.Since(quiet) < settled; {
		s.repeat()
		if moved() || s.open() || !s.trial.again.empty() {
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
