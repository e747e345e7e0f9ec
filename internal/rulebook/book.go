package rulebook

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/internal/lock"
	"liveroom/limit"
)

// Book is one node's view of the limits.
type Book struct {
	cfg     Config
	compile func(*limit.Spec) (*limit.Rules, error) // (*limit.Spec).Compile
	current atomic.Pointer[Set]
	before  atomic.Pointer[Set] // what was in force before current, for whoever compares the two
	own     atomic.Pointer[compiled]
	// unreadable is the newest stored version that this server could not read: a publish goes on top of it.
	unreadable atomic.Uint64

	// mu is held while a set is put in force, so that sets from the store and from this node's own publish do not pass
	// each other. Compiling one takes milliseconds, of which only those who publish are kept waiting.
	mu lock.Mutex[lock.Book]

	keeping lock.Mutex[lock.Leaf] // held while the copy is written
	kept    uint64                // the version of the copy, 0 as long as this book has written none

	stop   context.CancelFunc
	follow func() // ends the store's calls
	loops  sync.WaitGroup
}

// Open puts the best set at hand in force (the seed, or the copy of the last good one when the store has not answered
// yet), seeds an empty store, and follows the source from then on. ctx bounds the opening alone.
func Open(ctx context.Context, cfg Config) (*Book, error) {
	return open(ctx, &Book{cfg: cfg, compile: (*limit.Spec).Compile})
}

func open(ctx context.Context, b *Book) (*Book, error) {
	cfg := &b.cfg
	if cfg.FileEvery == 0 {
		cfg.FileEvery = 900 * time.Millisecond
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	if cfg.Review == nil {
		cfg.Review = noReview{}
	}
	seed := &Set{Kind: KindSeed, Author: "configuration", Time: time.Now().UTC(), Rules: cfg.Seed.Rules}
	if cfg.Store == nil {
		seed.Kind = KindFile
		seed.Version = uint64(max(cfg.Seed.Version, 1)) // 0 would look like a node without rules
	}
	if err := b.make(seed); err != nil {
		return nil, err
	}
	b.current.Store(seed)
	b.cfg.Gate.Swap(seed.compiled)
	b.cfg.Metrics.version.Set(float64(seed.Version))
	background, stop := context.WithCancel(context.Background())
	b.stop = stop
	if cfg.Store == nil {
		if cfg.File != "" {
			b.loops.Go(func() { b.watchFile(background) })
		}
		return b, nil
	}
	if err := b.openStore(ctx, seed); err != nil {
		stop()
		return nil, err
	}
	return b, nil
}

// openStore brings this node to the newest readable set of the store.
func (b *Book) openStore(ctx context.Context, seed *Set) error {
	records, err := b.cfg.Store.History(ctx, 0, lookBack)
	if err == nil && len(records) == 0 {
		records, err = b.seed(ctx, seed)
	}
	if err != nil {
		b.cfg.Log.Warn("limits: the store does not answer, the last good set is in force until it does", "err", err)
		b.restoreKept()
	} else {
		b.takeNewestGood(records)
		b.compareWithSeed(seed)
	}
	b.follow, err = b.cfg.Store.Follow(func(r Record) { b.take(r) })
	return err
}

// seed fills an empty store, unless another node was faster, and returns what is in it then.
func (b *Book) seed(ctx context.Context, s *Set) ([]Record, error) {
	raw, err := s.encode()
	if err != nil {
		return nil, err
	}
	if _, err := b.cfg.Store.Publish(ctx, raw, 0); err != nil && !errors.Is(err, ErrConflict) {
		return nil, err
	}
	return b.cfg.Store.History(ctx, 0, lookBack)
}

// compareWithSeed says so when the configuration has another set than the store, since the store wins.
func (b *Book) compareWithSeed(seed *Set) {
	if n := len(Diff(seed.Rules, b.Current().Rules)); n > 0 {
		b.cfg.Log.Info("limits: the store's set is in force, the configuration's differs and only seeds an empty store",
			"version", b.Current().Version, "differences", n)
	}
}

// lookBack is how many versions a starting node goes back to find one that it can read.
const lookBack = 20

// takeNewestGood puts the newest set in force that this server can read.
func (b *Book) takeNewestGood(records []Record) {
	for _, r := range records {
		if b.take(r) {
			return
		}
	}
	b.restoreKept()
}

// take puts a stored set in force and reports whether that one, or a newer one, now is.
func (b *Book) take(r Record) bool {
	good, news := b.enforce(r)
	if news {
		b.keep(r)
	}
	return good
}

// enforce puts r in force when it is newer than what is, and reports whether that is good and whether it is news.
func (b *Book) enforce(r Record) (good, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Version <= b.current.Load().Version {
		b.cfg.Metrics.loads.WithLabelValues(loadOlder).Inc()
		return true, false
	}
	s, err := decode(r)
	if own := b.own.Load(); err == nil && own != nil && bytes.Equal(own.payload, r.Payload) {
		s.compiled = own.rules.WithVersion(int64(r.Version))
	} else if err == nil {
		err = b.make(s)
	}
	if err != nil {
		b.unreadable.Store(max(b.unreadable.Load(), r.Version))
		b.cfg.Metrics.loads.WithLabelValues(loadFailed).Inc()
		b.cfg.Log.Error("limits: a stored set can't be put in force, the one before stays", "version", r.Version,
			"in_force", b.current.Load().Version, "err", err)
		return false, false
	}
	b.enforceLocked(s)
	return true, true
}

// enforceLocked puts s in force at the gate. Caller holds mu.
func (b *Book) enforceLocked(s *Set) {
	before := b.current.Load()
	b.cfg.Gate.Swap(s.compiled)
	b.before.Store(before)
	b.current.Store(s)
	b.cfg.Metrics.loads.WithLabelValues(loadOK).Inc()
	b.cfg.Metrics.version.Set(float64(s.Version))
	if s.Kind == KindGuard || s.Kind == KindRollback {
		b.cfg.Metrics.rollbacks.WithLabelValues(string(s.Kind)).Inc()
	}
	b.cfg.Log.Info("limits in force", "version", s.Version, "before", before.Version, "kind", s.Kind, "author", s.Author, "note", s.Note)
}

// compiled is what this node itself publishes: it was compiled when it was looked at.
type compiled struct {
	payload []byte
	rules   *limit.Rules
}

// make compiles a set, once on its way from an author to the gates of a node. The error is [limit.Faults].
func (b *Book) make(s *Set) (err error) {
	s.compiled, err = b.compile(&limit.Spec{Version: int64(s.Version), Rules: s.Rules})
	return err
}

// Current returns the set in force on this node.
func (b *Book) Current() *Set { return b.current.Load() }

// Close ends the book's goroutines; the set in force stays in force.
func (b *Book) Close() {
	b.stop()
	if b.follow != nil {
		b.follow()
	}
	b.loops.Wait()
}
