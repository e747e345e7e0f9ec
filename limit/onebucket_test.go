package limit

import (
	"time"

	"liveroom/internal/lock"
)

// oneBucket is a token bucket by itself, so that its numbers can be held to a
// reference without rules and scopes.
type oneBucket struct {
	rate *rate // fixed

	mu    lock.Mutex[lock.Leaf]
	epoch Instant
	full  int64
}

// numbers are a compiled Limit, of which buckets are made.
type numbers struct{ rate rate }

func newNumbers(l Limit) (*numbers, error) {
	var faults Faults
	m := compileLimit(&l, "", []int64{1}, &faults)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return &numbers{m}, nil
}

// bucket returns a full bucket as of now.
func (m *numbers) bucket(now Instant) *oneBucket {
	return &oneBucket{rate: &m.rate, epoch: now, full: longFull}
}

// Take takes n tokens at now if they are there. If not, nothing changes, and
// it returns the exact wait until they will be, Never when there can never be
// so many. A negative n is ErrNegativeCost.
func (b *oneBucket) Take(now Instant, n int64) (ok bool, wait time.Duration, err error) {
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
func (b *oneBucket) Level(now Instant) int64 {
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
func (b *oneBucket) at(now Instant) int64 {
	t, inSpan := ticks(b.epoch, now, b.rate.span)
	if !inSpan {
		b.full = b.rate.shifted(b.full, uint64(now)-uint64(b.epoch))
		b.epoch = now
		return 0
	}
	return t
}
