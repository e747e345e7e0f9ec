package edition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"liveroom/internal/lock"
)

// telling is a pointer to what embeds a [Story].
type telling[E any] interface {
	*E
	Told() *Story
}

// Keeper is one node's view of the editions of one kind.
type Keeper[E any, P telling[E]] struct {
	cfg     Config[E]
	current atomic.Pointer[E]
	before  atomic.Pointer[E] // what was in force before current
	own     atomic.Pointer[own[E]]
	// unreadable is the newest stored version that this server could not read: a publish goes on top of it.
	unreadable atomic.Uint64

	// mu is held while a made edition takes the place of an older one, so that those from the store and this node's own do not pass
	// each other.
	mu lock.Mutex[lock.Book]

	copying lock.Mutex[lock.Leaf]
	newest  Record // guarded by copying: what the copy is to be of
	copies  bool   // guarded by copying: somebody writes it, and goes on until it is of the newest

	follow func() // ends the store's calls; nil: there are none
}

// own is what this node itself publishes: it was made when it was looked at.
type own[E any] struct {
	payload []byte
	made    *E
}

// Open puts the best edition at hand in force (the seed, or the copy of the last good one when the store does not
// answer), seeds an empty store, and follows it from then on. ctx bounds the opening alone.
func Open[E any, P telling[E]](ctx context.Context, cfg Config[E]) (*Keeper[E, P], error) {
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil, "edition")
	}
	k := &Keeper[E, P]{cfg: cfg}
	if err := cfg.Make(cfg.Seed); err != nil {
		return nil, err
	}
	k.current.Store(cfg.Seed)
	cfg.Enforce(cfg.Seed)
	cfg.Metrics.version.Set(float64(P(cfg.Seed).Told().Version))
	if cfg.Store == nil {
		return k, nil
	}
	records, err := cfg.Store.History(ctx, 0, lookBack)
	if err == nil && len(records) == 0 {
		records, err = k.seed(ctx, 0)
	}
	if err != nil {
		cfg.Log.Warn(cfg.Name+": the store does not answer, the last good edition is in force until it does", "err", err)
		k.restoreKept()
	} else {
		k.takeNewestGood(records)
		k.compareWithSeed(ctx)
	}
	k.follow, err = cfg.Store.Follow(func(r Record) { k.take(r) })
	return k, err
}

// seed puts the configuration's edition on top of a version, unless another node was faster, and returns what is stored then.
func (k *Keeper[E, P]) seed(ctx context.Context, after uint64) ([]Record, error) {
	raw, err := k.encode(k.cfg.Seed)
	if err != nil {
		return nil, err
	}
	if _, err := k.cfg.Store.Publish(ctx, raw, after); err != nil && !errors.Is(err, ErrConflict) {
		return nil, err
	}
	return k.cfg.Store.History(ctx, 0, lookBack)
}

// compareWithSeed says so when the configuration has another edition than the store, and which of them wins.
func (k *Keeper[E, P]) compareWithSeed(ctx context.Context) {
	is, content := k.story(), *k.Current() // a copy, for Changes to write to
	n := k.cfg.Changes(k.cfg.Seed, &content)
	if n == 0 {
		return
	}
	if k.cfg.Reseed && is.Kind == KindSeed && k.unreadable.Load() <= is.Version {
		records, err := k.seed(ctx, is.Version)
		if err == nil {
			k.takeNewestGood(records)
			return
		}
		k.cfg.Log.Warn(k.cfg.Name+": the configuration's could not be stored, the one before stays", "version", is.Version, "err", err)
		return
	}
	k.cfg.Log.Info(k.cfg.Name+": the store's edition is in force, the configuration's differs and only seeds an empty store",
		"version", is.Version, "author", is.Author, "differences", n)
}

// lookBack is how many versions a starting node goes back to find one that it can read.
const lookBack = 20

