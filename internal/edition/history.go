package edition

import (
	"context"
	"fmt"
)

// Version returns one version, not made.
func (k *Keeper[E, P]) Version(ctx context.Context, version uint64) (*E, error) {
	if k.cfg.Store == nil {
		return nil, ErrNoStore
	}
	records, err := k.cfg.Store.History(ctx, version+1, 1)
	if err != nil {
		return nil, err
	}
	if version == 0 || len(records) == 0 || records[0].Version != version {
		return nil, fmt.Errorf("%w: %d", ErrNotFound, version)
	}
	e, err := k.decode(records[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return e, nil
}

// History returns at most limit versions older than before (0: from the newest), newest first, not made, each with its changes
// against the one before it. Versions that this server can't read are left out.
func (k *Keeper[E, P]) History(ctx context.Context, before uint64, limit int) ([]*E, error) {
	if k.cfg.Store == nil {
		return []*E{k.Current()}, nil
	}
	records, err := k.cfg.Store.History(ctx, before, limit+1)
	if err != nil {
		return nil, err
	}
	all := []*E{}
	for _, r := range records {
		if e, err := k.decode(r); err == nil {
			all = append(all, e)
		}
	}
	for i, e := range all[:max(len(all)-1, 0)] {
		k.cfg.Changes(all[i+1], e)
	}
	return all[:min(len(all), limit)], nil
}

// Made makes an edition of the history ready, or returns the same one that is in force or was before it.
func (k *Keeper[E, P]) Made(e *E) (*E, error) {
	for _, known := range []*E{k.Before(), k.Current()} {
		if known != nil && P(known).Told().Version == P(e).Told().Version {
			return known, nil
		}
	}
	return e, k.cfg.Make(e)
}
