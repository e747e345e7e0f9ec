package rulebook

import (
	"context"
	"errors"

	"liveroom/internal/edition"
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
// [ErrFileSource], [edition.ErrConflict], [ErrNeedsOverride] with the judge's reasons, or the store's.
func (b *Book) Publish(ctx context.Context, d Draft, ifMatch uint64) (*Set, error) {
	s := &Set{Story: edition.Story{Kind: edition.KindPublish, Author: d.Author, Note: d.Note, Override: d.Override}, Rules: d.Rules}
	if b.cfg.Store == nil {
		return nil, ErrFileSource
	}
	today := b.Current()
	if err := b.kept.May(ifMatch); err != nil {
		return nil, err
	}
	if err := b.vet(s); err != nil {
		return nil, err
	}
	if !d.Override {
		if err := b.cfg.Review.Judge(ctx, today.compiled, s.compiled); err != nil {
			return nil, err
		}
	}
	return b.published(ctx)(b.kept.Publish(ctx, s, ifMatch))
}

// published tells the review of what the store has taken.
func (b *Book) published(ctx context.Context) func(*Set, error) (*Set, error) {
	return func(s *Set, err error) (*Set, error) {
		if err == nil {
			b.cfg.Review.Published(ctx)
		}
		return s, err
	}
}

// Examine returns rules as the gate would take them, and puts nothing in force. The error is that of a publish:
// [limit.Faults] with every fault.
func (b *Book) Examine(rules []limit.Rule) (*limit.Rules, error) {
	s := &Set{Story: edition.Story{Version: b.Current().Version}, Rules: rules}
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
	if b.cfg.Store == nil {
		return nil, ErrFileSource
	}
	return b.published(ctx)(b.kept.Restore(ctx, to, ifMatch, author, note))
}

// GuardRollback undoes version for the guard, unless somebody has published since: it puts the newest readable set up to
// version to in force again, since what came between is under suspicion, too. 0, a set that never was stored, is the one
// before version.
func (b *Book) GuardRollback(ctx context.Context, version, to uint64, why string) error {
	if b.cfg.Store == nil {
		return ErrFileSource
	}
	_, err := b.published(ctx)(b.kept.RestoreGood(ctx, version, to, "guard", why))
	return err
}
