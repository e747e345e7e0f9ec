package preview

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Config is what a Recorder needs.
type Config struct {
	// Node names this node in reports, 1 to 64 bytes; required. Nodes must differ.
	Node string
	// Clock is the gate's; required.
	Clock limit.Clock
	// Now is the wall clock, read once, so that setting it later moves nothing; time.Now when nil.
	Now func() time.Time
	// Window is how long traffic is kept, 10 s to 1 h; 5 min when 0.
	Window time.Duration
	// MaxBytes bounds what the Recorder holds, 8 MiB to 4 GiB; 64 MiB when 0. It takes what the traffic needs, up to
	// this. A snapshot is memory of its caller's.
	MaxBytes int64
	// Level is the sampled share to begin with: 2^-Level of the users, 0 to 20.
	Level int
}

const (
	defaultWindow   = 5 * time.Minute
	defaultMaxBytes = 64 << 20
	maxLevel        = 20
	shardCount      = 16
	// fixedBytes is taken by the table of connections, with names of the length that the contract allows, and by the
	// shards' own fields.
	fixedBytes = 5 << 20
)

func (c Config) withDefaults() (Config, error) {
	if c.Window == 0 {
		c.Window = defaultWindow
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Node == "" || len(c.Node) > maxName, "preview: node: want 1 to %d bytes, have %d", maxName, len(c.Node))
	fault(c.Clock == nil, "preview: clock: missing")
	fault(c.Window < 10*time.Second || c.Window > time.Hour, "preview: window: want 10s to 1h, have %v", c.Window)
	fault(c.MaxBytes < 8<<20 || c.MaxBytes > 4<<30, "preview: max_bytes: want 8 MiB to 4 GiB, have %d", c.MaxBytes)
	fault(c.Level < 0 || c.Level > maxLevel, "preview: level: want 0 to %d, have %d", maxLevel, c.Level)
	return c, errors.Join(faults...)
}

// Recorder keeps the last minutes of what a gate was asked. It is a [limit.Observer].
type Recorder struct {
	// Fixed after construction.
	cfg    Config
	start  limit.Instant
	wall   int64 // Unix ns at start
	owners owners

	level  atomic.Uint32 // in force: users with a larger hash are not kept
	shards [shardCount]shard

	// mu is taken after a shard's mu, never before.
	mu lock.Mutex[lock.Recorder]
	// held is the level at which recordings are made until heldUntil, because users that a lower one lets in again have
	// not been watched for a whole window.
	held      uint32
	heldUntil limit.Instant
}

var _ limit.Observer = (*Recorder)(nil)

// NewRecorder returns a Recorder whose window begins now. The error names everything that is wrong with cfg.
func NewRecorder(cfg Config) (*Recorder, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Recorder{cfg: cfg, start: cfg.Clock(), wall: cfg.Now().UnixNano()}
	r.level.Store(uint32(cfg.Level))
	per := (cfg.MaxBytes - fixedBytes) / shardCount
	for i := range r.shards {
		r.shards[i].init(r, per)
	}
	return r, nil
}

// Observe records one decision. It allocates only for a user, a connection, a room or a length of traffic that it has no
// memory for yet.
func (r *Recorder) Observe(o limit.Observed) {
	name, hash := o.Request.User, uint64(0)
	switch {
	case name != "":
		hash = xxhash.Sum64String(name)
		if o.Request.Action == limit.Join && o.Conn != 0 {
			r.owners.note(o.Conn, name, hash, r.sampled(hash), o.Now)
		}
	case o.Conn == 0:
		return // nobody's: an address that connects
	default:
		if own := r.owners.find(o.Conn); own != nil {
			name, hash = own.name, own.hash
		} else {
			hash = mix(uint64(o.Conn))
		}
	}
	s := &r.shards[hash%shardCount]
	s.mu.Lock()
	s.observeLocked(r, &o, name, hash)
	s.mu.Unlock()
}

func (r *Recorder) sampled(hash uint64) bool { return inSample(hash, r.level.Load()) }

// inSample tells whether a user is among the sampled 2^-level of all. The shard is taken from the hash's other end.
func inSample(hash uint64, level uint32) bool { return hash>>(64-level) == 0 }

func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>32
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
	if level <= uint32(r.cfg.Level) || now < r.heldUntil {
		return
	}
	full := int64(0)
	for i := range r.shards {
		full += r.shards[i].full.Load()
	}
	if full < shardCount*250 && r.level.CompareAndSwap(level, level-1) {
		// A shard lets them in with its next sweep.
		r.held, r.heldUntil = level, now.Add(r.cfg.Window+r.cfg.Window/4)
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

// Stats is the state of a Recorder, for metrics.
type Stats struct {
	// Share of users that is sampled, 1 for all.
	Share float64
	// Bytes held for traffic and names, at most Config.MaxBytes.
	Bytes int64
	// Dropped counts what was not kept, since the start.
	Dropped Dropped
}

// Stats reads the state.
func (r *Recorder) Stats() Stats {
	st := Stats{Share: share(r.level.Load()), Bytes: fixedBytes}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		st.Bytes += s.bytesLocked()
		st.Dropped.add(s.dropped)
		s.mu.Unlock()
	}
	return st
}

func share(level uint32) float64 { return 1 / float64(uint64(1)<<level) }
