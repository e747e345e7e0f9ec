package node

import "testing"

// A node gives memory back when it is quiet and has much to give, and never while the collector is at work anyway.
func TestMemoryIsGivenBackWhenQuiet(t *testing.T) {
	for _, c := range []struct {
		live, objects, free uint64
		want                bool
	}{
		{100 << 20, 110 << 20, 0, false},
		{100 << 20, 160 << 20, 0, true},
		{100 << 20, 90 << 20, 60 << 20, true},
		{100 << 20, 130 << 20, 30 << 20, true},
		{4 << 20, 12 << 20, 2 << 20, false},
		{4 << 20, 24 << 20, 0, true},
	} {
		if got := tooMuch(c.live, c.objects, c.free); got != c.want {
			t.Errorf("live %d, now %d, free %d: %v", c.live>>20, c.objects>>20, c.free>>20, got)
		}
	}
	s := newSurplus()
	s.look(memoryEvery) // the names of the figures are right, or it panics
	for i, c := range []struct {
		cycles uint64
		much   bool
		want   bool
	}{{1, true, false}, {1, true, false}, {2, true, false}, {2, true, false}, {2, false, false}, {2, true, true}, {3, true, false}, {3, true, false}, {3, true, true}} {
		if got := s.judge(memoryEvery, c.cycles+1<<40, c.much); got != c.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}