// takeNewestGood puts the newest edition in force that this server can read.
func (k *Keeper[E, P]) takeNewestGood(records []Record) {
	for _, r := range records {
		if k.take(r) {
			return
		}
	}
	k.restoreKept()
}

// take puts a stored edition in force and reports whether that one, or a newer one, now is.
func (k *Keeper[E, P]) take(r Record) bool {
	good, news := k.enforce(r)
	if news {
		k.keep(r)
	}
	return good
}

// enforce puts r in force when it is newer than what is, and reports whether that is good and whether it is news.
func (k *Keeper[E, P]) enforce(r Record) (good, news bool) {
	newer := func(is *Story) bool { return r.Version > is.Version }
	if newer(k.story()) {
		e, err := k.made(r)
		if err != nil {
			k.mu.Lock()
			k.unreadable.Store(max(k.unreadable.Load(), r.Version))
			k.mu.Unlock()
			k.Failed()
			k.cfg.Log.Error(k.cfg.Name+": what is stored can't be put in force, the edition before stays", "version", r.Version,
				"in_force", k.story().Version, "err", err)
			return false, false
		}
		if k.replace(e, newer) {
			return true, true
		}
	}
	k.cfg.Metrics.loads.WithLabelValues(loadOlder).Inc()
	return true, false
}

// made returns the edition of r, made. It may take milliseconds.
func (k *Keeper[E, P]) made(r Record) (*E, error) {
	e, err := k.decode(r)
	if err != nil {
		return nil, err
	}
	if own := k.own.Load(); own != nil && bytes.Equal(own.payload, r.Payload) {
		made := *own.made
		P(&made).Told().stamp(r)
		return &made, nil
	}
	return e, k.cfg.Make(e)
}

// replace puts e, which is made, in force if it may take the place of what is.
func (k *Keeper[E, P]) replace(e *E, may func(is *Story) bool) bool {
	k.mu.Lock()
	before, is := k.current.Load(), P(e).Told()
	if !may(P(before).Told()) {
		k.mu.Unlock()
		return false
	}
	k.cfg.Enforce(e)
	k.before.Store(before)
	k.current.Store(e)
	k.cfg.Metrics.inForce(is)
	k.mu.Unlock()
	k.cfg.Log.Info(k.cfg.Name+" in force", "version", is.Version, "before", P(before).Told().Version, "kind", is.Kind, "author", is.Author, "note", is.Note)
	return true
}

// Put puts what next returns for the edition in force on this node alone, unless that is nil or an error. It asks again when another
// one has come in force meanwhile.
func (k *Keeper[E, P]) Put(next func(current *E) (*E, error)) error {
	for {
		current := k.current.Load()
		e, err := next(current)
		if err != nil || e == nil || k.replace(e, func(is *Story) bool { return is == P(current).Told() }) {
			return err
		}
	}
}

// Failed counts what can't be put in force.
func (k *Keeper[E, P]) Failed() { k.cfg.Metrics.loads.WithLabelValues(loadFailed).Inc() }

func (k *Keeper[E, P]) encode(e *E) ([]byte, error) {
	return encode(P(e).Told(), k.cfg.Key, k.cfg.Content(e))
}

func (k *Keeper[E, P]) decode(r Record) (*E, error) {
	story, content, err := decode(r, k.cfg.Key)
	e := new(E)
	if err == nil {
		err = k.cfg.Decode(content, e)
	}
	if err != nil {
		return nil, fmt.Errorf("%s version %d: %w", k.cfg.Name, r.Version, err)
	}
	*P(e).Told() = story
	return e, nil
}

// Current returns the edition in force on this node, Before the one that it replaced; nil when there was none.
func (k *Keeper[E, P]) Current() *E { return k.current.Load() }
func (k *Keeper[E, P]) Before() *E  { return k.before.Load() }

func (k *Keeper[E, P]) story() *Story { return P(k.current.Load()).Told() }

// Close ends the following; the edition in force stays in force.
func (k *Keeper[E, P]) Close() {
	if k.follow != nil {
		k.follow()
	}
}
