package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// storeEvery is how often the store is looked at, and how soon a fault is known.
	storeEvery = time.Second
	// spareBytes must be writable before the store is opened again.
	spareBytes = 1 << 20
	// reopenMost is the longest pause between two attempts to open it.
	reopenMost = 4 * time.Second
)

// keep looks after the embedded store until ctx ends. A store that has failed is opened again as soon as there is
// space: by another server in this process, so that no viewer's socket notices, and from what is on disk, which is all that
// was acknowledged. Danmaku are this node's own meanwhile, as whenever NATS is away.
func (s *Store) keep(ctx context.Context) {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	var pause time.Duration // until the next attempt
	for {
		fault := s.link.Fault()
		switch {
		case fault == nil:
			if s.refusing.CompareAndSwap(true, false) {
				s.log.Info("the store takes writes again")
			}
			pause = 0
		case s.refusing.CompareAndSwap(false, true):
			s.log.Error("the store takes no writes; gifts, likes and settings are refused until its disk has space and takes writes, and then it is opened again",
				"err", fault, "data_dir", s.cfg.DataDir)
		}
		if fault != nil {
			if pause -= storeEvery; pause <= 0 {
				if err := s.reopenDisk(ctx); err != nil {
					pause = min(max(storeEvery, pause+2*storeEvery), reopenMost)
					s.log.Debug("the store can't be opened again yet", "err", err)
				} else {
					continue // look at once
				}
			}
		}
		s.measureVolume()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.faultSoon:
		}
	}
}

// reopenDisk opens the store again when the disk takes what a write needs.
func (s *Store) reopenDisk(ctx context.Context) error {
	if err := writable(s.cfg.DataDir); err != nil {
		return err
	}
	s.log.Warn("the disk takes writes again; opening the store")
	counted := s.Likes.book.known()
	if err := s.link.Reopen(ctx, true); err != nil {
		return err
	}
	s.LookAfter() // those in memory are gone
	if err := s.link.Fault(); err != nil {
		return err
	}
	if err := s.Likes.restore(ctx); err != nil {
		return err
	}
	// Counters are written behind: what the server acknowledged and the disk did not take is known here.
	for room, total := range s.here.totals() {
		counted[room] = max(counted[room], total)
	}
	return s.Likes.heal(ctx, counted)
}

// writable writes as much as the store will need at once, syncs it and takes it away again.
func writable(dir string) error {
	tmp, err := os.CreateTemp(dir, ".space-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(make([]byte, spareBytes))
	return errors.Join(err, tmp.Sync(), tmp.Close())
}

// volumeFull is where operators are told, and volumeRest below it where that is over.
const (
	volumeFull = 0.90
	volumeRest = 0.85
)

// measureVolume tells how full the volume of the data directory is.
func (s *Store) measureVolume() {
	used, ok := VolumeUsed(s.cfg.DataDir)
	if !ok {
		return
	}
	s.metrics.volume.Set(used)
	switch {
	case used >= volumeFull && !s.volumeTold:
		s.volumeTold = true
		s.log.Warn("the volume of the data directory is over 90 % full; at 100 % gifts, likes and settings are refused",
			"data_dir", s.cfg.DataDir, "used", fmt.Sprintf("%.0f %%", 100*used))
	case used < volumeRest:
		s.volumeTold = false
	}
}
