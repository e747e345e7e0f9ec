package limit

import "time"

// demand is how many shares decisions ask for on this node, refused ones
// included, averaged with a memory of demandMemory.
type demand struct {
	asked int64 // since the last measurement
	from  Instant
	rate  int64 // thousandths of a share per second
}

const (
	demandMemory = 100 * time.Millisecond
	demandScale  = 1000 * int64(time.Second)
)

// measure takes in what was asked for since the last time.
func (d *demand) measure(now Instant) {
	if d.from == 0 {
		d.from = now.Add(-demandMemory)
	}
	span := now.Sub(d.from)
	if span < time.Millisecond {
		return
	}
	whole := int64(span + demandMemory)
	d.rate = scale(d.rate, int64(demandMemory), whole, 0) + scale(scale(d.asked, demandScale, int64(span), 0), int64(span), whole, 0)
	d.asked, d.from = 0, now
}

// over is what is asked for in a span, in shares.
func (d *demand) over(span time.Duration) int64 {
	return min(scale(d.rate, int64(span), demandScale, 0), maxShares)
}
