package fanout

import "sync/atomic"

// A store that comes back empty would number anew, and everybody who knows a sequence would wait for a long time until
// the new ones pass it. So a node that makes a stream anew lets it begin beyond all that it knows, with a gap for what
// other nodes know and it does not.
const (
	giftGap     = 1 << 20
	settingsGap = 1 << 10
	rulesGap    = 1 << 10
	nodesGap    = 1 << 20
)

// known are the highest sequences that this node has met.
type known struct{ gift, settings, rules high }

// high is a number that only grows.
type high struct{ n atomic.Uint64 }

func (h *high) meet(n uint64) {
	for old := h.n.Load(); n > old && !h.n.CompareAndSwap(old, n); old = h.n.Load() {
	}
}

// next is where a new stream begins: beyond the gap, or at the server's default when nothing is known.
func (h *high) next(gap uint64) uint64 {
	if n := h.n.Load(); n > 0 {
		return n + gap
	}
	return 0
}
