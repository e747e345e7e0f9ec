package ledger

import (
	"slices"

	"liveroom/limit/cluster"
)

// slot takes Ask slots at once, or frees them. The same slot asked for again has
// the same answer; one that was freed before its call came is not taken.
func (s *state) slot(c *cluster.Call) {
	r := &c.Reply
	i := slices.IndexFunc(s.records, func(r record) bool { return r.node == c.Node && r.seq == c.Seq })
	switch {
	case c.Op == cluster.OpFree && i >= 0:
		s.records = slices.Delete(s.records, i, i+1)
	case c.Op == cluster.OpFree && len(s.records) < places:
		s.records = append(s.records, record{s.t + tombstone, 0, c.Node, c.Seq})
	case c.Op == cluster.OpFree:
	case i >= 0:
		r.Granted = s.records[i].shares
	case c.Ask > 0 && s.left() >= c.Ask+c.Floor && len(s.records) < places:
		s.records = append(s.records, record{s.t + microsUp(c.Lease), c.Ask, c.Node, c.Seq})
		r.Granted = c.Ask
	}
	r.Left = s.left()
	if r.Granted == 0 && c.Op == cluster.OpSlot {
		r.Wait = duration(s.wait(c.Ask + c.Floor))
	}
}

// vacate drops slots that have come back by themselves.
func (s *state) vacate(now int64) {
	s.records = slices.DeleteFunc(s.records, func(r record) bool { return r.at <= now })
}

// waitSlots is an upper bound: a slot may be freed sooner.
func (s *state) waitSlots(need int64) int64 {
	left := s.left()
	byEnd := slices.Clone(s.records)
	slices.SortStableFunc(byEnd, func(a, b record) int { return int(a.at - b.at) })
	for _, r := range byEnd {
		if left += r.shares; left >= need {
			return r.at - s.t
		}
	}
	return never
}

func (s *state) fillingSlots() int64 {
	last := s.t
	for _, r := range s.records {
		last = max(last, r.at)
	}
	return last - s.t
}
