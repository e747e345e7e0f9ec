package rulebook

import (
	"context"
	"fmt"
)

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
	sets := []*Set{}
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
