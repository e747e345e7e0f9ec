package ledger

import (
	"fmt"

	"liveroom/limit"
)

const exact = 1 << 53 // beyond it a double skips integers

func (s *state) check() error {
	for _, n := range []int64{s.t, s.level, s.num, s.size * s.den, s.length, s.used, s.past} {
		if n > exact || n < -exact {
			return fmt.Errorf("%d is beyond a double's integers", n)
		}
	}
	if s.kind != limit.KindBucket {
		if left := s.left(); left > s.size || left < -3*s.size && s.kind != limit.KindSlots {
			return fmt.Errorf("%d left of %d", left, s.size)
		}
		return nil
	}
	out := s.outstanding(s.t)
	if most := s.top(out); s.owner == "" && s.level > most {
		return fmt.Errorf("level %d/%d with %d of %d outstanding", s.level, s.den, out, s.size)
	}
	if s.level > s.size*s.den || s.level < -s.size*s.den {
		return fmt.Errorf("level %d/%d of %d", s.level, s.den, s.size)
	}
	for i := range s.nodes {
		if e := &s.nodes[i]; e.hold < 0 || e.hold > 0 && s.owner != "" && s.owner == e.node {
			return fmt.Errorf("%s holds %d", e.node, e.hold)
		}
	}
	return nil
}
