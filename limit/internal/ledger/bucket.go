package ledger

import "slices"

// refill adds what came since the last step. Between two steps leases end and
// each end raises the cap of the level: the refill goes from one to the next, so
// that what found the bucket full while a lease was out is lost as it must be.
func (s *state) refill(now int64) {
	t, out := s.t, s.outstanding(s.t)
	for _, e := range s.ends(t, now) {
		s.rise(e.expires-t, out)
		t, out = e.expires, out-e.hold
	}
	s.rise(now-t, out)
}

// ends lists the nodes whose leases end after from and not after to, in order.
func (s *state) ends(from, to int64) []entry {
	var list []entry
	for _, e := range s.nodes {
		if e.hold > 0 && e.expires > from && e.expires <= to {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return int(a.expires - b.expires) })
	return list
}

// rise refills for a time during which so much is outstanding.
func (s *state) rise(elapsed, out int64) {
	top := s.top(out)
	switch missing := top - s.level; {
	case missing <= 0:
		s.level = top
	case s.num == 0:
	case elapsed >= up(missing, s.num):
		s.level = top
	default:
		s.level += s.num * elapsed
	}
}

// top is the level's cap while so much is outstanding.
func (s *state) top(out int64) int64 { return max(s.size-out, 0) * s.den }

// cap holds the level below what is outstanding.
func (s *state) cap() { s.level = min(s.level, s.top(s.outstanding(s.t))) }

// waitRefill goes through the leases' ends as refill does.
func (s *state) waitRefill(need int64) int64 {
	want, level, t, out := need*s.den, s.level, s.t, s.outstanding(s.t)
	if s.num == 0 {
		return never
	}
	for _, e := range s.ends(s.t, 1<<62) {
		top := s.top(out)
		if want <= top && t+up(want-level, s.num) <= e.expires {
			break
		}
		if elapsed := e.expires - t; elapsed >= up(top-level, s.num) {
			level = top
		} else {
			level += s.num * elapsed
		}
		t, out = e.expires, out-e.hold
	}
	return t + up(want-level, s.num) - s.t
}

// fillingBucket is an upper bound of the time until the bucket is full: the last
// lease's end, and the refill of all that is missing after it.
func (s *state) fillingBucket() int64 {
	missing := s.size*s.den - s.level
	if missing == 0 {
		return 0
	}
	if s.num == 0 {
		return longest
	}
	last := s.t
	for _, e := range s.nodes {
		if e.hold > 0 {
			last = max(last, e.expires)
		}
	}
	return last - s.t + up(missing, s.num)
}
