package main

import (
	"bytes"
	"time"
)

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
			k.trial.again.add(n, k.now.Add(time.Duration(wait)*time.Millisecond))
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
