package cluster

import (
	"math/bits"
	"time"

	"liveroom/limit"
)

// demand is how many shares decisions ask for on this node, refused ones
// included, averaged with a memory of demandMemory.
type demand struct {
	asked int64 // since the last measurement
	from  limit.Instant
	rate  int64 // thousandths of a share per second
}

const (
	demandMemory = 100 * time.Millisecond
	demandScale  = 1000 * int64(time.Second)
)

// measure takes in what was asked for since the last time.
func (d *demand) measure(now limit.Instant) {
	if d.from == 0 {
		d.from = now.Add(-demandMemory)
	}
	span := now.Sub(d.from)
	if span < time.Millisecond {
		return
	}
	whole := int64(span + demandMemory)
	d.rate = portion(d.rate, int64(demandMemory), whole) + portion(portion(d.asked, demandScale, int64(span)), int64(span), whole)
	d.asked, d.from = 0, now
}

// over is what is asked for in a span, in shares.
func (d *demand) over(span time.Duration) int64 {
	return min(portion(d.rate, int64(span), demandScale), limit.MaxShares)
}

// portion is a*b/c, at most 1<<60.
func portion(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 1 << 60
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, 1<<60))
}
