package fanout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStoreFull says that the store takes no writes, as after a disk was full: what comes is refused, and nothing of it stored.
var ErrStoreFull = errors.New("fanout: the store takes no writes")

// storeState is what the store does, as this node knows it.
type storeState uint32

const (
	storing  storeState = iota // it takes writes
	refusing                   // a write failed; nothing is sent to it
)

const (
	// storeEvery is how often the store is looked at, and how soon a fault is known.
	storeEvery = time.Second
	// spareBytes must be writable before the store is opened again.
	spareBytes = 1 << 20
	// reopenMost is the longest pause between two attempts to open it.
	reopenMost = 4 * time.Second
)

// Storing returns nil when the store takes writes, as far as the last ones tell, and otherwise why not.
func (f *Fabric) Storing() error {
	if f.refusing() {
		return ErrStoreFull
	}
	if f.server == nil && f.unanswered.Load() {
		return errNoStore
	}
	return nil
}

func (f *Fabric) refusing() bool { return storeState(f.storeIs.Load()) == refusing }

// wrote notes how a write that waits for the disk ended. A store that has failed answers it with silence, while it still
// answers questions.
func (f *Fabric) wrote(err error) {
	silent := unanswered(err)
	f.unanswered.Store(silent)
	if silent {
		f.storeSoon.soon()
	}
}

// keepStore looks after the embedded store until ctx ends. A store that has failed is opened again as soon as there is
// space: by another server in this process, so that no viewer's socket notices, and from what is on disk, which is all that
// was acknowledged. Danmaku are this node's own meanwhile, as whenever NATS is away.
func (f *Fabric) keepStore(ctx context.Context) {
	tick := time.NewTicker(storeEvery)
	defer tick.Stop()
	var pause time.Duration // until the next attempt
	for {
		fault := f.server.fault()
		switch {
		case fault == nil:
			if f.storeIs.CompareAndSwap(uint32(refusing), uint32(storing)) {
				f.log.Info("the store takes writes again")
			}
			pause = 0
		case f.storeIs.CompareAndSwap(uint32(storing), uint32(refusing)):
			f.log.Error("the store takes no writes; gifts, likes and settings are refused until there is space, and then it is opened again",
				"err", fault, "data_dir", f.cfg.DataDir)
		}
		if fault != nil {
			if pause -= storeEvery; pause <= 0 {
				if err := f.reopenStore(ctx); err != nil {
					pause = min(max(storeEvery, pause+2*storeEvery), reopenMost)
					f.log.Debug("the store can't be opened again yet", "err", err)
				} else {
					continue // look at once
				}
			}
		}
		f.measureVolume()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.storeSoon:
		}
	}
}

// reopenStore opens the store again when the disk takes what a write needs.
func (f *Fabric) reopenStore(ctx context.Context) error {
	if err := writable(f.cfg.DataDir); err != nil {
		return err
	}
	f.log.Warn("the disk takes writes again; opening the store")
	counted := f.likes.known()
	if err := f.reopenServer(ctx, true); err != nil {
		return err
	}
	f.lookAfterStreams() // those in memory are gone
	if err := f.server.fault(); err != nil {
		return err
	}
	if err := f.restoreLikes(ctx); err != nil {
		return err
	}
	// Counters are written behind: what the server acknowledged and the disk did not take is known here.
	for room, total := range f.shownLikes() {
		counted[room] = max(counted[room], total)
	}
	return f.healLikes(ctx, counted)
}

// reopenServer is [embedded.reopen], and waits until this node is connected to the server again.
func (f *Fabric) reopenServer(ctx context.Context, sync bool) error {
	conns := []*nats.Conn{f.live, f.store}
	var was [2]uint64 // reconnects; a connection that was cut looks whole until its loss is noticed
	for i, c := range conns {
		was[i] = c.Stats().Reconnects
	}
	if err := f.server.reopen(sync); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	back := func(i int) bool { return conns[i].Stats().Reconnects > was[i] && conns[i].IsConnected() }
	for !back(0) || !back(1) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the store is open again, and this node not connected to it: %w", ctx.Err())
		}
	}
	return nil
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
func (f *Fabric) measureVolume() {
	used, ok := volumeUsed(f.cfg.DataDir)
	if !ok {
		return
	}
	f.metrics.volume.Set(used)
	switch {
	case used >= volumeFull && f.volumeTold.CompareAndSwap(false, true):
		f.log.Warn("the volume of the data directory is over 90 % full; at 100 % gifts, likes and settings are refused",
			"data_dir", f.cfg.DataDir, "used", fmt.Sprintf("%.0f %%", 100*used))
	case used < volumeRest:
		f.volumeTold.Store(false)
	}
}

// unanswered tells whether a failed write may have met a store that takes none.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrNoStreamResponse)
}
