package limit

import (
	"time"

	"liveroom/internal/lock"
)

// Bucket is one token bucket by itself, for a caller that needs neither rules
// nor scopes. It is safe for concurrent use and must not be copied.
type Bucket struct {
	rate *rate // fixed; may be shared by many buckets of one Meter

	mu    lock.Mutex[lock.Leaf]
	epoch Instant
	full  int64
}

// Meter is a compiled Limit from which buckets are made.
type Meter struct{ rate rate }

// NewMeter checks a limit and compiles it. The error is Faults.
func NewMeter(l Limit) (*Meter, error) {
	var faults Faults
	m := compileLimit(&l, "", []int64{1}, &faults)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return &Meter{m}, nil
}

// Bucket returns a full bucket as of now.
func (m *Meter) Bucket(now Instant) *Bucket {
	return &Bucket{rate: &m.rate, epoch: now, full: longFull}
}

// Take takes n tokens at now if they are there. If not, nothing changes, and
// it returns the exact wait until they will be, Never when there can never be
// so many. A negative n is ErrNegativeCost.
func (b *Bucket) Take(now Instant, n int64) (ok bool, wait time.Duration, err error) {
	if n < 0 {
		return false, 0, ErrNegativeCost
	}
	if n > b.rate.most[0] {
		return false, Never, nil
	}
	b.mu.Lock()
	at := b.at(now)
	need := n * b.rate.whole
	left := b.rate.levelOf(b.full, at) - need
	if left >= 0 || n == 0 {
		b.full = max(b.full, b.rate.num*at) + need
		b.mu.Unlock()
		return true, 0, nil
	}
	b.mu.Unlock()
	return false, b.rate.waitFor(-left), nil
}

// Level returns the whole tokens in the bucket at now. It changes nothing.
func (b *Bucket) Level(now Instant) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full
	t, inSpan := ticks(b.epoch, now, b.rate.span)
	if !inSpan {
		full, t = b.rate.shifted(full, uint64(now)-uint64(b.epoch)), 0
	}
	return max(b.rate.levelOf(full, t), 0) / b.rate.whole
}

// at returns now on the bucket's axis and moves its epoch when that lies too
// far behind. The caller holds b.mu.
func (b *Bucket) at(now Instant) int64 {
	t, inSpan := ticks(b.epoch, now, b.rate.span)
	if !inSpan {
		b.full = b.rate.shifted(b.full, uint64(now)-uint64(b.epoch))
		b.epoch = now
		return 0
	}
	return t
}
