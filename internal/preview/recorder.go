package preview

import (
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Window is how long traffic is kept.
const Window = 5 * time.Minute

const (
	// mostBytes bounds what a Recorder holds. It takes what the traffic needs, up to this.
	mostBytes  = 64 << 20
	maxLevel   = 20
	shardCount = 16
	// maxName bounds user, room, role and route names that are kept.
	maxName = 256
)

// Recorder keeps the last minutes of what a gate was asked. It is a [limit.Observer].
type Recorder struct {
	// Fixed after construction.
	node   string
	salt   uint64 // of the node, so that connections of two nodes differ
	clock  limit.Clock
	start  limit.Instant
	wall   int64 // Unix ns at start
	window time.Duration

	level  atomic.Uint32 // the sampled share is 2^-level; users with a larger hash are not kept
	shards [shardCount]shard

	// mu is taken after a shard's mu, never before.
	mu lock.Mutex[lock.Recorder]
	// held is the level at which recordings are made until heldUntil, because users that a lower one lets in again have
	// not been watched for a whole window.
	held      uint32
	heldUntil limit.Instant
}

var _ limit.Observer = (*Recorder)(nil)

// NewRecorder returns a Recorder of the node, by its gate's clock, whose window begins now.
func NewRecorder(node string, clock limit.Clock) *Recorder {
	return newRecorder(node, clock, time.Now(), Window, mostBytes)
}

// newRecorder takes the wall clock's reading, once, so that setting it later moves nothing.
func newRecorder(node string, clock limit.Clock, wall time.Time, window time.Duration, bytes int64) *Recorder {
	r := &Recorder{node: node, salt: xxhash.Sum64String(node), clock: clock, start: clock(), wall: wall.UnixNano(), window: window}
	for i := range r.shards {
		r.shards[i].init(r.start, bytes/shardCount)
	}
	return r
}

// Observe records one decision. It allocates only for a user, a room or a length of traffic that it has no memory for yet.
// Requests of nobody in particular, from an address that connects to a frame before the hello, press on no bucket that is
// replayed.
func (r *Recorder) Observe(o limit.Observed) {
	if o.Request.User == "" {
		return
	}
	hash := xxhash.Sum64String(o.Request.User)
	s := &r.shards[hash%shardCount]
	s.mu.Lock()
	s.observeLocked(r, &o, hash)
	s.mu.Unlock()
}

// inSample tells whether a user is among the sampled 2^-level of all. The shard is taken from the hash's other end.
func inSample(hash uint64, level uint32) bool { return hash>>(64-level) == 0 }

func share(level uint32) float64 { return 1 / float64(uint64(1)<<level) }

// steps are how long the requests of everybody not sampled are summed.
const (
	shortestStep = 10 * time.Millisecond
	longestStep  = 160 * time.Millisecond
)

func stepOf(level uint32) time.Duration { return min(shortestStep<<min(level, maxLevel), longestStep) }

// floor is the beginning of an instant's step.
func floor(at limit.Instant, level uint32) limit.Instant {
	return at - at%limit.Instant(stepOf(level))
}

// raise halves the share if it still is what the caller saw.
func (r *Recorder) raise(from uint32) {
	if from < maxLevel {
		r.level.CompareAndSwap(from, from+1)
	}
}

// relax doubles the share when the shards have used less than a quarter of their room, on average.
func (r *Recorder) relax(now limit.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	level := r.level.Load()
	if level == 0 || now < r.heldUntil {
		return
	}
	full := int64(0)
	for i := range r.shards {
		full += r.shards[i].full.Load()
	}
	if full < shardCount*250 && r.level.CompareAndSwap(level, level-1) {
		// A shard lets them in with its next sweep.
		r.held, r.heldUntil = level, now.Add(r.window+r.window/4)
	}
}

// snapshotLevel is the level at which the whole window is known.
func (r *Recorder) snapshotLevel(now limit.Instant) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if level := r.level.Load(); now >= r.heldUntil || level > r.held {
		return level
	}
	return r.held
}

// Share returns the share of users that is sampled now, 1 for all.
func (r *Recorder) Share() float64 { return share(r.level.Load()) }
