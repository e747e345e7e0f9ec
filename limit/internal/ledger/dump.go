package ledger

import (
	"strconv"
	"strings"

	"liveroom/limit"
)

// Dump returns all that the store has of a key, number by number in the order in
// which the script packs them, and how long it lives; "" when it has none. It is
// what the script is compared by.
func (l *Ledger) Dump(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.shards[l.index(key)]
	k := s.get(key, s.clock(l.now()))
	if k.state == nil {
		return ""
	}
	return k.state.dump()
}

func (s *state) dump() string {
	var b strings.Builder
	number := func(list ...int64) {
		for _, n := range list {
			b.WriteString(strconv.FormatInt(n, 10) + " ")
		}
	}
	number(s.t, s.offset, int64(s.kind), s.size, s.num, s.den, s.length, s.level, s.tier, s.asked)
	b.WriteString("<" + s.owner + "> ")
	number(s.window, s.used, s.past)
	for _, e := range s.nodes {
		b.WriteString("\n<" + e.node + "> ")
		number(e.seq, e.received, e.returned, e.debt, e.hold, e.expires, e.at, e.grant, e.fresh, e.granted)
	}
	for _, r := range s.records {
		b.WriteString("\n")
		number(r.at, r.shares)
		if s.kind == limit.KindSlots {
			b.WriteString("<" + r.node + "> ")
			number(r.seq)
		}
	}
	return b.String()
}
