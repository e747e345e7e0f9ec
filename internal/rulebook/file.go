package rulebook

import (
	"bytes"
	"context"
	"os"
	"time"

	"liveroom/internal/edition"
	"liveroom/limit"
)

// watchFile puts the file's set in force whenever its content changes, also when the file is replaced as a whole, as
// configuration maps are. It compares content, not times.
func (b *Book) watchFile(ctx context.Context) {
	tick := time.NewTicker(b.cfg.FileEvery)
	defer tick.Stop()
	var known []byte // what the last look found; what the configuration read may be older than this goroutine
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		raw, err := os.ReadFile(b.cfg.File)
		if err == nil && bytes.Equal(raw, known) || err != nil && known == nil {
			continue
		}
		if err == nil && !b.settled(ctx, raw) {
			continue // the next look takes what it has become
		}
		known = raw
		if err == nil {
			err = b.takeFile(raw)
		}
		if err != nil {
			b.kept.Failed()
			b.cfg.Log.Error("limits: the file can't be put in force, the set before stays", "file", b.cfg.File,
				"in_force", b.Current().Version, "err", err)
		}
	}
}

// settled tells whether the file still has this content a moment later. An editor that writes in place leaves an empty or a
// half file between its calls, and half a file may well be a set.
func (b *Book) settled(ctx context.Context, raw []byte) bool {
	wait := time.NewTimer(b.cfg.FileEvery / 10)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
	}
	again, err := os.ReadFile(b.cfg.File)
	return err == nil && bytes.Equal(raw, again)
}

// takeFile puts the text in force, unless it says what is in force already. Its version counts on from the one in force,
// unless the file names a higher one.
func (b *Book) takeFile(raw []byte) error {
	spec, err := limit.Parse(raw)
	if err != nil {
		return err
	}
	return b.kept.Put(func(is *Set) (*Set, error) {
		if len(diff(is.Rules, spec.Rules)) == 0 {
			return nil, nil
		}
		next := max(is.Version+1, uint64(max(spec.Version, 0)))
		s := &Set{Story: edition.Story{Version: next, Kind: edition.KindFile, Author: "file", Time: time.Now().UTC()}, Rules: spec.Rules}
		return s, b.vet(s)
	})
}
