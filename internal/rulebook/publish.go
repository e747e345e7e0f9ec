package rulebook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liveroom/limit"
)

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
	if err := b.vet(s); err != nil {
		return nil, err
	}
	if !d.Override {
		if err := b.cfg.Review.Judge(ctx, today.compiled, s.compiled); err != nil {
			return nil, err
		}
	}
	return b.store(ctx, s, ifMatch)
}

// Examine returns rules as the gate would take them, and puts nothing in force. The error is that of a publish:
// [limit.Faults] with every fault.
func (b *Book) Examine(rules []limit.Rule) (*limit.Rules, error) {
	s := &Set{Version: b.Current().Version, Rules: rules}
	if err := b.vet(s); err != nil {
		return nil, err
	}
	return s.compiled, nil
}

// vet compiles s and names every fault, those that only this server sees included.
func (b *Book) vet(s *Set) error {
	err := b.make(s)
	var faults limit.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	if faults = append(faults, b.cfg.Review.Check(s.Rules)...); len(faults) > 0 {
		return faults
	}
	return nil
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
	s := restoring(old, KindRollback, author, note)
	if err := b.make(s); err != nil {
		return nil, err
	}
	return b.store(ctx, s, ifMatch)
}

// GuardRollback undoes version for the guard, unless somebody has published since: it puts the newest readable set up to
// version to in force again, since what came between is under suspicion, too. 0, a set that never was stored, is the one
// before version.
func (b *Book) GuardRollback(ctx context.Context, version, to uint64, why string) error {
	if b.cfg.Store == nil {
		return ErrFileSource
	}
	if to == 0 || to >= version {
		to = version - 1
	}
	records, err := b.cfg.Store.History(ctx, to+1, lookBack)
	if err != nil {
		return err
	}
	for _, r := range records {
		if old, err := decode(r); err == nil && r.Version <= to {
			s := restoring(old, KindGuard, "guard", why)
			if b.make(s) == nil {
				_, err = b.store(ctx, s, version)
				return err
			}
		}
	}
	return fmt.Errorf("%w: nothing came before version %d", ErrNotFound, to+1)
}

func restoring(old *Set, kind Kind, author, note string) *Set {
	return &Set{Kind: kind, Author: author, Note: note, Restores: old.Version, Rules: old.Rules}
}

// store publishes s, which is compiled, on top of version after, or of an unreadable one that followed it, and puts it in force here
// without waiting for the news of it.
func (b *Book) store(ctx context.Context, s *Set, after uint64) (*Set, error) {
	raw, err := s.encode()
	if err != nil {
		return nil, err
	}
	if bad := b.unreadable.Load(); b.Current().Version == after && bad > after {
		after = bad
	}
	b.own.Store(&compiled{raw, s.compiled}) // the news of it may be faster than the store's answer
	version, err := b.cfg.Store.Publish(ctx, raw, after)
	if err != nil {
		return nil, err
	}
	stored := Record{Version: version, Payload: raw, Time: time.Now().UTC(), Node: b.cfg.Node}
	b.take(stored)
	b.cfg.Review.Published(ctx)
	s.Version, s.Time, s.Node = stored.Version, stored.Time, stored.Node
	return s, nil
}
