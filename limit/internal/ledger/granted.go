package ledger

import "slices"

// record adds a grant to the log. When the log is full the last one takes the
// new one in, which only keeps it longer.
func (s *state) record(shares int64) {
	if shares <= 0 {
		return
	}
	if n := len(s.records); n > 0 && (s.records[n-1].at == s.t || n == places) {
		s.records[n-1].at = s.t
		s.records[n-1].shares += shares
		return
	}
	s.records = append(s.records, record{at: s.t, shares: shares})
}

// expire drops the grants that have left the window.
func (s *state) expire(now int64) {
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.at+s.length <= now || r.shares == 0 })
}

func (s *state) logged() int64 {
	sum := int64(0)
	for _, r := range s.records {
		sum += r.shares
	}
	return sum
}

func (s *state) waitLog(need int64) int64 {
	left := s.left()
	for _, r := range s.records {
		if left += r.shares; left >= need {
			return r.at + s.length - s.t
		}
	}
	return never // need is more than the size: the caller has seen to that
}

func (s *state) fillingLog() int64 {
	last := s.t
	for _, r := range s.records {
		last = max(last, r.at+s.length)
	}
	return last - s.t
}
