package rulebook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"liveroom/limit"
)

// Record is a set as a [Store] keeps it.
type Record struct {
	Version uint64
	Payload []byte
	Time    time.Time
}

// Store orders sets by version.
type Store interface {
	// Publish stores payload if the newest version is still after (0: none) and returns the new one; an error that is
	// [ErrConflict] when it is not.
	Publish(ctx context.Context, payload []byte, after uint64) (version uint64, err error)
	// History returns at most limit records older than version before (0: from the newest), newest first.
	History(ctx context.Context, before uint64, limit int) ([]Record, error)
	// Follow calls h with the newest record, at first and at each change, one call after the other, until stop.
	Follow(h func(Record)) (stop func(), err error)
}

// Config configures a [Book].
type Config struct {
	// Gate is where sets are put in force. Required.
	Gate *limit.Gate
	// Store is the authority of the source "cluster". Nil: the source is the file.
	Store Store
	// Seed is the configuration's set: it fills an empty store, and is in force until the store has answered.
	Seed *limit.Spec
	// File is looked at every FileEvery when there is no store. Empty: the seed stays.
	File string
	// FileEvery defaults to one second.
	FileEvery time.Duration
	// Keep is the path of the copy of the last good set. Empty: none is kept.
	Keep string
	// Check finds what is wrong with rules that compile but make no sense on this server. Nil: nothing is.
	Check func([]limit.Rule) limit.Faults
	// Judge says whether a change may be published without override: nil, or an error that is [ErrNeedsOverride].
	// Nil: every change may.
	Judge func(ctx context.Context, today, proposed *limit.Rules) error
	// Published is told of every set that this node itself published, after it is in force here. It must not block.
	Published func(before, after *Set)
	// Log takes what an operator should read. Required.
	Log *slog.Logger
	// Metrics counts. Nil: counted for nobody.
	Metrics *Metrics
}

var (
	// ErrConflict says that the limits are not at the version that the author saw.
	ErrConflict = errors.New("limits were changed meanwhile")
	// ErrFileSource says that the limits come from a file and are changed there.
	ErrFileSource = errors.New("limits come from the file on this server (limits.source is file)")
	// ErrNeedsOverride says that a change refuses so much more than today that its author must confirm it.
	ErrNeedsOverride = errors.New("the change refuses much more than today")
	// ErrNotFound says that there is no such version, or that it can't be read by this server.
	ErrNotFound = errors.New("no such version of the limits")
)

// Book is one node's view of the limits.
type Book struct {
	cfg     Config
	current atomic.Pointer[Set]
	// unreadable is the newest stored version that this server could not read: a publish goes on top of it.
	unreadable atomic.Uint64

	// mu is held while a set is put in force, so that sets from the store and from this node's own publish do not pass
	// each other.
	mu sync.Mutex

	stop   context.CancelFunc
	follow func() // ends the store's calls
	loops  sync.WaitGroup
}

