package ledger

import (
	"liveroom/limit"
	"liveroom/limit/cluster"
)

// What each kind does to its level. Amounts are shares.

// begin fills a new key such that level shares can be had.
func (s *state) begin(level int64) {
	s.window, s.used, s.past, s.records, s.level = 0, 0, 0, nil, 0
	switch s.kind {
	case limit.KindBucket:
		s.level = level * s.den
	case limit.KindFixed:
		s.window, s.level = div(s.t, s.length), level
	case limit.KindSliding:
		s.window, s.used = div(s.t, s.length), s.size-level
	case limit.KindLog:
		s.record(s.size - level)
	}
}

// left is what can be had, below 0 in debt, rounded down to a share.
func (s *state) left() int64 {
	switch s.kind {
	case limit.KindBucket:
		return div(s.level, s.den)
	case limit.KindFixed:
		return s.level
	case limit.KindSliding:
		return s.size - s.used - s.weight(s.past, s.t-s.window*s.length)
	}
	return s.size - s.logged()
}

// debit takes shares, at most so many that a size is owed.
func (s *state) debit(n int64) {
	if n <= 0 {
		return
	}
	switch s.kind {
	case limit.KindBucket:
		s.level = max(s.level-n*s.den, -s.size*s.den)
	case limit.KindFixed:
		s.level = max(s.level-n, -s.size)
	case limit.KindSliding:
		s.used = min(s.used+n, 2*s.size)
	case limit.KindLog:
		s.record(min(n, 2*s.size-s.logged()))
	}
}

// credit gives n shares back that the node of e had not spent. What was granted
// to it before its last grant stays counted in the sliding kinds.
func (s *state) credit(n int64, e *entry) {
	if n <= 0 {
		return
	}
	switch s.kind {
	case limit.KindBucket:
		s.level += n * s.den // capped when the call is done
	case limit.KindFixed:
		s.level = min(s.level+n, s.size)
	case limit.KindSliding:
		n = min(n, e.fresh)
		e.fresh -= n
		switch s.window - div(e.granted, s.length) {
		case 0:
			s.used = max(s.used-n, 0)
		case 1:
			s.past = max(s.past-n, 0)
		}
	case limit.KindLog:
		n = min(n, e.fresh)
		e.fresh -= n
		for i := range s.records {
			if r := &s.records[i]; r.at == e.granted {
				r.shares = max(r.shares-n, 0)
			}
		}
	}
}

// advance brings the level to the instant now, with the terms that were in force
// until then.
func (s *state) advance(now int64) {
	switch {
	case s.owner != "":
		// What its owner does to the level, only its owner knows.
	case s.kind == limit.KindBucket:
		s.refill(now)
	case s.kind == limit.KindFixed:
		s.turn(now)
	case s.kind == limit.KindSliding:
		s.slide(now)
	case s.kind == limit.KindLog:
		s.expire(now)
	default:
		s.vacate(now)
	}
	s.t = now
}

// wait is the time until need shares can be had if nobody comes.
func (s *state) wait(need int64) int64 {
	switch {
	case need > s.size:
		return never
	case s.left() >= need:
		return 0
	}
	switch s.kind {
	case limit.KindBucket:
		return s.waitRefill(need)
	case limit.KindFixed:
		return (s.window+1)*s.length - s.t
	case limit.KindSliding:
		return s.waitSlide(need)
	case limit.KindLog:
		return s.waitLog(need)
	}
	return s.waitSlots(need)
}

// filling is the time until nothing is known of the key but its nodes.
func (s *state) filling() int64 {
	switch s.kind {
	case limit.KindBucket:
		return s.fillingBucket()
	case limit.KindFixed:
		return (s.window+1)*s.length - s.t
	case limit.KindSliding:
		return (s.window+2)*s.length - s.t
	case limit.KindLog:
		return s.fillingLog()
	}
	return s.fillingSlots()
}

// adopt puts other terms in force. What was used stays used: the level is the new
// size less that. What was used of a bucket beyond its new size is forgiven.
func (s *state) adopt(terms *limit.Terms, c *cluster.Call) {
	num, den := terms.Num, terms.Den
	if terms.Kind != limit.KindBucket {
		num, den = 0, 1
	}
	length := lengthOf(terms, c)
	if s.size == terms.Size && s.num == num && s.den == den && s.length == length {
		return
	}
	left, same := s.left(), s.length == length
	after := left + terms.Size - s.size
	s.size, s.num, s.den, s.length = terms.Size, num, den, length
	switch {
	case s.kind == limit.KindBucket:
		s.level = max(after, min(left, 0), -s.size) * s.den
	case s.kind == limit.KindFixed || s.kind != limit.KindSlots && !same:
		s.begin(max(after, -s.size))
	case s.kind == limit.KindSliding:
		s.used, s.past = min(s.used, 2*s.size), min(s.past, 2*s.size)
	}
}

// lengthOf is the length of the windows of a call's terms. What is granted now
// may be spent until the lease ends, so the sliding kinds count it as long more.
func lengthOf(terms *limit.Terms, c *cluster.Call) int64 {
	switch terms.Kind {
	case limit.KindFixed:
		return micros(terms.Length)
	case limit.KindSliding, limit.KindLog:
		return micros(terms.Length) + microsUp(c.Lease)
	}
	return 0
}
