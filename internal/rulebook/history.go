package rulebook

import (
	"context"
	"fmt"
	"time"

	"liveroom/internal/edition"
)

// lookBack is how many versions are looked at to find one that was in force long enough.
const lookBack = 20

// History returns at most limit versions older than before (0: from the newest), newest first, each with its changes
// against the one before it, and how the watch over it ended. Versions that this server can't read are left out.
func (b *Book) History(ctx context.Context, before uint64, limit int) ([]*Set, error) {
	sets, err := b.kept.History(ctx, before, limit)
	if err != nil || b.cfg.Store == nil {
		return sets, err
	}
	return sets, b.tellEndings(ctx, sets)
}

// tellEndings says of each set how the watch over it ended. Of several nodes that watched the same, who ended first counts.
func (b *Book) tellEndings(ctx context.Context, sets []*Set) error {
	endings, err := b.cfg.Store.Endings(ctx)
	if err != nil {
		return err
	}
	first := map[uint64]*Ending{}
	for i := range endings { // newest first
		first[endings[i].Version] = &endings[i]
	}
	for _, s := range sets {
		s.Watch = first[s.Version]
	}
	return nil
}

// WatchEnded keeps how the watch over a version ended.
func (b *Book) WatchEnded(ctx context.Context, e Ending) error {
	if b.cfg.Store == nil {
		return ErrFileSource
	}
	return b.cfg.Store.Ended(ctx, e)
}

// Unproved returns what a version is to be compared with: what was in force before the first of the sets that have not been in force for
// as long as a watch takes, so that a bad set on top of another hides nothing; and when the version was stored, by the store's clock,
// which is no node's. The error is [edition.ErrNotFound] when nothing came before.
func (b *Book) Unproved(ctx context.Context, version uint64, watch time.Duration) (base *Set, stored time.Time, err error) {
	sets, err := b.History(ctx, version+1, lookBack)
	if err != nil {
		return nil, stored, err
	}
	if len(sets) < 2 || sets[0].Version != version {
		return nil, stored, fmt.Errorf("%w: nothing came before version %d", edition.ErrNotFound, version)
	}
	stored = sets[0].Time
	base, next := sets[1], sets[0]
	for _, old := range sets[1:] {
		base = old
		if next.Time.Sub(old.Time) >= watch || old.Kind == edition.KindGuard {
			break
		}
		next = old
	}
	base, err = b.kept.Made(base)
	return base, stored, err
}