// Open puts the best set at hand in force (the seed, or the copy of the last good one when the store has not answered
// yet), seeds an empty store, and follows the source from then on. ctx bounds the opening alone.
func Open(ctx context.Context, cfg Config) (*Book, error) {
	if cfg.FileEvery == 0 {
		cfg.FileEvery = time.Second
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	b := &Book{cfg: cfg}
	seed := &Set{Kind: KindSeed, Author: "configuration", Time: time.Now().UTC(), Rules: cfg.Seed.Rules}
	if cfg.Store == nil {
		seed.Kind = KindFile
		seed.Version = uint64(max(cfg.Seed.Version, 0))
	}
	if err := seed.compile(); err != nil {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Version <= b.current.Load().Version {
		b.cfg.Metrics.loads.WithLabelValues(loadOlder).Inc()
		return true
	}
	s, err := decode(r.Version, r.Time, r.Payload)
	if err != nil {
		b.unreadable.Store(max(b.unreadable.Load(), r.Version))
		b.cfg.Metrics.loads.WithLabelValues(loadFailed).Inc()
		b.cfg.Log.Error("limits: a stored set can't be put in force, the one before stays", "version", r.Version,
			"in_force", b.current.Load().Version, "err", err)
		return false
	}
	b.enforceLocked(s)
	b.keep(r)
	return true
}

// enforceLocked puts s in force at the gate. Caller holds mu.
func (b *Book) enforceLocked(s *Set) {
	before := b.current.Load()
	b.cfg.Gate.Swap(s.compiled)
	b.current.Store(s)
	b.cfg.Metrics.loads.WithLabelValues(loadOK).Inc()
	b.cfg.Metrics.version.Set(float64(s.Version))
	if s.Kind == KindGuard || s.Kind == KindRollback {
		b.cfg.Metrics.rollbacks.WithLabelValues(string(s.Kind)).Inc()
	}
	b.cfg.Log.Info("limits in force", "version", s.Version, "before", before.Version, "kind", s.Kind, "author", s.Author, "note", s.Note)
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

// Draft is a set that somebody wants in force.
type Draft struct {
	Rules    []limit.Rule
	Author   string
	Note     string
	Override bool
}

// Publish puts a whole set in force on top of version ifMatch, on all nodes. Errors: [limit.Faults] with every fault,
// [ErrFileSource], [ErrConflict], [ErrNeedsOverride] with the judge's reasons, or the store's.
func (b *Book) Publish(ctx context.Context, d Draft, ifMatch uint64) (*Set, error) {
	s := &Set{Kind: KindPublish, Author: d.Author, Note: d.Note, Override: d.Override, Rules: d.Rules}
	if b.cfg.Store == nil {
		return nil, ErrFileSource
	}
	today := b.Current()
	if today.Version != ifMatch {
		return nil, fmt.Errorf("%w: version %d is in force, the change was made on %d", ErrConflict, today.Version, ifMatch)
	}
	if err := s.compile(); err != nil {
		return nil, err
	}
	if b.cfg.Check != nil {
		if faults := b.cfg.Check(s.Rules); len(faults) > 0 {
			return nil, faults
		}
	}
	if b.cfg.Judge != nil && !d.Override {
		if err := b.cfg.Judge(ctx, today.compiled, s.compiled); err != nil {
			return nil, err
		}
	}
	return b.store(ctx, s, ifMatch)
}

// Rollback puts the rules of an older version in force again, as a new version on top of ifMatch (0: whatever is in
// force). It needs no override: it is the way out.
func (b *Book) Rollback(ctx context.Context, to, ifMatch uint64, author, note string) (*Set, error) {
	if ifMatch == 0 {
		ifMatch = b.Current().Version
	}
	old, err := b.Version(ctx, to)
	if err != nil {
		return nil, err
	}
	return b.restore(ctx, old, ifMatch, KindRollback, author, note)
}

// GuardRollback undoes version for the guard: it puts the newest readable set before it in force again, unless somebody
// has published since.
func (b *Book) GuardRollback(ctx context.Context, version uint64, why string) error {
	if b.cfg.Store == nil {
		return ErrFileSource
	}
	records, err := b.cfg.Store.History(ctx, version, lookBack)
	if err != nil {
		return err
	}
	for _, r := range records {
		if old, err := decode(r.Version, r.Time, r.Payload); err == nil {
			_, err = b.restore(ctx, old, version, KindGuard, "guard", why)
			return err
		}
	}
	return fmt.Errorf("%w: nothing came before version %d", ErrNotFound, version)
}

func (b *Book) restore(ctx context.Context, old *Set, ifMatch uint64, kind Kind, author, note string) (*Set, error) {
	s := &Set{Kind: kind, Author: author, Note: note, Restores: old.Version, Rules: old.Rules}
	if err := s.compile(); err != nil {
		return nil, err
	}
	return b.store(ctx, s, ifMatch)
}

// store publishes s on top of version after, or of an unreadable one that followed it, and puts it in force here
// without waiting for the news of it.
func (b *Book) store(ctx context.Context, s *Set, after uint64) (*Set, error) {
	raw, err := s.encode()
	if err != nil {
		return nil, err
	}
	before := b.Current()
	if bad := b.unreadable.Load(); before.Version == after && bad > after {
		after = bad
	}
	version, err := b.cfg.Store.Publish(ctx, raw, after)
	if err != nil {
		return nil, err
	}
	out := *s
	out.Version, out.Time = version, time.Now().UTC()
	if err := out.compile(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	if version > b.current.Load().Version { // else the news of it were faster
		b.enforceLocked(&out)
	}
	b.mu.Unlock()
	b.keep(Record{Version: version, Payload: raw, Time: out.Time})
	if b.cfg.Published != nil {
		b.cfg.Published(before, &out)
	}
	return &out, nil
}

// Version returns one version.
func (b *Book) Version(ctx context.Context, version uint64) (*Set, error) {
	if b.cfg.Store == nil {
		return nil, ErrFileSource
	}
	records, err := b.cfg.Store.History(ctx, version+1, 1)
	if err != nil {
		return nil, err
	}
	if version == 0 || len(records) == 0 || records[0].Version != version {
		return nil, fmt.Errorf("%w: %d", ErrNotFound, version)
	}
	s, err := decode(version, records[0].Time, records[0].Payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return s, nil
}

// History returns at most limit versions older than before (0: from the newest), newest first, each with its changes
// against the one before it. Versions that this server can't read are left out.
func (b *Book) History(ctx context.Context, before uint64, limit int) ([]*Set, error) {
	if b.cfg.Store == nil {
		return []*Set{b.Current()}, nil
	}
	records, err := b.cfg.Store.History(ctx, before, limit+1)
	if err != nil {
		return nil, err
	}
	var sets []*Set
	for _, r := range records {
		if s, err := decode(r.Version, r.Time, r.Payload); err == nil {
			sets = append(sets, s)
		}
	}
	for i, s := range sets[:max(len(sets)-1, 0)] {
		s.Changes = Diff(sets[i+1].Rules, s.Rules)
	}
	return sets[:min(len(sets), limit)], nil
}
