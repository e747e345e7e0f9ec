package ledger

import "math/bits"

// turn begins the fixed window of now: it is full, and whatever was granted in
// an earlier one is void.
func (s *state) turn(now int64) {
	if w := div(now, s.length); w > s.window {
		s.window, s.level = w, s.size
		for i := range s.nodes {
			s.nodes[i].hold = 0
		}
	}
}

// slide begins the sliding counter's window of now.
func (s *state) slide(now int64) {
	switch w := div(now, s.length); w - s.window {
	case 0:
	case 1:
		s.window, s.past, s.used = w, s.used, 0
	default:
		s.window, s.past, s.used = w, 0, 0
	}
}

// weight is what counts of past so far into the next window, rounded up.
func (s *state) weight(past, into int64) int64 {
	return past - s.faded(past, into)
}

// faded is past*into/length, rounded down.
func (s *state) faded(past, into int64) int64 { return ratio(past, into, s.length) }

// waitSlide finds the instant at which the weight of the window before, or after
// this one's end the weight of this one, leaves room.
func (s *state) waitSlide(need int64) int64 {
	began := s.window * s.length
	if room := s.size - s.used - need; room >= 0 {
		return began + s.lighter(s.past, room) - s.t
	}
	return began + s.length + s.lighter(s.used, s.size-need) - s.t
}

// lighter is how far into a window the weight of the past is at most room.
func (s *state) lighter(past, room int64) int64 {
	if past <= room {
		return 0
	}
	return s.length - ratio(room, s.length, past)
}

// ratio is a*b/c, rounded down, of numbers whose product is beyond an int64;
// the result is not.
func ratio(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}
