package client

import "testing"

func TestGiftsAreMissedInHolesAndAtTheEnd(t *testing.T) {
	stored := []uint64{3, 5, 6, 9}
	for _, c := range []struct {
		hole hole
		want int64
	}{{hole{3, 5}, 0}, {hole{3, 9}, 2}, {hole{0, 3}, 0}, {hole{6, ^uint64(0)}, 1}, {hole{9, ^uint64(0)}, 0}, {hole{4, 4}, 0}} {
		if got := between(stored, c.hole); got != c.want {
			t.Errorf("%+v holds %d, want %d", c.hole, got, c.want)
		}
	}
	s := &Session{}
	for _, g := range [][2]uint64{{3, 0}, {5, 3}, {9, 6}, {9, 6}} {
		s.gift(g[0], g[1])
	}
	if s.lastGift != 9 || len(s.holes) != 1 || s.repeats != 1 {
		t.Errorf("session %+v, want one hole and one repeat", s.holes)
	}
}
