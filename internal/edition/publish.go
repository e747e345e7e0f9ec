package edition

import (
	"context"
	"fmt"
	"time"
)

// May returns nil when a change that was made on a version may be published: it is in force, and there is a store. [Keeper.Publish] makes
// sure of it; this is for who has work to do before.
func (k *Keeper[E, P]) May(ifMatch uint64) error {
	if k.cfg.Store == nil {
		return ErrNoStore
	}
	if is := k.story().Version; is != ifMatch {
		return fmt.Errorf("%w: version %d is in force, the change was made on %d", ErrConflict, is, ifMatch)
	}
	return nil
}

// Publish stores e, which was made, on top of version after, or of an unreadable one that followed it, and puts it in force here
// without waiting for the news of it. It returns it with its version. Errors: [ErrConflict], [ErrNoStore] or the store's.
func (k *Keeper[E, P]) Publish(ctx context.Context, e *E, after uint64) (*E, error) {
	if k.cfg.Store == nil {
		return nil, ErrNoStore
	}
	raw, err := k.encode(e)
	if err != nil {
		return nil, err
	}
	on := after
	if bad := k.unreadable.Load(); k.story().Version == after && bad > after {
		on = bad
	}
	k.own.Store(&own[E]{raw, e}) // the news of it may be faster than the store's answer
	version, err := k.cfg.Store.Publish(ctx, raw, on)
	if err != nil {
		return nil, err
	}
	stored := Record{Version: version, Payload: raw, Time: time.Now().UTC(), Node: k.cfg.Node}
	k.take(stored)
	out := *e
	P(&out).Told().stamp(stored)
	return &out, nil
}

// Restore publishes the content of an older version again, on top of ifMatch (0: whatever is in force).
func (k *Keeper[E, P]) Restore(ctx context.Context, to, ifMatch uint64, author, note string) (*E, error) {
	if ifMatch == 0 {
		ifMatch = k.story().Version
	}
	old, err := k.Version(ctx, to)
	if err != nil {
		return nil, err
	}
	k.restoring(old, KindRollback, author, note)
	if err := k.cfg.Make(old); err != nil {
		return nil, err
	}
	return k.Publish(ctx, old, ifMatch)
}

// restoring turns an edition into one that restores it.
func (k *Keeper[E, P]) restoring(old *E, kind Kind, author, note string) {
	s := P(old).Told()
	*s = Story{Kind: kind, Author: author, Note: note, Restores: s.Version}
}

// RestoreGood is Restore for a guard that takes version back: to the newest one up to version to that can be put in force (0, a
// version that never was stored: the one before), unless somebody has published since.
func (k *Keeper[E, P]) RestoreGood(ctx context.Context, version, to uint64, author, note string) (*E, error) {
	if k.cfg.Store == nil {
		return nil, ErrNoStore
	}
	if to == 0 || to >= version {
		to = version - 1
	}
	records, err := k.cfg.Store.History(ctx, to+1, lookBack)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		old, err := k.decode(r)
		if err != nil || r.Version > to {
			continue
		}
		k.restoring(old, KindGuard, author, note)
		if k.cfg.Make(old) == nil {
			return k.Publish(ctx, old, version)
		}
	}
	return nil, fmt.Errorf("%w: nothing came before version %d", ErrNotFound, to+1)
}
